"""How often the check-up is right: processes whose truth is known."""

from demix.calibration.processes import PROCESSES, Process, Sample
from demix.calibration.run import calibration_table, run_process, summary

__all__ = ["PROCESSES", "Process", "Sample", "calibration_table", "run_process", "summary"]
