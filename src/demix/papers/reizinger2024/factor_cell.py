"""A cell with photographs: one factor, read out of the features of one model."""

from __future__ import annotations

import time
from typing import Any

from demix._support.process_group.group import Ranks
from demix.papers.datasets.annotations import ImageNetX
from demix.papers.reizinger2024.annotated import AnnotatedFeatures
from demix.papers.reizinger2024.balanced import balanced_readout, is_testable
from demix.papers.reizinger2024.factors import FactorRow
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import Report


def run_factor_cell(
    row: FactorRow,
    seed: int,
    scale: Scale,
    model: Model,
    features: AnnotatedFeatures,
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Read one factor out; None if Ctrl-C ended it, and on ranks other than 0.

    A factor that is too rare to be tested has no accuracy. Seconds are those of the processor.
    """
    if not Ranks.current().leads:
        return None  # there is nothing to share
    repeats, done = row.repeats(scale), 0

    def fitted() -> None:
        nonlocal done
        done += 1
        if report is not None:
            report(done, repeats + 1, {})

    begun = time.process_time()
    values, targets = features.rows(model)
    factor = targets[:, ImageNetX.target_names.index(row.factor)]
    positives = int(factor.sum())
    testable = is_testable(min(positives, len(factor) - positives))
    measured: dict[str, Any] = {"accuracy": None}
    if testable:
        try:
            found = balanced_readout(values, factor, repeats=repeats, seed=seed, report=fitted)
        except KeyboardInterrupt:
            return None
        measured = {
            "accuracy": found.accuracy,
            "sem": found.sem,
            "accuracies": found.accuracies.tolist(),
            "p_resampled": found.p_resampled,
            "held_accuracy": found.held_accuracy,
            "held_interval": list(found.held_interval),
            "held_rows": found.held_rows,
            "p_held": found.p_held,
        }
    return measured | {
        "testable": testable,
        "factor": row.factor,
        "positives": positives,
        "images": len(factor),
        **features.about(model),
        "steps": 0,
        "seconds": round(time.process_time() - begun, 2),
        "nats_above_optimum": None,
    }
