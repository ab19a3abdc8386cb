"""What a representation tells of known factors: linear read-outs, each beside chance."""

from demix.probes.balanced import LEVEL, BalancedReadout, balanced_readout, is_testable
from demix.probes.probe import Probe, Probed, probe
from demix.probes.readouts import read_out
from demix.probes.result import Estimate, ReadOut, Split, random_split

__all__ = [
    "LEVEL",
    "BalancedReadout",
    "Estimate",
    "Probe",
    "Probed",
    "ReadOut",
    "Split",
    "balanced_readout",
    "is_testable",
    "probe",
    "random_split",
    "read_out",
]
