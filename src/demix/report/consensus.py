"""The page about what several runs agree on."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from demix.report.blocks import Block, Facts, Figure, Page, Section, Table, Verdict, noted, settings
from demix.report.figures import gain_of, interval_dots, left_out, names_of, recovered_scatter
from demix.report.fit import latent_sections
from demix.report.style import interval, number
from demix.report.words import said

MOST_COMPARED = 10  # more panels of one dimension each would be too small to see anything in


def consensus_page(
    found: Mapping[str, Any],
    latents: ArrayLike,
    facts: Mapping[str, object],
    *,
    threshold: float,
    runs: ArrayLike | None,
    in_time: bool,
    notes: Sequence[str],
    provenance: Mapping[str, object],
) -> Page:
    """Return the page of a consensus: stability of each dimension, two runs compared, latents.

    ``found`` is what ``consensus.json`` holds; ``latents`` ``(N, n)`` are those of all rows,
    ``in_time`` if their order means something. ``facts`` are assumptions and settings by name,
    among them ``estimator`` and ``runs may differ by``. A dimension counts as stable from an R² of
    ``threshold`` on. ``runs`` ``(R, K, n)`` are latents of each run for the same held-out rows, in
    the coordinates of the consensus; ``notes`` are warnings.
    """
    values = np.asarray(latents)
    labels = names_of(None, values.shape[1], "dimension")
    sections = [
        Section("Result", _result(found, facts)),
        Section("Stability", _stability(found, labels, threshold)),
    ]
    if runs is not None:
        sections.append(Section("Two runs", [_two_runs(found, np.asarray(runs), labels)]))
    sections += latent_sections(values, "dimension", in_time=in_time)
    sections += noted(notes)
    count, theorem = len(found["seeds"]), found["theorem"]
    title = f"What {count} runs agree on: {len(labels)} latents of {found['rows']} rows"
    known = {"estimator": facts["estimator"], "differ": facts["runs may differ by"], "runs": count}
    known |= {"theorem": f" ({theorem})" if theorem else "", "rows": found["held_out_rows"]}
    words = said("consensus", **known)
    return Page(title, words["summary"], sections, provenance)


def _result(found: Mapping[str, Any], facts: Mapping[str, object]) -> list[Block]:
    stable = np.asarray(found["stable"], dtype=bool)
    tiles = {
        "stable dimensions": f"{int(stable.sum())} of {len(stable)}",
        "mean held-out R²": number(float(np.mean(found["stability"])), 3),
        "largest R² of shuffled rows": number(float(np.max(found["null"])), 3),
        "R² of untrained encoders": number(float(found["untrained"]), 3),
    }
    verdict = Verdict(
        "good" if stable.all() else "neutral" if stable.any() else "bad", found["verdict"]
    )
    return [verdict, Facts(tiles), *settings(facts)]


def _stability(found: Mapping[str, Any], labels: list[str], threshold: float) -> list[Block]:
    *ends, null = (found[key] for key in ("stability", "low", "high", "null"))
    figure = Figure(
        interval_dots(labels, *ends, title="held-out R²", line=threshold, null=null),
        **said("stability", threshold=threshold, dimensions=len(labels)),
    )
    words = ["stable" if stable else "not stable" for stable in found["stable"]]
    lines = [
        [label, number(r2, 3), interval(low, high), number(null, 3), word]
        for label, r2, low, high, null, word in zip(labels, *ends, null, words, strict=True)
    ]
    header = ["Dimension", "R²", "95 % interval", "shuffled", "verdict"]
    gains = [gain_of(gain) for gain in found["gains"]]
    each = Table(
        ["Run", "mean R²", "information (bits)", "95 % interval"],
        [
            [
                *(f"seed {seed}", number(float(np.mean(r2)), 3)),
                *(number(gain["bits"], 3), interval(gain["low"], gain["high"])),
            ]
            for seed, r2, gain in zip(found["seeds"], found["per_run"], gains, strict=True)
        ],
        **said("each run"),
    )
    return [figure, Table(header, lines, "The same in numbers."), each]


def _two_runs(found: Mapping[str, Any], runs: np.ndarray, labels: list[str]) -> Figure:
    """Compare the run that agrees most with the others with the one that agrees least."""
    each = np.mean(found["per_run"], axis=1)
    first, second = (
        (f"seed {found['seeds'][run]}", runs[run][:, :MOST_COMPARED])
        for run in (int(each.argmax()), int(each.argmin()))
    )
    rest = left_out(MOST_COMPARED, len(labels), "dimensions")
    names = labels[:MOST_COMPARED]
    return Figure(
        recovered_scatter(first[1], second[1], names, across=first[0], up=second[0]),
        **said("two runs", first=first[0], second=second[0], shown=len(names), rest=rest),
    )
