"""Tables and bars of the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import mean, median
from typing import Any, NamedTuple

from benchmarks.real.methods import LINEAR, METHODS, OURS
from benchmarks.real.sets import SETS
from demix.papers.pages.table import table_markdown

WITHIN, AGREEING = 0.02, 0.9
WAYS = ("linear", "knn")
Outcome = dict[str, Any]


class Row(NamedTuple):
    """What one method reaches on one set: medians over seeds; None where nothing is known."""

    scores: dict[str, dict[str, float]]
    agreement: float | None
    seconds: float | None
    supported: list[str]
    runs: int
    told: str


def rows_of(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Row]]:
    """Return the rows of all sets, both in the order of the registers."""
    found: dict[str, dict[str, Row]] = {}
    for name, dataset in SETS.items():
        for method in METHODS[dataset.kind]:
            runs = [run for run in outcomes if (run["set"], run["method"]) == (name, method)]
            if runs:
                found.setdefault(name, {})[method] = _row(runs)
    return found


def _row(runs: Sequence[Outcome]) -> Row:
    well = [run for run in runs if "error" not in run]
    if not well:
        return Row({}, None, None, [], 0, runs[0]["error"])
    scores = {
        factor: {way: median(run["scores"][factor][way] for run in well) for way in WAYS}
        for factor in well[0]["scores"]
    }
    pairs = [score for run in well for score in run["agreement"].values()]
    supported = [run["supported"] for run in well if "supported" in run]
    failed = next((run["error"] for run in runs if "error" in run), "")
    seconds = median(run["processor"] for run in well)
    return Row(scores, mean(pairs) if pairs else None, seconds, supported, len(well), failed)


def bars(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Return the three counts: sets that reach the best peer, the linear map, and agreement.

    Each is ``count`` of ``of`` sets, and the ``missing`` sets by name; a set counts in the first
    two if it does for every factor but nuisances, and both read-outs.
    """
    counted: dict[str, dict[str, bool]] = {"best": {}, "linear": {}, "agreement": {}}
    for name, of in rows_of(outcomes).items():
        if OURS not in of or not of[OURS].scores:
            continue
        own, peers = of[OURS], _peers(of)
        if peers:
            counted["best"][name] = all(
                score >= best - WITHIN for score, best in _beside(name, own, peers.values())
            )
        if LINEAR in of and of[LINEAR].scores:
            counted["linear"][name] = all(
                score >= best - WITHIN for score, best in _beside(name, own, [of[LINEAR]])
            )
        if own.agreement is not None and any(
            (row.agreement or 0) >= AGREEING for row in peers.values()
        ):
            counted["agreement"][name] = own.agreement >= AGREEING
    return {
        bar: {
            "count": sum(reached.values()),
            "of": len(reached),
            "missing": [name for name, well in reached.items() if not well],
        }
        for bar, reached in counted.items()
    }


def _peers(of: dict[str, Row]) -> dict[str, Row]:
    return {name: row for name, row in of.items() if name not in (OURS, LINEAR) and row.scores}


def _beside(name: str, own: Row, others: Iterable[Row]) -> Iterator[tuple[float, float]]:
    """Yield each score of ours on a set and the best of the others."""
    rows = list(others)
    for factor, ways in own.scores.items():
        for way, score in () if factor in SETS[name].nuisance else ways.items():
            yield score, max(row.scores[factor][way] for row in rows)


def real_table(data: dict[str, Any]) -> str:
    """Return Markdown: the bars, each set beside its best peers, and all methods."""
    rows = rows_of(data["outcomes"])
    lines = ["### The bars", "", *_sentences(data["outcomes"]), ""]
    lines += ["#" + table_markdown(*_overview(rows, data))]
    lines += ["#" + table_markdown(*_everything(rows, data))]
    return "\n".join(lines).replace("\n## ", "\n### ").replace("\n\n\n", "\n\n")


