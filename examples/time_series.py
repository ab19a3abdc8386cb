"""The time of the year, from nothing but the CO2 in the air.

Takes the weekly record of Mauna Loa (Keeling and Whorf 2004) that statsmodels ships.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from statsmodels.datasets import co2

from common import ACCENT, GREY, apart, best_of, error_and_chance, keep, panels, parser, turned
from demix import ContrastiveDemixer

# A row is the record of so many weeks, less the mean of the year that ends with them. So no row
# knows its date, and none has more of the trend than any other.
WEEKS, YEAR = 4, 52
# From this year on nothing is seen in training.
LATER = 1990


def main(given: Sequence[str] | None = None) -> dict[str, Any]:
    """Recover the phase of the year on early years, and score it on later ones."""
    arguments = parser(__file__, str(__doc__)).parse_args(given)
    rows, date = windows()
    early = date < LATER

    def fit(seed: int) -> ContrastiveDemixer:
        # Positives share no week: what they have in common is the season.
        return ContrastiveDemixer(
            n_latents=2, space="sphere", lag=(WEEKS, WEEKS + 2), random_state=seed
        ).fit(rows[early])

    demixer = best_of(1 if arguments.quick else 5, fit, arguments.seed)
    found = {
        "demix": demixer.transform(rows),
        "the first two principal components": PCA(2).fit(rows[early]).transform(rows),
    }
    return shown(found, date, early, demixer, arguments)


def windows() -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return rows ``(N, WEEKS)``, and the date of the last week of each, in years."""
    record = co2.load_pandas().data["co2"].interpolate()
    date = record.index.year.to_numpy() + (record.index.day_of_year.to_numpy() - 1) / 365.25
    years = np.lib.stride_tricks.sliding_window_view(record.to_numpy(), YEAR)
    rows = years[:, -WEEKS:] - years.mean(axis=1, keepdims=True)
    return rows.astype(np.float32), date[YEAR - 1 :]


def shown(
    found: dict[str, NDArray[np.floating]],
    date: NDArray[np.float64],
    early: NDArray[np.bool_],
    demixer: ContrastiveDemixer,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Draw and keep the errors in days."""
    known = 2 * np.pi * (date % 1)
    days = 365.25 / 360
    errors = {name: error_and_chance(z, known, early) for name, z in found.items()}
    figure, (phases, months) = panels(2)
    angle = turned(found["demix"], known, early)
    later = np.flatnonzero(~early)
    phases.plot(12 * (date[later] % 1), 12 * (angle[later] / (2 * np.pi) % 1), ".", color=ACCENT)
    phases.set(
        title=f"from {LATER} on", xlabel="month of the year", ylabel="month that was recovered"
    )
    month = (12 * (date % 1)).astype(int)
    error = days * apart(angle, known)
    months.bar(
        range(1, 13), [error[later][month[later] == m].mean() for m in range(12)], color=ACCENT
    )
    months.axhline(90 * days, color=GREY, linestyle=":", label="chance")
    months.set(title="mean error", xlabel="month", ylabel="days")
    months.legend(frameon=False)
    return keep(
        arguments,
        f"Time of the year, from {LATER} on, in days",
        ["recovered by", "mean error", "by chance"],
        [
            [name, f"{days * error:.1f}", f"{days * chance:.1f}"]
            for name, (error, chance) in errors.items()
        ],
        [
            f"Rows before {LATER} were trained on, {early.sum()} of them; {len(later)} later ones "
            "are scored. Rotation and reflection are fitted on the early ones.",
            f"Information about positives in blocks of the early years: {demixer.gain_}.",
        ],
        figure,
        errors=errors,
    )


if __name__ == "__main__":
    main()
