"""What a representation tells of known factors: linear read-outs, each beside chance."""

from demix.probes.readouts import Estimate, ReadOut, Split, random_split, read_out

__all__ = ["Estimate", "ReadOut", "Split", "random_split", "read_out"]
