"""The bars that the measurements must pass."""

from __future__ import annotations

from typing import Any

from benchmarks.estimators import CEBRA, OURS
from benchmarks.sizes import Sizes
from demix.losses.similarities import SimilarityName

_MIB = 2**20


def judge(sections: dict[str, Any], sizes: Sizes) -> list[dict[str, Any]]:
    """Put each bar beside what was measured.

    Parameters
    ----------
    sections : dict
        The sections that were measured.
    sizes : Sizes
        Where the bars are measured; only those of full size are judged.

    Returns
    -------
    list of dict
        ``name``, ``sense`` (``"at least"`` or ``"at most"``), ``bar``, ``measured``, ``unit``,
        ``met`` (None where nothing was measured or it is not judged) and ``note``.
    """
    bars = []
    if "contrast" in sections:
        contrast = sections["contrast"]
        bars += [
            _speed(contrast, "dot", sizes.paper_batch, 8.0),
            _speed(contrast, 1, sizes.power_batch, 20.0),
            _speed(contrast, 3, sizes.power_batch, 20.0),
            _large(contrast, sizes.large_batch),
            *_ladder(contrast, sizes),
        ]
    if "convergence" in sections:
        bars += _scores(sections["convergence"])
    if "step" in sections:
        bars += _shares(sections["step"])
    if "scores" in sections:
        scores = sections["scores"]
        name = f"all scores of {scores['samples']} x {scores['dim']} latents"
        together = sum(entry["seconds"] for entry in scores["entries"])
        bars.append(_bar(name, "at most", 60.0, together, "s"))
    if "estimators" in sections:
        bars += _recovery(sections["estimators"]["entries"])
    if "everyday" in sections:
        everyday = sections["everyday"]
        name, unit = "a default step on one thread", "times its products and its loss"
        bars.append(_bar(name, "at most", 1.16, everyday["share"], unit))
        name, unit = "a default fit beside two busy processes", "times as long as alone"
        bars.append(_bar(name, "at most", 3.0, everyday["fit"]["slower"], unit))
    if "sweep" in sections:
        sweep = sections["sweep"]
        name = f"a sweep of {sweep['cells']} short cells on {sweep['workers']} workers"
        bars.append(_bar(name, "at most", 0.6, sweep["share"], "of the time of one process"))
    if "distributed" in sections:
        bars += _ranks(sections["distributed"])
    for bar in bars:
        bar["met"] = None if sizes.name != "full" else _met(bar)
    return bars


def _bar(
    name: str, sense: str, bar: float, measured: float | None, unit: str, note: str = ""
) -> dict[str, Any]:
    return {
        "name": name,
        "sense": sense,
        "bar": bar,
        "measured": measured,
        "unit": unit,
        "note": note,
    }


def _met(bar: dict[str, Any]) -> bool | None:
    """Tell whether a bar is met; a score that was never reached misses its bar."""
    if bar["measured"] is None:
        return None if bar["note"] else False
    if bar["sense"] == "at least":
        return bool(bar["measured"] >= bar["bar"])
    return bool(bar["measured"] <= bar["bar"])


def _speed(
    contrast: dict[str, Any], similarity: SimilarityName, batch: int, bar: float
) -> dict[str, Any]:
    entry = _entry(contrast, similarity, batch)
    name = f"contrast against the dense form, {entry['title']}, B = {batch}"
    measured = entry["speedup"].get("dense")
    reason = entry["left_out"].get("dense")
    note = f"The dense form cannot run: {reason}" if reason else ""
    return _bar(name, "at least", bar, measured, "times faster", note)


def _entry(contrast: dict[str, Any], similarity: SimilarityName, batch: int) -> dict[str, Any]:
    found: dict[str, Any] = next(
        entry
        for entry in contrast["entries"]
        if entry["similarity"] == similarity and entry["batch"] == batch
    )
    return found


def _large(contrast: dict[str, Any], batch: int) -> dict[str, Any]:
    heaviest = max(entry["bytes"] for entry in contrast["large"])
    name = f"peak extra memory of contrast, any similarity, B = {batch}"
    return _bar(name, "at most", 128.0, heaviest / _MIB, "MiB")


