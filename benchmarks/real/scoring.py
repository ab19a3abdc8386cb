"""Read-outs of the known factors from latents, and the agreement of seeds."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.real.task import Task
from demix.metrics.regression import affine_r2

_NEIGHBOURS = 20


def read_outs(task: Task, latents: np.ndarray) -> dict[str, dict[str, float]]:
    """Return for each factor how well held-out rows are read out, ``linear`` and by ``knn``.

    Read-outs are fitted to the rows that the method was fitted to. Numbers are scored by R², the
    mean over columns; classes by the share that is right.
    """
    cut = task.fitted
    found = {}
    for name, values in task.factors.items():
        if values.dtype.kind in "iu":
            linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
            ways = {"linear": linear, "knn": KNeighborsClassifier(_NEIGHBOURS)}
            score = _accuracy
        else:
            ways = {"linear": LinearRegression(), "knn": KNeighborsRegressor(_NEIGHBOURS)}
            score = r2_score
        found[name] = {
            way: float(
                score(values[cut:], model.fit(latents[:cut], values[:cut]).predict(latents[cut:]))
            )
            for way, model in ways.items()
        }
    return found


def _accuracy(true: np.ndarray, said: np.ndarray) -> float:
    return float((true == said).mean())


def agreement(one: np.ndarray, other: np.ndarray) -> float:
    """Return the R² of reading one seed's held-out latents out of the other's, both ways."""
    return float((affine_r2(one, other) + affine_r2(other, one)) / 2)
