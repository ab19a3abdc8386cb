"""The page about a fit on data of one's own, where factors are usually not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from demix._support.errors import DemixError
from demix.report.blocks import Block, Facts, Figure, Page, Section, Table, Text, Verdict
from demix.report.examples import MOST_STRIPS, nearest_examples
from demix.report.gains import Gain, gain_of
from demix.report.latents import MOST_COURSES, MOST_PAIRED, pair_plot, time_courses
from demix.report.records import matrix_of, names_of
from demix.report.sections import training_section
from demix.report.style import number, shown


def fit_page(
    *,
    title: str,
    summary: str,
    gain: Mapping[str, float],
    latents: ArrayLike,
    facts: Mapping[str, object],
    provenance: Mapping[str, object],
    history: Sequence[Mapping[str, Any]] = (),
    best_step: int | None = None,
    names: Sequence[str] | None = None,
    time: ArrayLike | None = None,
    time_label: str = "row",
    images: ArrayLike | None = None,
    image_latents: ArrayLike | None = None,
    recovery: Sequence[Section] = (),
    notes: Sequence[str] = (),
    verdict: Verdict | None = None,
) -> Page:
    """Page of a fit: gain over the null, training, latents, examples, factors, provenance.

    Parameters
    ----------
    title, summary : str
        Heading and opening paragraph.
    gain : dict
        ``bits``, ``low`` and ``high``, the gain over the null in bits per sample with its interval;
        ``loss`` and ``null``, the held-out losses in nats; possibly ``level``, the coverage of the
        interval, such as 0.95.
    latents : array_like, shape (N, n)
        Latents of the rows that are shown.
    facts : dict
        What was assumed and used, by name: space, conditional, pairs, rows.
    provenance : dict
        What is needed to make the page again: hash of the data, seed, versions, command.
    history : sequence of dict
        Training history with ``step``, ``seconds``, ``loss`` and ``validation``, the held-out loss
        in nats; see `training_curve`. May be empty.
    best_step : int, optional
        The step whose encoder was kept.
    names : sequence of str, length n, optional
        Names of the latents.
    time : array_like, shape (N,), optional
        Row number or time of each row of `latents`, where their order means something.
    time_label : str
        What `time` counts.
    images : array_like, shape (M, C, H, W), optional
        Images from 0 to 1 to be shown along each latent.
    image_latents : array_like, shape (M, n), optional
        Latents of `images`.
    recovery : sequence of Section
        About known factors; see `recovery_sections`.
    notes : sequence of str
        Warnings, one sentence or paragraph each.
    verdict : Verdict, optional
        One sentence of judgement above the headline numbers.

    Returns
    -------
    Page

    Examples
    --------
    >>> latents = np.random.default_rng(0).normal(size=(40, 2))
    >>> page = fit_page(
    ...     title="A fit",
    ...     summary="Two latents.",
    ...     gain={"bits": 1.5, "low": 1.2, "high": 1.7, "loss": 5.2, "null": 6.24},
    ...     latents=latents,
    ...     facts={"space": "box"},
    ...     provenance={"seed": 0},
    ...     history=[{"step": 0, "seconds": 0.0, "loss": 6.2, "validation": 6.3}],
    ...     time=range(40),
    ... )
    >>> [section.title for section in page.sections]
    ['Result', 'Training', 'Latents', 'Time courses']
    """
    values = matrix_of(latents, "latents")
    labels = names_of(names, values.shape[1], "latent")
    if (images is None) != (image_latents is None):
        raise DemixError(
            "images and image_latents belong together, but only one of them was given; pass both "
            "or neither"
        )
    found = gain_of(gain)
    sections = [Section("Result", _result(found, facts, verdict))]
    if history:
        sections.append(training_section(history, best_step))
    sections.append(Section("Latents", [pairs_block(values, labels)]))
    if time is not None:
        sections.append(Section("Time courses", [courses_block(values, time, labels, time_label)]))
    if images is not None and image_latents is not None:
        gallery = nearest_examples(images, image_latents, labels)
        caption = gallery.caption + _left_out(MOST_STRIPS, labels)
        sections.append(Section("Examples", [replace(gallery, caption=caption)]))
    sections.extend(recovery)
    if notes:
        paragraphs: list[Block] = [Text(note) for note in notes]
        sections.append(Section("Notes", paragraphs))
    return Page(title, summary, sections, {name: str(value) for name, value in provenance.items()})


def _result(gain: Gain, facts: Mapping[str, object], verdict: Verdict | None) -> list[Block]:
    body: list[Block] = [] if verdict is None else [verdict]
    body.append(
        Facts(
            {
                "gain over the null, bits per sample": number(gain.bits, 3),
                f"{gain.interval_name} of the gain": gain.interval,
                "held-out loss, nats": number(gain.loss, 3),
                "loss of the null, nats": number(gain.null, 3),
            }
        )
    )
    if facts:
        lines = [[name, shown(value)] for name, value in facts.items()]
        body.append(Table(["What", "Value"], lines, "What was assumed and used."))
    return body


def pairs_block(values: NDArray[np.float64], labels: list[str]) -> Figure:
    """Every pair of latents, with a caption."""
    rows, drawn = len(values), min(len(labels), MOST_PAIRED)
    if drawn == 1:
        caption, alt = f"Histogram of the latent over all {rows:,} rows.", "Histogram of a latent."
    else:
        caption = (
            "On the diagonal the histogram of each latent, below it every pair, above it the "
            f"correlation of the pair; histograms and correlations over all {rows:,} rows."
        )
        alt = f"Histograms of {drawn} latents and scatter plots of all their pairs."
    return Figure(pair_plot(values, labels), caption + _left_out(MOST_PAIRED, labels), alt=alt)


def courses_block(
    values: NDArray[np.float64], time: ArrayLike, labels: list[str], time_label: str
) -> Figure:
    """Latents over time, with a caption."""
    return Figure(
        time_courses(values, time, labels, time_label),
        "Each latent over time. Of long recordings the smallest and the largest value of every "
        "stretch are drawn; lines stop at gaps." + _left_out(MOST_COURSES, labels),
        alt=f"Line plots of {min(len(labels), MOST_COURSES)} latents over time, one below the "
        "other.",
    )


def _left_out(most: int, labels: Sequence[str]) -> str:
    return f" Shown are the first {most} of {len(labels)} latents." if len(labels) > most else ""
