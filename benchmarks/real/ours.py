"""demix with its defaults: the number of latents and the lag are all that it is given."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.real.task import Task
from demix.diagnostics.checkup import checkup
from demix.estimators.base import Demixer
from demix.estimators.classification import ClassifierDemixer
from demix.estimators.contrastive import ContrastiveDemixer


def fitted(task: Task, seed: int, **changed: Any) -> tuple[Demixer, dict[str, Any]]:
    """Return a fitted estimator, and what it was given beside rows."""
    cut = task.fitted
    given: dict[str, Any] = {}
    model: Demixer
    if task.labels is not None:
        model = ClassifierDemixer(task.n_latents, random_state=seed, **changed)
        given["y"] = task.labels[:cut]
    else:
        model = ContrastiveDemixer(task.n_latents, lag=task.lag, random_state=seed, **changed)
        if task.view is not None:
            given["positives"] = task.view[:cut]
    return model.fit(task.x[:cut], **given), given


def linear(task: Task, seed: int) -> np.ndarray:
    """Return latents of demix whose encoder is a linear map: what its fits are held against."""
    model, _ = fitted(task, seed, encoder={"hidden": ()})
    return model.transform(task.x)


def told(model: Demixer, task: Task, given: dict[str, Any]) -> dict[str, Any]:
    """Return what the model says of itself: the check-up, the information, what it assumed."""
    found = checkup(model, task.x[: task.fitted], refits=False, **given)
    assumed = getattr(model, "assumed_", None)
    return {
        "supported": found.supported,
        "fired": [check.name for check in found.checks if check.fires],
        "bits": model.gain_.bits,
        "linear bits": model.gain_.linear,
        "assumed": None if assumed is None else [str(part) for part in assumed],
        "notes": list(model.notes_),
    }
