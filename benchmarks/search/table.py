"""What was tried and what it gave, factor by factor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import mean

from benchmarks.search.measure import HELD_BACK
from benchmarks.search.plan import FOUND
from benchmarks.search.store import Record
from benchmarks.search.variants import BASELINE, FACTORS, VARIANTS

Column = tuple[str, int]
_SHORT = {"clica-table1": "Table 1", "clica-table2": "Table 2"}
_SCORE = {"clica-table1": "R²", "clica-table2": "MCC"}

TITLE = "# The search for the laptop recipe"
"""How the page begins."""


def table(records: Sequence[Record]) -> str:
    """Return the page: for each budget one table, factor by factor, and its command."""
    lines = [TITLE, ""]
    lines += [
        "Held-out scores in percent, in brackets the difference from the baseline, the plan "
        "that the search started from: eight residual layers of 64 units, otherwise the laptop "
        f"plan. The laptop plan of today is `{FOUND}`. Every variant costs what the baseline "
        "costs: a variant whose step takes *cost* times as long gets that many times fewer "
        "steps. *Error* is what a variant leaves unexplained (one less the score) over what the"
        " baseline leaves, the geometric mean over the rows and seeds it was run on; below 1 it"
        " is better. A dash: it was not run there, or changes nothing. The smallest of each "
        "factor is bold; "
        "*noise* is the baseline on other weights and samples, so differences of its size mean "
        "nothing.",
        "",
    ]
    for budget in sorted({record["budget"] for record in records}):
        of_budget = [record for record in records if record["budget"] == budget]
        lines += _section(of_budget, budget)
    seeds = sorted({record["seed"] for record in records})
    commits = sorted({r["provenance"].get("commit", "unknown")[:12] for r in records})
    hours = sum(record["seconds"] or 0.0 for record in records) / 3600
    lines += [
        f"- Seeds {', '.join(map(str, seeds))}; {hours:.1f} hours of one core; "
        f"commit {', '.join(commits)}.",
    ]
    return "\n".join(lines) + "\n"


def _section(records: Sequence[Record], budget: float) -> list[str]:
    columns = sorted({(record["experiment"], record["row"]) for record in records})
    heads = [f"{_SHORT[name]} row {row}, {_SCORE[name]}" for name, row in columns]
    base = [record for record in records if record["variant"] == BASELINE]
    lines = [f"### Budget {budget:g}", "", "| variant | " + " | ".join([*heads, "cost", "error"])]
    lines[-1] += " |"
    lines.append("| :--- |" + " ---: |" * (len(columns) + 2))
    lines.append(_line(BASELINE, base, base, columns, best=False))
    for factor in FACTORS:
        of_factor = [record for record in records if record["factor"] == factor]
        if not of_factor:
            continue
        names = list(dict.fromkeys(record["variant"] for record in of_factor))
        tried = {name: [r for r in of_factor if r["variant"] == name] for name in names}
        errors = {name: error(found, base) for name, found in tried.items()}
        best = min(names, key=lambda name: errors[name])
        lines.append(f"| *{factor}* |" + " |" * (len(columns) + 2))
        lines += [
            _line(name, tried[name], base, columns, best=name == best and factor != "noise")
            for name in sorted(names, key=lambda name: errors[name])
        ]
    return [*lines, "", f"Regenerate with `{_command(records, columns)}`.", ""]


def _command(records: Sequence[Record], columns: list[Column]) -> str:
    """Write the command that makes ``records``, all of one budget, again."""
    names = list(dict.fromkeys(record["variant"] for record in records))
    if set(VARIANTS) <= set(names):
        names = ["all", *(name for name in names if name not in VARIANTS)]
    rows = [f"{_SHORT[name].replace('Table ', 't')}:{row}" for name, row in columns]
    allow = " --held-back" if set(rows) & set(HELD_BACK) else ""
    seeds = ",".join(map(str, sorted({record["seed"] for record in records})))
    return (
        f"python -m benchmarks.search --rows {','.join(rows)}{allow} --variants {','.join(names)} "
        f"--seeds {seeds} --budget {records[0]['budget']:g}"
    )


def error(found: Iterable[Record], base: Sequence[Record]) -> float:
    """Return the unexplained part over the baseline's: geometric mean; infinite if one failed."""
    logarithms = []
    for record, reference in _paired(found, base):
        if record["score"] is None:
            return math.inf
        logarithms.append(math.log((1 - record["score"]) / (1 - reference["score"])))
    return math.exp(mean(logarithms)) if logarithms else math.inf


def _paired(found: Iterable[Record], base: Sequence[Record]) -> list[tuple[Record, Record]]:
    """Put each run beside the baseline of its row and seed."""
    known = {(r["experiment"], r["row"], r["seed"]): r for r in base if r["score"] is not None}
    places = [(record, (record["experiment"], record["row"], record["seed"])) for record in found]
    return [(record, known[place]) for record, place in places if place in known]


def _line(
    name: str, found: Sequence[Record], base: Sequence[Record], columns: list[Column], *, best: bool
) -> str:
    cells = [f"**{name}**" if best else name]
    for column in columns:
        here = [r for r in found if (r["experiment"], r["row"]) == column]
        cells.append(_cell(here, base, with_difference=name != BASELINE))
    costs = [record["cost"] for record in found if record["cost"] is not None]
    cells.append(_range(costs))
    ratio = error(found, base)
    shown = f"{ratio:.2f}" if math.isfinite(ratio) else "–"
    cells.append(f"**{shown}**" if best else shown)
    return "| " + " | ".join(cells) + " |"


def _cell(here: Sequence[Record], base: Sequence[Record], *, with_difference: bool) -> str:
    if not here:
        return "–"
    if any(record["score"] is None for record in here):
        return "failed"
    text = f"{100 * mean(record['score'] for record in here):.2f}"
    pairs = _paired(here, base)
    if pairs and with_difference:
        text += f" ({100 * mean(r['score'] - b['score'] for r, b in pairs):+.2f})"
    return text


def _range(costs: Sequence[float]) -> str:
    """Write the costs of all rows: one number if they agree."""
    if not costs:
        return "–"
    low, high = f"{min(costs):.2f}", f"{max(costs):.2f}"
    return low if low == high else f"{low}–{high}"
