"""Time to a score, in steps of the paper's dense training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch

from benchmarks.sizes import Sizes
from benchmarks.step import ROWS, row_of
from benchmarks.timing import Say
from demix.encoders.encoder import Encoder
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.runner.experiment import Experiment
from demix.papers.runner.scales import scale_named
from demix.papers.zimmermann2021.pairs import PairRow
from demix.training.loop import Record, train

_SCORES = {"r2": affine_r2, "mcc": mean_correlation}
# The pairs that are looked at must never meet the training pairs, which use the plain seed.
_HELD_OUT = 2**41
_LOOK = 4096
_ROUND_TARGET = 99.0


def measure_convergence(sizes: Sizes, dense: Sequence[float | None], say: Say) -> dict[str, Any]:
    """Train each row with its own recipe and see when it reaches which score.

    Parameters
    ----------
    sizes : Sizes
        Scale, seeds and looks.
    dense : sequence of float or None
        Seconds of a dense step of each row, measured in the same run.
    say : callable
        Told how far the training is.

    Returns
    -------
    dict
        ``entries``: for each row and target the median over seeds of ``steps``, ``seconds`` and
        ``dense_steps``, None where half of the seeds do not get there.
    """
    entries = []
    for (name, number), step in zip(ROWS, dense, strict=True):
        experiment, row = row_of(name, number)
        histories = [history(experiment, row, seed, sizes, say) for seed in sizes.seeds]
        final = median(float(records[-1]["score"] or 0.0) for records in histories)
        for target in _targets(experiment, row):
            found = [first_reaching(records, target) for records in histories]
            seconds = _median(found, "seconds")
            entries.append(
                {
                    "experiment": name,
                    "row": number,
                    "score": experiment.score,
                    "target": target,
                    "paper": target != _ROUND_TARGET,
                    "steps": _median(found, "step"),
                    "seconds": seconds,
                    "dense_steps": None if seconds is None or step is None else seconds / step,
                    "final": final,
                }
            )
    return {"seeds": list(sizes.seeds), "looks": sizes.looks, "entries": entries}


def _targets(experiment: Experiment, row: PairRow) -> list[float]:
    """Return the paper's score in percent, and for R² the round one below it."""
    published = row.paper["unsupervised"]
    assert published is not None  # both rows have one
    return [*([_ROUND_TARGET] if experiment.score == "r2" else []), published[0]]


def history(
    experiment: Experiment, row: PairRow, seed: int, sizes: Sizes, say: Say
) -> list[dict[str, float | None]]:
    """Train ``row`` and return its looks; their seconds leave out the looking."""
    scale = scale_named(sizes.scale)
    process = row.process(scale.dim, seed=seed, draws=scale.draws)
    encoder, objective, recipe = row.plan(scale, "unsupervised")
    look = process.sample(_LOOK, generator=torch.Generator().manual_seed(_HELD_OUT + seed))

    def watch(encoder: Encoder) -> Record:
        score = 100 * float(_SCORES[experiment.score](encoder(look.x), look.z))
        say(f"{experiment.name}, row {row.number}, seed {seed}: {score:.2f} %")
        return {"score": score}

    say(f"{experiment.name}, row {row.number}, seed {seed}: training")
    training = train(
        encoder,
        process.sample,
        objective,
        recipe,
        seed=seed,
        evaluate=watch,
        eval_every=math.ceil(recipe.steps / sizes.looks),
    )
    if training.interrupted:
        raise KeyboardInterrupt
    return training.history


def first_reaching(records: Sequence[Record], target: float) -> Record | None:
    """Return the first look at ``target`` percent or more.

    Examples
    --------
    >>> from benchmarks.convergence import first_reaching
    >>> looks = [{"step": 1, "score": 90.0}, {"step": 2, "score": 99.1}]
    >>> first_reaching(looks, 99.0)["step"]
    2
    """
    return next((record for record in records if (record["score"] or 0.0) >= target), None)


def _median(found: Sequence[Record | None], key: str) -> float | None:
    """Return the median of ``key`` over the seeds, with None for never."""
    values = [None if record is None else record[key] for record in found]
    middle = median(float("inf") if value is None else value for value in values)
    return None if middle == float("inf") else middle
