"""What independent runs agree on, where no factors are known to compare with."""

from demix.agreement.align import Map, align
from demix.agreement.common import common_maps, mean_of
from demix.agreement.consensus import consensus
from demix.agreement.group import Group, group_of, group_of_pairs
from demix.agreement.result import Consensus

__all__ = [
    "Consensus",
    "Group",
    "Map",
    "align",
    "common_maps",
    "consensus",
    "group_of",
    "group_of_pairs",
    "mean_of",
]
