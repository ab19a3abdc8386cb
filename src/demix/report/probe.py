"""The page about a probe: which factors a linear map reads out of features."""

from collections.abc import Mapping, Sequence
from typing import Any

from demix.report.bars import MEASURES, Factor, bars_svg, found_at
from demix.report.blocks import Block, Facts, Page, Picture, Section, Table, Text, Verdict
from demix.report.style import interval, number, shown

_HOW = (
    "A linear map is fitted to half of the rows: ridge regression for numbers (of sine and cosine "
    "if they are periodic), logistic regression for categories. A fifth of the rows selects the "
    "penalty, the others score the map. Intervals come from a bootstrap over the scored rows.",
    "Chance is the same score with the held-out values of a factor in random order. If features "
    "and factor are independent, all orders are equally likely. Then p, the share of orders that "
    "score as well, is exact if the rows are independent of each other. If several rows show one "
    "film, one patient or one object, a map may recognise the film, and p is too small.",
    "Bonferroni: below 0.05 the probability of any false finding is at most 5 %. "
    "Benjamini-Hochberg: at most 5 % of the findings are expected to be false. Only tested factors "
    "count; which ones can be tested was decided without the features.",
)


def probe_page(found: Mapping[str, Any], *, features: str, factors: str) -> Page:
    """Return the page of a probe, ``found`` as in ``probe.json``.

    ``features`` and ``factors`` are the names of the two files.
    """
    tested = tested_of(found)
    others = [factor for factor in found["factors"] if not factor["testable"]]
    sections = [
        Section("Result", _result(found, tested)),
        Section("Numbers", [numbers_of(tested)]),
    ]
    if others:
        table = Table(
            ["Factor", "Kind", "Why"],
            [[factor["name"], factor["kind"], factor["reason"]] for factor in others],
            "Factors that cannot be tested, whatever the features.",
        )
        sections.append(Section("Not testable", [table]))
    how: list[Block] = [Text(words) for words in (*found.get("unmatched", ()), *_HOW)]
    sections.append(Section("Method", how))
    summary = (
        f"How well a linear map predicts each factor from {found['features']} features of "
        f"{sum(found['rows'].values())} rows, compared with chance."
    )
    return Page(f"Factors of {factors} in {features}", summary, sections, found["provenance"])


def tested_of(found: Mapping[str, Any]) -> list[Factor]:
    """Return the factors that were tested, the surest first."""
    tested = (factor for factor in found["factors"] if factor["testable"])
    return sorted(tested, key=lambda factor: (factor["p"], -factor["value"]))


def verdict_of(factors: Sequence[Factor], level: float) -> Verdict:
    """Return one sentence about the factors that were tested."""
    kinds = [found_at(factor, level) for factor in factors]
    sure, most = kinds.count("surely"), len(kinds) - kinds.count("no")
    text = (
        f"{most} of {len(kinds)} factors {'is' if most == 1 else 'are'} predicted better than by "
        f"chance if one in {1 / level:g} findings may be false (Benjamini-Hochberg), {sure} if "
        "none may (Bonferroni)."
    )
    return Verdict("good" if most == len(kinds) else "neutral" if most else "bad", text)


def _result(found: Mapping[str, Any], tested: Sequence[Factor]) -> list[Block]:
    level = float(found["level"])
    picture = Picture(
        bars_svg(tested, level),
        "How well each factor is predicted from the features, on rows used neither for fitting nor "
        "for selecting the penalty. A bar reaches from the mean score of shuffled rows to the "
        "score; the line at its end is the 95 % interval, the thin bar below it the range of "
        "shuffled rows.",
        alt=f"Bars of the scores of {len(tested)} factors, and those of shuffled rows.",
    )
    facts = {
        "factors tested": str(len(tested)),
        "not testable": str(len(found["factors"]) - len(tested)),
        **{f"{part} rows": str(count) for part, count in found["rows"].items()},
        "independent rows": f"{found['effective_rows']:.0f}",
        "permutations": str(found["permutations"]),
    }
    return [verdict_of(tested, level), Facts(facts), picture]


def numbers_of(tested: Sequence[Factor]) -> Table:
    """Return the scores of tested factors with intervals, chance, p and adjusted p."""
    header = ["Factor", "kind", "score", "value", "95 % interval", "chance", "p"]
    header += ["Bonferroni", "Benjamini-Hochberg", "other scores"]
    rows = []
    for factor in tested:
        others = (
            f"{MEASURES[name]} {number(score['value'], 3)}"
            for name, score in factor["scores"].items()
            if name != factor["measure"]
        )
        p_values = (factor[key] for key in ("p", "bonferroni", "benjamini_hochberg"))
        rows.append(
            [
                factor["name"],
                factor["kind"],
                MEASURES[factor["measure"]],
                number(factor["value"], 3),
                interval(factor["low"], factor["high"]),
                number(factor["chance"]["value"], 3),
                *(shown(float(p), ".2g") for p in p_values),
                ", ".join(others),
            ]
        )
    caption = "The same in numbers; p is for one factor alone, then adjusted for all."
    return Table(header, rows, caption)
