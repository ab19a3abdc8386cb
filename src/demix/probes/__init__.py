"""What a representation tells of known factors: linear read-outs, each beside chance."""

from demix.probes.probe import Probe, Probed, probe
from demix.probes.readouts import read_out
from demix.probes.result import Estimate, ReadOut, Split, random_split

__all__ = [
    "Estimate",
    "Probe",
    "Probed",
    "ReadOut",
    "Split",
    "probe",
    "random_split",
    "read_out",
]
