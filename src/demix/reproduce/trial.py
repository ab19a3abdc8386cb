"""What the cells of all experiments share: seeds that never meet, a plan, a training.

Training draws use the plain seed, all others lie apart from it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from demix.encoders import Encoder
from demix.experiments import LabelRow, Model, PairRow, ReadOutRow, Scale, SceneRow, VideoRow
from demix.objectives import Objective
from demix.training import Recipe, Record, Sampler, Training, train

Plan = tuple[Encoder, Objective[Any], Recipe]
Report = Callable[[int, int, Record], None]
"""``report(step, steps, record)`` after every step."""

_APART = 2**40
LOOK = 4096
"""How many held-out samples a look during training takes."""


def held_out(seed: int, *, part: int = 1) -> torch.Generator:
    """Return a generator of draws that training never sees."""
    return torch.Generator().manual_seed(part * _APART + seed)


def planned(
    row: PairRow | LabelRow | VideoRow | SceneRow | ReadOutRow,
    scale: Scale,
    model: Model,
    seed: int,
    **more: Any,
) -> Plan:
    """Return encoder, objective and recipe of a cell, with weights that depend on its seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3 * _APART + seed)  # for what torch itself initialises
        return row.plan(scale, model, **more)


def trained(
    plan: Plan,
    sample: Sampler[Any],
    seed: int,
    watch: Callable[[Encoder], Record],
    report: Report | None,
    *,
    validate: Callable[[Encoder], float] | None = None,
) -> Training | None:
    """Train what was planned, in place; None if Ctrl-C ended it.

    With ``validate`` the weights of its smallest value are kept.
    """
    encoder, objective, recipe = plan
    training = train(
        encoder,
        sample,
        objective,
        recipe,
        seed=seed,
        watch=watch,
        report=None if report is None else lambda step, last: report(step, recipe.steps, last),
        validate=validate,
    )
    return None if training.interrupted else training