def _sentences(outcomes: Sequence[Outcome]) -> list[str]:
    found = bars(outcomes)
    what = {
        "best": "demix is at or above the best peer, within 0.02, in both read-outs",
        "linear": "demix is not below its own linear map by more than 0.02 in either read-out",
        "agreement": "seeds agree with at least 0.9, where those of any peer do",
    }
    said = []
    for bar, sentence in what.items():
        count, of, missing = (found[bar][key] for key in ("count", "of", "missing"))
        but = f"; not on {', '.join(missing)}" if missing else ""
        said.append(f"- On {count} of {of} sets {sentence}{but}.")
    return said


def _overview(rows: dict[str, dict[str, Row]], data: dict[str, Any]) -> tuple[Any, ...]:
    lines = []
    for name, of in rows.items():
        own, line, peers = of.get(OURS), of.get(LINEAR), _peers(of)
        for factor in own.scores if own else ():
            cells = [f"{name}: {factor}"]
            for way in WAYS:
                best = max(peers, key=lambda one: peers[one].scores[factor][way], default=None)
                assert own is not None
                cells.append(_number(own.scores[factor][way]))
                cells.append(
                    "–" if best is None else f"{_number(peers[best].scores[factor][way])} ({best})"
                )
                cells.append(_number(line.scores[factor][way] if line and line.scores else None))
            lines.append(cells)
    header = ["set: factor", "demix, linear read-out", "best peer", "linear map"]
    header += ["demix, kNN read-out", "best peer", "linear map"]
    about = [f"{name}: {SETS[name].about}; {_size(data['sets'].get(name))}." for name in rows]
    notes = [
        "R² of numbers and angles (as cosine and sine), the share of right answers for classes; on "
        "the last fifth of the rows, of methods and read-outs that are fitted to the rest.",
        "Angles of digits are a nuisance: what a label does not tell. No bar asks for them.",
        *about,
    ]
    return "demix beside the best peer and its own linear map", header, lines, notes


def _size(about: dict[str, Any] | None) -> str:
    if about is None:
        return "not run"
    shape = " x ".join(map(str, about["shape"]))
    return f"{shape}, {about['n_latents']} latents, lag {about['lag']}"


def _everything(rows: dict[str, dict[str, Row]], data: dict[str, Any]) -> tuple[Any, ...]:
    lines, notes = [], []
    for name, of in rows.items():
        for method, row in of.items():
            start = [name, method]
            if row.told:
                notes.append(f"{method} on {name}: {row.told}")
            for factor, ways in row.scores.items():
                numbers = [_number(ways[way]) for way in WAYS]
                spent = "–" if row.seconds is None else f"{row.seconds:.1f}"
                words = ", ".join(dict.fromkeys(row.supported)) or "–"
                lines.append(
                    [*start, factor, *numbers, _number(row.agreement), spent, str(row.runs), words]
                )
            if not row.scores:
                lines.append([*start, "failed", *4 * ["–"], "0", "–"])
    header = [
        "set",
        "method",
        "factor",
        "linear",
        "kNN",
        "agreement",
        "seconds",
        "seeds",
        "check-up",
    ]
    seeds = sorted({run["seed"] for run in data["outcomes"]})
    commits = sorted({run["commit"][:12] for run in data["outcomes"] if run.get("commit")})
    origin = data["provenance"]
    given = ", ".join(
        f"{name} {origin[name]}" for name in ("torch", "deeptime", "cebra") if name in origin
    )
    return (
        "All methods",
        header,
        lines,
        [
            f"Medians over seeds {', '.join(map(str, seeds))}, where so many are "
            "there. Agreement: held-out R² of a linear map from one seed's latents to another's. "
            "Seconds are those of one core. Check-up: "
            "the class that it supports, without its refits.",
            *notes,
            f"{given}; commit {', '.join(commits)}.",
        ],
    )


def _number(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"
