"""Check-ups of many processes, and how often they were right."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
from scipy import stats
from sklearn.decomposition import PCA

from benchmarks.calibration.process import Process, Sample
from benchmarks.calibration.processes import PROCESSES
from demix._support.errors import DemixWarning
from demix.diagnostics.check import Verdict
from demix.diagnostics.checkup import checkup
from demix.diagnostics.model_checks import SCORES
from demix.metrics.regression import affine_r2
from demix.theory.setting import EquivalenceName

_NEW, _COMPONENTS = 2000, 64
KINDS = ("pairs", "series", "labels", "instances")
# A class is overstated if the true factors are recovered up to it worse than this.
RECOVERED = 0.95


def run_process(process: Process, seed: int, *, rows: int | None = None) -> dict[str, Any]:
    """Draw a process, fit, check, and compare with the true factors on new rows.

    Returns
    -------
    dict
        Plain data: ``process``, ``seed``, ``kept``, ``breaks``, ``kind`` (pairs, series, labels or
        instances), ``verdicts`` by check, ``statistics``, ``supported``, ``relied_on``; and the
        scores of the true factors up to the class relied on (``truth``), up to the supported one
        (``claimed``, None without a claim) and by a linear map of the observations (``raw``).
    """
    rows = rows or process.rows
    random = np.random.default_rng([seed, *process.name.encode()])
    sample = process.draw(rows + _NEW, random)
    targets = {name: values[:rows] for name, values in sample.targets.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        model = sample.demixer.fit(sample.x[:rows], **targets)
        found = checkup(model, sample.x[:rows], seed=seed, **targets)
        latents, factors = model.transform(sample.x[rows:]), sample.factors[rows:]

        def recovered(name: Any) -> float:
            if name not in SCORES or (name == "orthogonal" and latents.shape != factors.shape):
                return 0.0
            return float(SCORES[name](latents, factors))

        claims = found.supported not in ("none", "undecided")
        return {
            "process": process.name,
            "seed": seed,
            "kept": process.kept,
            "breaks": list(process.breaks),
            "kind": _kind(sample),
            "verdicts": {check.name: check.verdict for check in found.checks},
            "statistics": {check.name: check.to_dict()["statistic"] for check in found.checks},
            "supported": found.supported,
            "relied_on": found.relied_on,
            "truth": recovered(found.relied_on),
            "claimed": recovered(found.supported) if claims else None,
            "raw": _raw(sample.x[rows:].reshape(len(factors), -1), factors),
        }


def _kind(sample: Sample) -> str:
    in_time = sample.demixer.supervision == "pairs" and not sample.targets
    return "series" if in_time else str(sample.demixer.supervision)


def _raw(x: np.ndarray, factors: np.ndarray) -> float:
    """Return the R² of factors by the leading principal components of rows, 64 of them at most."""
    if x.shape[1] > _COMPONENTS:
        x = PCA(_COMPONENTS, random_state=0).fit_transform(x)
    return float(affine_r2(x, factors))


def is_run(run: Any) -> bool:
    """Whether plain data are what :func:`run_process` returns, and ``seconds``.

    Examples
    --------
    >>> from benchmarks.calibration.run import is_run
    >>> is_run({"process": "sphere, vMF", "seed": 0})
    False
    """
    match run:
        case {
            "process": name,
            "seed": int(seed),
            "kept": bool(kept),
            "breaks": breaks,
            "kind": kind,
            "verdicts": dict(verdicts),
            "statistics": dict(statistics),
            "supported": supported,
            "relied_on": relied_on,
            "truth": float(truth),
            "claimed": claimed,
            "raw": float(raw),
            "seconds": float(seconds),
        }:
            scores = [x for x in (claimed, *statistics.values()) if x is not None]
            numbers = [seconds, truth, raw, *scores]
            return (
                (name, kept, breaks) in [(p.name, p.kept, list(p.breaks)) for p in PROCESSES]
                and not isinstance(seed, bool)
                and seed >= 0
                and kind in KINDS
                and all(verdict in get_args(Verdict) for verdict in verdicts.values())
                and statistics.keys() == verdicts.keys()
                and relied_on in get_args(EquivalenceName)
                and supported in (*get_args(EquivalenceName), "undecided")
                and (claimed is None) == (supported in ("none", "undecided"))
                and all(isinstance(x, float) and math.isfinite(x) for x in numbers)
            )
    return False


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count outcomes of fits where all assumptions hold, overstated claims, and power.

    A claim is overstated if the factors are recovered up to the supported class worse than
    `RECOVERED`, or no better than by a linear map of the observations. Power counts fits that
    recover the factors up to the class relied on, and leave open at most half of what a linear map
    of the observations does; it is how often that very class is supported. Every share comes with
    its exact (Clopper-Pearson) 95 % interval.
    """
    valid: dict[str, list[dict[str, Any]]] = defaultdict(list)
    broken: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        (broken if run["breaks"] else valid)[run["process"]].append(run)

    def counted(outcome: str) -> dict[str, Any]:
        return {
            name: share(run["supported"] == outcome for run in of) for name, of in valid.items()
        }

    claims = [run for run in runs if run["claimed"] is not None]
    found = [
        run
        for run in runs
        if not run["breaks"]
        and run["truth"] >= RECOVERED
        and 1 - run["truth"] <= (1 - run["raw"]) / 2
    ]
    fired = {
        name: share(
            any(run["verdicts"].get(check) in ("warn", "fail") for check in run["breaks"])
            for run in of
        )
        for name, of in broken.items()
    }
    return {
        "contradicted": counted("none"),
        "undecided": counted("undecided"),
        "detected": fired,
        "alarmed": share(
            any(verdict in ("warn", "fail") for verdict in run["verdicts"].values())
            for of in valid.values()
            for run in of
        ),
        "overstated": {
            kind: share(
                run["claimed"] < RECOVERED or run["claimed"] <= run["raw"]
                for run in claims
                if run["kind"] == kind
            )
            for kind in KINDS
        },
        "power": share(run["supported"] == run["relied_on"] for run in found),
    }


