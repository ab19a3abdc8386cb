"""Estimators beside their peers: the same data, seeds and machine, each fit in its own process."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import permutations
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.memory import peak_memory
from benchmarks.processes import run_module
from benchmarks.series import DATA, Series
from benchmarks.sizes import Sizes
from benchmarks.timing import Say
from demix.metrics.regression import affine_r2

OURS, CEBRA, SHORT, FAST_ICA = "ContrastiveDemixer", "CEBRA", "CEBRA, as long", "FastICA"


def measure_estimators(sizes: Sizes, say: Say) -> dict[str, Any]:
    """Fit every method to every series with every seed.

    Parameters
    ----------
    sizes : Sizes
        Rows, seeds and the iterations of the peer.
    say : callable
        Told what is fitted.

    Returns
    -------
    dict
        ``entries``, one for each series and method: over seeds the median of ``r2`` (held out,
        None where no factors are known), of ``seconds`` and of ``bytes`` at the peak, and the mean
        ``consistency``, the held-out R² of reading one seed's latents out of another's.
    """
    entries = []
    for data in sizes.followed:
        took: dict[int, float] = {}
        for method in (OURS, CEBRA, SHORT, FAST_ICA):
            if method.startswith("CEBRA") and find_spec("cebra") is None:
                continue
            runs = []
            for seed in sizes.seeds:
                say(f"{data}, {method}, seed {seed}")
                budget = took.get(seed) if method == SHORT else None
                run = _run(data, method, seed, sizes.series, sizes.iterations, budget)
                took |= {seed: run["seconds"]} if method == OURS else {}
                runs.append(run)
            entries.append({"data": data, "method": method, **_summary(runs)})
    return {"rows": sizes.series, "seeds": list(sizes.seeds), "entries": entries}


def _summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    scores = [run["r2"] for run in runs]
    agreement = [float(affine_r2(a["latents"], b["latents"])) for a, b in permutations(runs, 2)]
    return {
        "r2": None if None in scores else median(scores),
        "consistency": mean(agreement) if agreement else None,
        "seconds": median(run["seconds"] for run in runs),
        "bytes": median(run["bytes"] for run in runs),
    }


def _run(
    data: str, method: str, seed: int, rows: int, iterations: int, budget: float | None
) -> dict[str, Any]:
    """Fit in a process of its own and return scores, cost and held-out latents."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "latents.npy"
        task = json.dumps([data, method, seed, rows, iterations, budget, str(file)])
        said = run_module("benchmarks.estimators", task, what=f"Fitting {method} to {data}")
        return {**json.loads(said.splitlines()[-1]), "latents": np.load(file)}


def fit_one(task: str) -> dict[str, Any]:
    """Fit in this process."""
    name, method, seed, rows, iterations, budget, file = json.loads(task)
    series = DATA[name](rows)
    methods: dict[str, Callable[..., np.ndarray]] = {OURS: _ours, FAST_ICA: _fast_ica}
    start = time.perf_counter()
    if method in methods:
        latents = methods[method](series, seed)
    else:
        latents = _cebra(series, seed, iterations, budget)
    seconds = time.perf_counter() - start
    np.save(file, latents)
    r2 = None if series.factors is None else float(affine_r2(latents, series.factors))
    return {"r2": r2, "seconds": seconds, "bytes": peak_memory()}


def _ours(series: Series, seed: int) -> np.ndarray:
    from demix.estimators.contrastive import ContrastiveDemixer

    demixer = ContrastiveDemixer(series.n_latents, space=series.space, random_state=seed)
    return demixer.fit(series.x).transform(series.held_out)


def _fast_ica(series: Series, seed: int) -> np.ndarray:
    from sklearn.decomposition import FastICA

    ica = FastICA(series.n_latents, random_state=seed, max_iter=1000)
    latents: np.ndarray = ica.fit(series.x).transform(series.held_out)
    return latents


def _cebra(series: Series, seed: int, iterations: int, budget: float | None) -> np.ndarray:
    """Fit the peer with its defaults for single rows; with a budget, stop after so many seconds."""
    import torch
    from cebra import CEBRA as Peer

    def fitted(steps: int) -> Any:
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002 the peer draws from it
        sphere = series.space == "sphere"
        return Peer(
            model_architecture="offset1-model" if sphere else "offset1-model-mse",
            distance="cosine" if sphere else "euclidean",
            conditional="time",
            time_offsets=1,
            output_dimension=series.n_latents,
            batch_size=512,
            max_iterations=steps,
            device="cpu",
            verbose=False,
        ).fit(series.x)

    if budget is not None:
        start = time.perf_counter()
        fitted(100)
        iterations = max(1, int(100 * budget / (time.perf_counter() - start)))
    latents: np.ndarray = fitted(iterations).transform(series.held_out)
    return latents


if __name__ == "__main__":
    print(json.dumps(fit_one(sys.argv[1])))
