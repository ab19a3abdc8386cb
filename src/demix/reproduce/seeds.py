"""Seeds of a cell that never meet: training draws use the plain seed, all others lie apart."""

from __future__ import annotations

from typing import Any

import torch

from demix.encoders import Encoder
from demix.experiments import LabelRow, Model, PairRow, Scale
from demix.objectives import Objective
from demix.training import Recipe

_APART = 2**40
LOOK = 4096
"""How many held-out samples a look during training takes."""


def held_out(seed: int, *, part: int = 1) -> torch.Generator:
    """Return a generator of draws that training never sees."""
    return torch.Generator().manual_seed(part * _APART + seed)


def planned(
    row: PairRow | LabelRow, scale: Scale, model: Model, seed: int
) -> tuple[Encoder, Objective[Any], Recipe]:
    """Return encoder, objective and recipe of a cell, with weights that depend on its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3 * _APART + seed)  # for what torch itself initialises
        return row.plan(scale, model)
