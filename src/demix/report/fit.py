"""The page about a fit to data whose factors are usually not known."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from demix._support.validation import check_matrix
from demix.data.data import Data
from demix.report import blocks, figures
from demix.report.examples import nearest_examples
from demix.report.style import interval, number
from demix.report.training import training_sections
from demix.report.words import said

_ROWS, _IMAGES = 100_000, 2000  # that are drawn, or looked at, of very many
LEARNT_FROM = said("learnt from")


def fit_page(
    about: Mapping[str, Any],
    facts: Mapping[str, object],
    latents: ArrayLike | None = None,
    *,
    data: Data | None = None,
    factors: ArrayLike | None = None,
    factor_names: Sequence[str] | None = None,
) -> blocks.Page:
    """Return the page of a fit: its information, training, latents, images, known factors.

    ``about`` is what ``model.json`` tells of a fit, with ``time_order`` if the order of its rows
    counts. ``facts`` are assumptions and settings by name, among them ``space`` and ``latents``,
    their number. ``latents`` ``(N, n)``, ``data`` and ``factors`` ``(N, k)``, called
    ``factor_names``, are of the fitted rows; images are shown along each latent.
    """
    gain = figures.gain_of(about["gain"])
    guess = gain["ceiling"] * math.log(2)
    sections = [
        blocks.Section("Result", _result(gain, facts)),
        *training_sections(about["history"], about["best_step"], guess=guess),
    ]
    title = f"{facts['latents']} latents"
    if latents is not None:
        values = np.asarray(latents)
        title += f" of {about.get('rows', len(values))} rows"
        sections += latent_sections(values, "latent", in_time=bool(about.get("time_order")))
        if data is not None and len(data.shape) == 4:
            some = np.linspace(0, len(data) - 1, min(_IMAGES, len(data))).round().astype(np.int64)
            images = data.take(torch.from_numpy(some)).numpy()
            sections.append(blocks.Section("Examples", [nearest_examples(images, values[some])]))
        if factors is not None:
            from demix.metrics.registry import RECOVERY, all_scores  # half a second
            from demix.report.recovery import recovery_sections

            found, known = np.asarray(values, dtype=float), np.asarray(factors)
            alike = "auto" if about.get("time_order") else None
            scores = all_scores(found, known, categorical=[], only=RECOVERY, blocks=alike)
            sections += recovery_sections(found, known, scores, factor_names)
    sections += blocks.noted(about["notes"])
    provenance = {
        **about.get("origin", {}),
        "data": f"sha256 {about['data']}",
        "seed": about["parameters"].get("random_state"),
        **about["provenance"],
    }
    estimator, rest = about["estimator"], {"guess": guess, **gain, **facts}
    rest |= {"estimator": estimator, "source": LEARNT_FROM.get(estimator, "data")}
    return blocks.Page(title, said("fit", **rest)["summary"], sections, provenance)


def latent_sections(latents: NDArray[Any], kind: str, *, in_time: bool) -> list[blocks.Section]:
    """Return every pair of latents, and their course over time if rows are in time order."""
    # Latents of very many rows may lie on disk.
    rows = np.unique(np.linspace(0, len(latents) - 1, _ROWS).round().astype(int))
    values = check_matrix(latents[rows], "latents")
    labels = figures.names_of(None, values.shape[1], kind)

    def of_first(most: int) -> dict[str, Any]:
        rest = figures.left_out(most, len(labels), "latents")
        return {"rows": len(values), "shown": min(len(labels), most), "rest": rest}

    name = "one latent" if len(labels) == 1 else "pairs of latents"
    drawn = figures.pair_plot(values, labels)
    pairs = blocks.Figure(drawn, **said(name, **of_first(figures.MOST_PAIRED)))
    sections = [blocks.Section("Latents", [pairs])]
    if in_time:
        drawn = figures.time_courses(values, rows, labels)
        courses = blocks.Figure(drawn, **said("time courses", **of_first(figures.MOST_COURSES)))
        sections.append(blocks.Section("Time courses", [courses]))
    return sections


def _result(gain: Mapping[str, float], facts: Mapping[str, object]) -> list[blocks.Block]:
    kind: blocks.VerdictKind = "good" if gain["low"] > 0 else "bad"
    verdict = blocks.Verdict(kind, said("fit verdict", **gain)[kind])
    tiles = blocks.Facts(
        {
            "information, bits per sample": number(gain["bits"], 3),
            "of a linear map, bits": number(gain["linear"], 3),
            "95 % interval": interval(gain["low"], gain["high"]),
            "at most, bits": number(gain["ceiling"], 2),
            "p-value of shifted targets": number(gain["p_value"], 2),
            "held-out loss, nats": number(gain["loss"], 3),
            "sharpness (1: as sure as right)": number(gain["sharpness"], 2),
        }
    )
    return [verdict, tiles, *blocks.settings(facts)]
