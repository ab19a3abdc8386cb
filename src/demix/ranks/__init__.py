"""Ranks: the processes of `torch.distributed` that work on one batch together."""

from demix.ranks.exchange import gathered, log_summed, shared_gradient, summed
from demix.ranks.group import LostRank, Ranks, checked_group
from demix.ranks.launch import joined, under_torchrun
from demix.ranks.split import Split, divided, lay_out

__all__ = [
    "LostRank",
    "Ranks",
    "Split",
    "checked_group",
    "divided",
    "gathered",
    "joined",
    "lay_out",
    "log_summed",
    "shared_gradient",
    "summed",
    "under_torchrun",
]
