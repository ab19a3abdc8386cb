"""A check: what was found, what chance would give, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import stats

Verdict = Literal["pass", "warn", "fail", "skipped"]

_DRAWS = 100

MARGINS = {
    "marginal": 0.15,
    "visits": 0.5,
    "shape": 0.2,
    "isotropy": 0.2,
    "position": 0.05,
    "support": 0.5,
    "generator system": 0.5,
    "diversity": 0.05,
    "balance": 0.1,
    "label noise": 0.03,
    "log-linear": 0.03,
    "injectivity": 0.015,
    "observation noise": 0.03,
    "views": 0.95,
    "stability": 0.05,
    "too few latents": 0.15,
    "too many latents": 0.15,
}
"""What the error of learning adds to the statistic of each check; see the calibration."""

ADVICE = {
    "positives informative": "Look whether rows are in order and pairs belong together; take "
    "another lag, or more rows.",
    "labels informative": "Look whether labels and rows belong together, or give more rows.",
    "views informative": "Take an augmentation that changes less, or more rows.",
    "marginal": "Fit with marginal='any', which assumes no uniform marginal.",
    "visits": "Record longer, or leave out rows between others, so that the series comes round "
    "more often.",
    "shape": "Fit with conditional='auto', or with the shape that was found.",
    "isotropy": "Fit with conditional='anisotropic', which learns a scale for each latent.",
    "position": "Choose another space or a shorter lag, so that noise is the same everywhere.",
    "support": "Take pairs that differ more: a larger lag, or a wider augmentation.",
    "generator system": "Give more classes, or ask for fewer latents.",
    "diversity": "Give more classes, or leave unit_prototypes out.",
    "log-linear": "Ask for more latents, which can carry the spread of classes, too.",
    "balance": "Nothing to do: biases take up the frequencies.",
    "label noise": "Give the share of false labels to the estimator as noise=.",
    "injectivity": "Ask for more latents; if what they leave open is noise, give observations with "
    "less of it, e.g. means of several.",
    "observation noise": "Give observations with less noise, e.g. means of several rows.",
    "views": "Give an augmentation that changes what does not matter and keeps what does.",
    "stability": "Train longer (recipe=Recipe(steps=...)), give more rows, or ask for fewer "
    "latents.",
    "too few latents": "Ask for one latent more, and check again.",
    "too many latents": "Ask for one latent fewer, and check again.",
}
"""What to do next if a check fires."""


@dataclass(frozen=True, eq=False)
class Check:
    """One assumption of a theorem, tested on data.

    Attributes
    ----------
    name : str
        The assumption in a word or two.
    verdict : "pass", "warn", "fail" or "skipped"
        The result.
    statistic : float
        How far the data are from the assumption; 0 is not at all.
    null : ndarray (B,)
        The statistic on data for which the assumption holds, as many and as dependent as these;
        empty for counts such as a rank.
    margin : float
        What the error of learning adds to it, found in the calibration.
    unit : str
        What the statistic counts.
    sentence : str
        The finding in plain words.
    details : dict
        Estimates with their intervals, as plain data.
    """

    name: str
    verdict: Verdict
    statistic: float
    null: np.ndarray
    margin: float
    unit: str
    sentence: str
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def fires(self) -> bool:
        """Whether the assumption is in doubt."""
        return self.verdict in ("warn", "fail")

    @property
    def allowed(self) -> float:
        """The largest statistic that passes: the 95 % quantile of the null, and the margin."""
        return (float(np.quantile(self.null, 0.95)) if len(self.null) else 0.0) + self.margin

    @property
    def advice(self) -> str:
        """What to do next, in one sentence; empty if there is nothing to do."""
        return ADVICE.get(self.name, "") if self.fires else ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        known = math.isfinite(self.statistic)
        return {
            "name": self.name,
            "verdict": self.verdict,
            "statistic": self.statistic if known else None,
            "unit": self.unit,
            "allowed": self.allowed if known else None,
            "margin": self.margin,
            "null": [float(f"{value:.6g}") for value in self.null],
            "sentence": self.sentence,
            "advice": self.advice,
            "details": self.details,
        }


def judge(
    name: str,
    statistic: float,
    null: np.ndarray,
    *,
    unit: str,
    good: str,
    bad: str,
    details: dict[str, Any] | None = None,
) -> Check:
    """Compare a statistic with chance and the error of learning; twice its margin fails."""
    # By chance alone every model that was learnt from finite data would fail.
    margin = MARGINS.get(name, 0.0)
    null, statistic = np.asarray(null), float(statistic)
    found = Check(name, "pass", statistic, null, margin, unit, good, details or {})
    if statistic <= found.allowed:
        return found
    fails = not statistic <= found.allowed + margin
    return replace(found, verdict="fail" if fails else "warn", sentence=bad)


def worst(parts: Sequence[Check]) -> Check:
    """Return the check of the part of a product of spaces that fares worst."""
    order = ("skipped", "pass", "warn", "fail")
    number = max(range(len(parts)), key=lambda i: order.index(parts[i].verdict))
    found = parts[number]
    return replace(found, sentence=f"Part {number + 1} of {len(parts)}: {found.sentence}")


def around_zero(error: float) -> np.ndarray:
    """Return the null ``(B,)`` of a mean that is truly 0, from its standard error."""
    return np.asarray(error * stats.norm.ppf((np.arange(_DRAWS) + 0.5) / _DRAWS))


def skipped(name: str, why: str) -> Check:
    """Return a check that could not be made."""
    return Check(name, "skipped", math.nan, np.empty(0), 0.0, "", why)
