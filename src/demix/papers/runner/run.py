"""What the runs of all rows share: seeds that never meet, a plan, a training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import torch

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.papers.runner.scales import Scale
from demix.papers.runner.slow_start import take_over
from demix.processes.process import Pairs
from demix.training.loop import Record, Sampler, Training, train
from demix.training.recipe import Recipe

Plan = tuple[Encoder, Objective[Any], Recipe]
P = TypeVar("P")
_APART = 2**40  # training draws use the plain seed; all other draws lie apart from it
# Share of the rates in later stages: full ones undo what the last, small steps before have found.
_LATER = 0.2
EVALUATED = 4096
"""How many samples an evaluation during training takes."""


@dataclass(frozen=True)
class Monitor:
    """Where a training reports after every step; the rest is as in :func:`demix.train`."""

    callback: Callable[[int, int, Record], None] | None = None
    checkpoint: Path | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, step: int, steps: int, record: Record) -> None:
        """Report a step."""
        if self.callback is not None:
            self.callback(step, steps, record)

    def stage(self, number: int, before: int, steps: int) -> Monitor:
        """Return the monitor of one stage, with ``before`` of all ``steps`` taken before it."""
        kept = self.checkpoint
        if kept is not None and number:
            kept = kept.with_name(f"{kept.stem}-{number}{kept.suffix}")

        def callback(step: int, _: int, record: Record) -> None:
            self(before + step, steps, record)

        return replace(self, callback=callback, checkpoint=kept)


@dataclass(frozen=True)
class Run:
    """One run of a row, on what :meth:`Row.inputs` opened; ``score`` is that of the experiment."""

    seed: int
    scale: Scale
    model: str
    score: str = "r2"
    inputs: Any = None
    monitor: Monitor = Monitor()

    def plan(self, make: Callable[..., P], **more: Any) -> P:
        """Return what ``make(scale, model, **more)`` builds, with weights that the seed settles."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3 * _APART + self.seed)  # for what torch itself initialises
            return make(self.scale, self.model, **more)

    def train(
        self,
        plan: Plan,
        sample: Sampler[Any],
        evaluate: Callable[[Encoder], Record],
        *,
        validate: Callable[[Encoder], float] | None = None,
    ) -> Training | None:
        """Train what was planned, in place, to the best ``validate``; None if Ctrl-C ended it."""
        encoder, objective, recipe = plan
        training = train(
            encoder,
            sample,
            objective,
            recipe,
            seed=self.seed,
            evaluate=evaluate,
            callback=lambda step, last: self.monitor(step, recipe.steps, last),
            checkpoint=self.monitor.checkpoint,
            about=self.monitor.about,
            validate=validate,
        )
        return None if training.interrupted else training

    def train_in_stages(
        self, stages: Sequence[tuple[Plan, Sampler[Pairs]]], evaluate: Callable[[Encoder], Record]
    ) -> Training | None:
        """Train what was planned for each stage; the encoder of the last one is the result.

        A stage takes over the slowest outputs of the one before it, has rates that rise and fall,
        to a fifth of the recipe's in all but the first, and a checkpoint of its own.
        """
        whole = Training()
        steps = sum(recipe.steps for (_, _, recipe), _ in stages)
        before: Encoder | None = None
        for number, ((encoder, objective, recipe), sample) in enumerate(stages):
            if before is not None:
                pairs = sample(EVALUATED, generator=held_out(self.seed, part=4))
                take_over(encoder, before, pairs.x, pairs.x_tilde)
                recipe = replace(
                    recipe,
                    whiten=False,
                    initialise=False,
                    rate=_LATER * recipe.rate,
                    matrix_rate=_LATER * recipe.matrix_rate,
                )
            stage = replace(self, monitor=self.monitor.stage(number, whole.steps, steps))
            training = stage.train((encoder, objective, recipe), sample, evaluate)
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


def held_out(seed: int, *, part: int = 1) -> torch.Generator:
    """Return a generator of draws that training never sees."""
    return torch.Generator().manual_seed(part * _APART + seed)


def trained_facts(training: Training, recipe: Recipe) -> dict[str, Any]:
    """Return what a record says of a training."""
    facts = {"steps": training.steps, "seconds": round(training.seconds, 2)}
    return facts | {"batch": recipe.batch, "history": training.history}


UNTRAINED = {"steps": 0, "seconds": 0.0, "nats_above_optimum": None}
"""What a record says where nothing is trained."""