def share(found: Iterable[bool]) -> dict[str, float]:
    """Return how often something was found, of how many, and the interval of its probability.

    Examples
    --------
    >>> from benchmarks.calibration.run import share
    >>> found = share([True] * 20)
    >>> found["share"], round(found["low"], 3)
    (1.0, 0.832)
    """
    values = list(found)
    count, total = sum(values), len(values)
    interval = stats.binomtest(count, total).proportion_ci(0.95) if total else None
    return {
        "count": count,
        "of": total,
        "share": count / total if total else float("nan"),
        "low": float(interval.low) if interval else 0.0,
        "high": float(interval.high) if interval else 1.0,
    }


def calibration_table(runs: Sequence[dict[str, Any]]) -> str:
    """Return Markdown: outcomes, detections, overstated claims and power, with intervals."""
    heads = {
        "contradicted": ("process, where all assumptions hold", "ends in none"),
        "undecided": ("process, where all assumptions hold", "is undecided"),
        "detected": ("process, where one is broken: what counts", "the right check fires"),
    }
    lines = []
    for title, kept in (("Processes the margins were chosen on", False), ("Kept out", True)):
        part = [run for run in runs if run["kept"] == kept]
        if not part:
            continue
        found = summary(part)
        breaks = {run["process"]: ": " + " or ".join(run["breaks"]) for run in part}
        lines += [f"### {title}", ""]
        for key, (what, counted) in heads.items():
            if not found[key]:
                continue
            lines += [
                f"| {what} | {counted} | runs | 95 % interval |",
                "| :--- | ---: | ---: | ---: |",
            ]
            lines += [
                f"| {name}{breaks[name] if key == 'detected' else ''} | {_cells(value)} |"
                for name, value in found[key].items()
            ]
            count, of = (sum(value[x] for value in found[key].values()) for x in ("count", "of"))
            together = share([True] * int(count) + [False] * int(of - count))
            lines += [f"| all together | {_cells(together)} |", ""]
        lines += [
            "| all processes | share | runs | 95 % interval |",
            "| :--- | ---: | ---: | ---: |",
            *(
                f"| claims from {kind} that are overstated | {_cells(found['overstated'][kind])} |"
                for kind in KINDS
                if found["overstated"][kind]["of"]
            ),
            f"| recovered factors whose class is supported | {_cells(found['power'])} |",
            f"| fits without a fault in which any check fires | {_cells(found['alarmed'])} |",
            "",
        ]
    return "\n".join(lines)


def _cells(value: dict[str, float]) -> str:
    interval = f"{100 * value['low']:.0f} to {100 * value['high']:.0f} %"
    return f"{100 * value['share']:.0f} % | {value['count']} of {value['of']} | {interval}"
