"""The page about one recovery: true factors beside what training found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from demix.report.blocks import Block, Facts, Page, Section, Verdict
from demix.report.sections import recovery_sections, training_section
from demix.report.style import shown


def recovery_page(
    *,
    title: str,
    summary: str,
    scores: Mapping[str, float | str],
    factors: ArrayLike,
    latents: ArrayLike,
    aligned_latents: ArrayLike,
    correlation: ArrayLike,
    assignment: Sequence[int],
    history: Sequence[Mapping[str, Any]],
    certificate: Sequence[Mapping[str, Any]],
    provenance: Mapping[str, object],
    names: Sequence[str] | None = None,
    verdict: Verdict | None = None,
) -> Page:
    """Page of one run: true against recovered, correlations, certificate, training, provenance.

    Parameters
    ----------
    title, summary : str
        Heading and opening paragraph.
    scores : dict
        Headline numbers by name; a float is shown with four significant digits.
    factors : array_like, shape (N, n)
        True factors.
    latents : array_like, shape (N, m)
        Recovered latents as they came out of training.
    aligned_latents : array_like, shape (N, n)
        Recovered latents with column ``i`` matched to factor ``i``.
    correlation : array_like, shape (n, m)
        Correlation of each factor with each column of `latents`.
    assignment : sequence of int, length n
        ``assignment[i]`` is the column of `latents` matched to factor ``i``.
    history : sequence of dict
        Training history, see `training_curve`; may be empty.
    certificate : sequence of dict
        Entries with ``score``, ``value``, ``low``, ``high``, ``baseline``, ``certifies``,
        ``does_not_certify``.
    provenance : dict
        What is needed to make the page again: versions, seed, settings.
    names : sequence of str, optional
        Names of the factors.
    verdict : Verdict, optional
        One sentence of judgement above the headline numbers.

    Returns
    -------
    Page

    Examples
    --------
    >>> import numpy as np
    >>> z = np.random.default_rng(0).normal(size=(40, 2))
    >>> page = recovery_page(
    ...     title="Demo",
    ...     summary="Two factors.",
    ...     scores={"R²": 99.3},
    ...     factors=z,
    ...     latents=z[:, ::-1],
    ...     aligned_latents=z,
    ...     correlation=[[0.0, 1.0], [1.0, 0.0]],
    ...     assignment=[1, 0],
    ...     history=[{"step": 0, "seconds": 0.0, "loss": 6.2}],
    ...     certificate=[],
    ...     provenance={"seed": "0"},
    ... )
    >>> [section.title for section in page.sections][:2]
    ['Result', 'True against recovered']
    """
    headline: list[Block] = [] if verdict is None else [verdict]
    headline.append(Facts({name: shown(value) for name, value in scores.items()}))
    sections = [
        Section("Result", headline),
        *recovery_sections(
            factors=factors,
            latents=latents,
            aligned_latents=aligned_latents,
            correlation=correlation,
            assignment=assignment,
            certificate=certificate,
            names=names,
        ),
    ]
    if history:
        sections.append(training_section(history))
    return Page(title, summary, sections, {name: str(value) for name, value in provenance.items()})
