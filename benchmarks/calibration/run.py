"""Check-ups of many processes, and how often they were right."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import numpy as np
from scipy import stats

from benchmarks.calibration.processes import PROCESSES, Process
from demix._support.errors import DemixWarning
from demix.diagnostics.check import Verdict
from demix.diagnostics.checkup import checkup
from demix.diagnostics.model_checks import SCORES
from demix.theory.setting import EquivalenceName

_NEW = 2000
# A class is overstated if the true factors are recovered up to it worse than this.
RECOVERED = 0.9


def run_process(process: Process, seed: int, *, rows: int = 6000) -> dict[str, Any]:
    """Draw a process, fit, check, and compare with the true factors on new rows.

    Returns
    -------
    dict
        Plain data: ``process``, ``seed``, ``kept``, ``breaks``, ``verdicts`` by check,
        ``statistics``, ``supported``, ``relied_on`` and ``truth``, the score of the true factors
        up to the supported class (None if none is).
    """
    random = np.random.default_rng([seed, *process.name.encode()])
    sample = process.draw(rows + _NEW, random)
    targets = {name: values[:rows] for name, values in sample.targets.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        model = sample.demixer.fit(sample.x[:rows], **targets)
        found = checkup(model, sample.x[:rows], seed=seed, **targets)
    truth = None
    if found.supported != "none":
        latents = model.transform(sample.x[rows:])
        score = SCORES[found.supported]
        same = latents.shape == sample.factors[rows:].shape or found.supported != "orthogonal"
        truth = float(score(latents, sample.factors[rows:])) if same else 0.0
    return {
        "process": process.name,
        "seed": seed,
        "kept": process.kept,
        "breaks": list(process.breaks),
        "verdicts": {check.name: check.verdict for check in found.checks},
        "statistics": {check.name: check.to_dict()["statistic"] for check in found.checks},
        "supported": found.supported,
        "relied_on": found.relied_on,
        "truth": truth,
    }


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
            "verdicts": dict(verdicts),
            "statistics": dict(statistics),
            "supported": supported,
            "relied_on": relied_on,
            "truth": truth,
            "seconds": float(seconds),
        }:
            numbers = [x for x in (seconds, truth, *statistics.values()) if x is not None]
            return (
                (name, kept, breaks) in [(p.name, p.kept, list(p.breaks)) for p in PROCESSES]
                and not isinstance(seed, bool)
                and seed >= 0
                and all(verdict in get_args(Verdict) for verdict in verdicts.values())
                and statistics.keys() == verdicts.keys()
                and all(name in get_args(EquivalenceName) for name in (supported, relied_on))
                and (truth is None) == (supported == "none")
                and all(isinstance(x, float) and math.isfinite(x) for x in numbers)
            )
    return False


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count false alarms of each check, detections of each process, and overstated classes.

    Every share comes with its exact (Clopper-Pearson) 95 % interval.
    """
    alarms: dict[str, list[bool]] = defaultdict(list)
    fires: dict[str, list[bool]] = defaultdict(list)
    right: dict[str, list[bool]] = defaultdict(list)
    for run in runs:
        fired = {name for name, verdict in run["verdicts"].items() if verdict in ("warn", "fail")}
        if run["breaks"]:
            fires[run["process"]].append(bool(fired & set(run["breaks"])))
        else:
            right[run["process"]].append(run["supported"] != "none")
            for name, verdict in run["verdicts"].items():
                if verdict != "skipped":
                    alarms[name].append(name in fired)
    overstated = [run["truth"] is not None and run["truth"] < RECOVERED for run in runs]
    return {
        "false alarms": {name: share(found) for name, found in alarms.items()},
        "detected": {name: share(found) for name, found in fires.items()},
        "supported": {name: share(found) for name, found in right.items()},
        "overstated": share(overstated),
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
    """Return Markdown: false alarms, detections and overstated classes, with intervals."""
    lines = []
    for title, kept in (("Processes the margins were chosen on", False), ("Kept out", True)):
        part = [run for run in runs if run["kept"] == kept]
        if not part:
            continue
        found = summary(part)
        counts = {run["process"]: " or ".join(run["breaks"]) for run in part if run["breaks"]}
        lines += [f"### {title}", ""]
        heads = {
            "false alarms": ("check, where all assumptions hold", "false alarms"),
            "supported": ("process, where all assumptions hold", "class supported"),
            "detected": ("process, where one is broken: what counts", "the right check fires"),
        }
        for key, (what, counted) in heads.items():
            if not found[key]:
                continue
            lines += [
                f"| {what} | {counted} | runs | 95 % interval |",
                "| :--- | ---: | ---: | ---: |",
            ]
            lines += [
                f"| {name}{': ' + counts[name] if key == 'detected' else ''} | {_cells(value)} |"
                for name, value in found[key].items()
            ]
            count, of = (sum(value[x] for value in found[key].values()) for x in ("count", "of"))
            together = share([True] * int(count) + [False] * int(of - count))
            lines += [f"| all together | {_cells(together)} |", ""]
        lines += [
            "| all processes | share | runs | 95 % interval |",
            "| :--- | ---: | ---: | ---: |",
        ]
        lines += [f"| class overstated | {_cells(found['overstated'])} |", ""]
    return "\n".join(lines)


def _cells(value: dict[str, float]) -> str:
    interval = f"{100 * value['low']:.0f} to {100 * value['high']:.0f} %"
    return f"{100 * value['share']:.0f} % | {value['count']} of {value['of']} | {interval}"