def _ladder(contrast: dict[str, Any], sizes: Sizes) -> list[dict[str, Any]]:
    """Judge where products are the limit, against all peers, and what a potential adds."""
    dim, batch = sizes.product_dim, sizes.power_batch
    ladder = contrast["ladder"]
    rung = next(entry for entry in ladder if (entry["dim"], entry["batch"]) == (dim, batch))
    where = f"dot product, d = {dim}, B = {batch}"
    closest = min(
        ((ratio, form, entry) for entry in ladder for form, ratio in entry["speedup"].items()),
        key=lambda found: found[0],
    )
    ratio, form, entry = closest
    note = f"The closest peer is {form} at d = {entry['dim']}, B = {entry['batch']}"
    dense = rung["speedup"].get("dense")
    reason = "" if dense else f"The dense form cannot run: {rung['left_out'].get('dense')}"
    added = 100 * contrast["potential"]["added"]
    return [
        _bar(
            f"contrast against the dense form, {where}",
            "at least",
            2.5,
            dense,
            "times faster",
            reason,
        ),
        _bar(f"share of the float32 peak, {where}", "at least", 60.0, 100 * rung["share"], "%"),
        _bar(
            "contrast against the closest peer, any d, from B = 1024 on",
            *("at least", 1.0, ratio, "times faster", note),
        ),
        _bar("what a potential adds to a training step", "at most", 35.0, added, "%"),
    ]


def _scores(convergence: dict[str, Any]) -> list[dict[str, Any]]:
    bars = []
    for entry in convergence["entries"]:
        score = {"r2": "R²", "mcc": "MCC"}[entry["score"]]
        whose = " (the paper's)" if entry["paper"] else ""
        where = f"{entry['experiment']} row {entry['row']}"
        name = f"time to {score} {entry['target']:.2f} %{whose}, {where}"
        bar = 150.0 if entry["paper"] else 40.0
        reached = entry["seconds"] is not None
        unknown = reached and entry["dense_steps"] is None
        note = "The dense step does not fit into memory" if unknown else ""
        bars.append(_bar(name, "at most", bar, entry["dense_steps"], "dense paper steps", note))
    return bars


def _shares(step: dict[str, Any]) -> list[dict[str, Any]]:
    name = f"share of the float32 peak in a step of the paper's encoder, B = {step['batch']}"
    return [
        _bar(
            f"{name}, {entry['experiment']} row {entry['row']}",
            "at least",
            60.0,
            100 * entry["share_of_peak"],
            "%",
        )
        for entry in step["entries"]
    ]


def _recovery(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Compare the estimator with its peer: recovery, agreement between seeds, and time."""
    bars = []
    for data in dict.fromkeys(entry["data"] for entry in entries):
        found = {entry["method"]: entry for entry in entries if entry["data"] == data}
        ours, peer = found[OURS], found.get(CEBRA)
        if data == "walk on a sphere":
            bars.append(_bar(f"held-out R², {data}", "at least", 98.5, 100 * ours["r2"], "%"))
        if peer is None:
            continue
        for key in ("r2", "consistency"):
            if ours[key] is not None and peer[key] is not None:
                what = {"r2": "held-out R²", "consistency": "agreement between seeds"}[key]
                name = f"{what}, {data}, beside CEBRA"
                bars.append(_bar(name, "at least", 100 * peer[key], 100 * ours[key], "%"))
        name = f"time of a fit, {data}, beside CEBRA"
        bars.append(_bar(name, "at most", peer["seconds"], ours["seconds"], "s"))
    return bars


def _ranks(section: dict[str, Any]) -> list[dict[str, Any]]:
    batch = section["batch"]
    two = next(e for e in section["steps"] if (e["ranks"], e["batch"]) == (2, batch))
    loss = next(entry for entry in section["losses"] if entry["batch"] == batch)
    few = section["cores"] < 2
    note = "Two ranks need two cores" if few else ""
    speedup, added = (None, None) if few else (two["speedup"], 100 * loss["added"])
    return [
        _bar(
            f"two ranks against one, each with one thread, B = {batch}",
            *("at least", 1.6, speedup, "times the throughput", note),
        ),
        _bar(
            f"what the exchange of keys adds to the loss on two ranks, B = {batch}",
            *("at most", 10.0, added, "%", note),
        ),
    ]
