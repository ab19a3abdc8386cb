"""A cell with photographs: one factor, read out of the features of one model."""

from __future__ import annotations

import time
from typing import Any

from demix.datasets import ImageNetX
from demix.experiments import FactorRow, Model, Scale
from demix.probes import balanced_readout, is_testable
from demix.reproduce.photographs import Photographs
from demix.reproduce.trial import Report


def run_factor_cell(
    row: FactorRow,
    seed: int,
    scale: Scale,
    model: Model,
    photographs: Photographs,
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Read one factor out; None if Ctrl-C ended it.

    A factor that is too rare to be tested has no accuracy. Seconds are those of the processor.
    """
    ahead, repeats = photographs.ahead(model), row.repeats(scale)
    total, done = ahead + repeats + 1, ahead

    def tell(count: int) -> None:
        if report is not None:
            report(count, total, {})

    def fitted() -> None:
        nonlocal done
        done += 1
        tell(done)

    try:
        values, targets = photographs.rows(model, tell)
        factor = targets[:, ImageNetX.target_names.index(row.factor)]
        positives = int(factor.sum())
        rarer = min(positives, len(factor) - positives)
        begun = time.process_time()
        measured: dict[str, Any] = {"accuracy": None, "testable": is_testable(rarer)}
        if measured["testable"]:
            found = balanced_readout(values, factor, repeats=repeats, seed=seed, report=fitted)
            measured |= {
                "accuracy": found.accuracy,
                "sem": found.sem,
                "accuracies": found.accuracies.tolist(),
                "p_resampled": found.p_resampled,
                "held_accuracy": found.held_accuracy,
                "held_interval": list(found.held_interval),
                "held_rows": found.held_rows,
                "p_held": found.p_held,
            }
    except KeyboardInterrupt:
        return None
    return measured | {
        "factor": row.factor,
        "positives": positives,
        "images": len(factor),
        **photographs.about(model),
        "steps": 0,
        "seconds": round(time.process_time() - begun, 2),
        "nats_above_optimum": None,
    }
