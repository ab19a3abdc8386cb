"""What a representation tells of known factors: linear read-outs, each beside chance."""

from demix.probes.balanced import LEVEL, BalancedReadout, balanced_readout, is_testable

__all__ = ["LEVEL", "BalancedReadout", "balanced_readout", "is_testable"]
