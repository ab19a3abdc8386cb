"""What the cells of all experiments share: seeds that never meet, a plan, a training.

Training draws use the plain seed, all others lie apart from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.papers.reizinger2024.labels import LabelRow
from demix.papers.reizinger2024.readouts import ReadOutRow
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.zimmermann2021.pairs import PairRow
from demix.papers.zimmermann2021.scenes import SceneRow
from demix.papers.zimmermann2021.videos import VideoRow
from demix.processes.process import Pairs
from demix.training.loop import Record, Sampler, Training, train
from demix.training.recipe import Recipe

Plan = tuple[Encoder, Objective[Any], Recipe]
_APART = 2**40
# Of the rates: full ones undo what a stage before has found in its last, small steps.
_LATER = 0.2
LOOK = 4096
"""How many samples a look during training takes, or what stands between two stages."""


@dataclass(frozen=True)
class Report:
    """Where a training tells how it goes, and where it is kept on the way.

    Attributes
    ----------
    tell : callable, optional
        ``tell(step, steps, record)`` after every step.
    checkpoint : Path, optional
        The file that a killed training goes on from.
    about : mapping
        Plain facts that tell the training from others; see :func:`demix.train`.
    """

    tell: Callable[[int, int, Record], None] | None = None
    checkpoint: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, step: int, steps: int, record: Record) -> None:
        """Tell of a step."""
        if self.tell is not None:
            self.tell(step, steps, record)

    def stage(self, number: int, before: int, steps: int) -> Report:
        """Return the same for a stage of a training of so many steps, some of them before it."""
        kept = self.checkpoint
        if kept is not None and number:
            kept = kept.with_name(f"{kept.stem}-{number}{kept.suffix}")
        return replace(
            self, tell=lambda step, _, record: self(before + step, steps, record), checkpoint=kept
        )


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
    report = report or Report()
    training = train(
        encoder,
        sample,
        objective,
        recipe,
        seed=seed,
        evaluate=watch,
        callback=lambda step, last: report(step, recipe.steps, last),
        checkpoint=report.checkpoint,
        about=report.about,
        validate=validate,
    )
    return None if training.interrupted else training


def trained_in_stages(
    stages: Sequence[tuple[Plan, Sampler[Pairs]]],
    seed: int,
    watch: Callable[[Encoder], Record],
    report: Report | None,
) -> Training | None:
    """Train what was planned for each stage, the encoder of the last one in the end.

    A stage starts from the slowest outputs of the one before it, for pairs of its own; see
    :meth:`Encoder.take_over`. Each has rates that rise and fall, to a fifth of the recipe's in all
    but the first, and a checkpoint of its own.
    """
    report, whole = report or Report(), Training()
    steps = sum(recipe.steps for (_, _, recipe), _ in stages)
    before: Encoder | None = None
    for number, ((encoder, objective, recipe), sample) in enumerate(stages):
        if before is not None:
            pairs = sample(LOOK, generator=held_out(seed, part=4))
            encoder.take_over(before, pairs.x, pairs.x_tilde)
            recipe = replace(
                recipe,
                whiten=False,
                initialise=False,
                rate=_LATER * recipe.rate,
                matrix_rate=_LATER * recipe.matrix_rate,
            )
        told = report.stage(number, whole.steps, steps)
        training = trained((encoder, objective, recipe), sample, seed, watch, told)
        if training is None:
            return None
        for entry in training.history:
            late = {"step": whole.steps, "seconds": whole.seconds}
            late = {name: value + (entry[name] or 0) for name, value in late.items()}
            whole.history.append({**entry, **late})
        whole.steps += training.steps
        whole.seconds += training.seconds
        before = encoder
    return whole
