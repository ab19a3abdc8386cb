"""May one believe it? A check-up of the theorems' assumptions on one's own data."""

from demix.assumptions.check import Check
from demix.assumptions.checkup import checkup, checkup_pairs
from demix.assumptions.supported import Checkup

__all__ = ["Check", "Checkup", "checkup", "checkup_pairs"]
