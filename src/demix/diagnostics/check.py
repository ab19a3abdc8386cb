"""A check and its verdict; which equivalence class all checks support, and how to say so."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from demix._support.resources import table
from demix.theory.setting import EquivalenceName, Setting, identified

Verdict = Literal["pass", "warn", "fail", "skipped"]

_DRAWS = 100

_CHECKS, _CLAIMS = table("diagnostics/checks.toml"), table("diagnostics/claims.toml")["checkup"]
MARGINS = {name: row["margin"] for name, row in _CHECKS.items() if "margin" in row}
"""What the error of learning adds to the statistic of each check; see the calibration."""
_ADVICE = ("too many latents", "balance")  # they do not contradict the theorem
_WORST_FIRST = ("fail", "warn", "pass", "skipped")


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
        return _CHECKS.get(self.name, {}).get("advice", "") if self.fires else ""

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
    null: np.ndarray | None = None,
    *,
    details: dict[str, Any] | None = None,
    **words: Any,
) -> Check:
    """Compare a statistic with chance and the error of learning; twice its margin fails.

    What the sentences of the check name is the statistic, a detail, or one of ``words``.
    """
    # By chance alone every model that was learnt from finite data would fail.
    margin, row, statistic = MARGINS.get(name, 0.0), _CHECKS[name], float(statistic)
    words |= {"value": statistic, "percent": 100 * statistic, **(details or {})}
    unit, found, good, bad = (
        row.get(part, "").format(**words) for part in ("unit", "found", "good", "bad")
    )
    null = np.empty(0) if null is None else np.asarray(null)
    check = Check(name, "pass", statistic, null, margin, unit, found + good, details or {})
    if statistic <= check.allowed:
        return check
    fails = not statistic <= check.allowed + margin
    return replace(check, verdict="fail" if fails else "warn", sentence=found + bad)


def worst(parts: Sequence[Check]) -> Check:
    """Return the check of the part of a product of spaces that fares worst."""
    number = min(range(len(parts)), key=lambda i: _WORST_FIRST.index(parts[i].verdict))
    found = parts[number]
    return replace(found, sentence=f"Part {number + 1} of {len(parts)}: {found.sentence}")


def around_zero(error: float) -> np.ndarray:
    """Return the null ``(B,)`` of a mean that is truly 0, from its standard error."""
    return np.asarray(error * stats.norm.ppf((np.arange(_DRAWS) + 0.5) / _DRAWS))


def skipped(name: str, why: str) -> Check:
    """Return a check that could not be made."""
    return Check(name, "skipped", math.nan, np.empty(0), 0.0, "", why)


@dataclass(frozen=True, eq=False)
class Checkup:
    """The check-up of a model.

    Attributes
    ----------
    checks : list of Check
        One for each assumption, worst first.
    relied_on : str
        The class that the theorem gives if all of its assumptions hold.
    theorem : str or None
        Its name, if there is one.
    supported : "orthogonal", "affine", "linear", "permutation", "none" or "undecided"
        The class that the checks support, ``"none"`` if they contradict the theorem, and
        ``"undecided"`` if the data or the fit do not suffice to judge.
    sentence : str
        What a careful author may write.
    grade : dict of str to float
        What is known where no theorem holds, too: ``information`` in bits and its ``ceiling``,
        ``stability`` (agreement with a fit to half of the rows), and ``linear`` (R² of the latents
        by the best linear map of the observations).
    """

    checks: list[Check]
    relied_on: EquivalenceName
    theorem: str | None
    supported: EquivalenceName | Literal["undecided"]
    sentence: str
    grade: dict[str, float] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Check:
        """Return the check of that name."""
        return next(check for check in self.checks if check.name == name)

    @property
    def fired(self) -> list[str]:
        """Names of the checks that warn or fail."""
        return [check.name for check in self.checks if check.fires]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "supported": self.supported,
            "relied_on": self.relied_on,
            "theorem": self.theorem,
            "sentence": self.sentence,
            "grade": self.grade,
            "checks": [check.to_dict() for check in self.checks],
        }

    def report(
        self,
        path: str | Path,
        *,
        title: str = "Check-up",
        provenance: Mapping[str, object] | None = None,
    ) -> Path:
        """Write the check-up as one HTML page, which works offline, and return its path.

        An earlier page of demix is replaced, any other file is refused. ``provenance`` has entries
        besides versions and machine.
        """
        from demix._support.provenance import provenance as versions
        from demix.report.blocks import write_page
        from demix.report.checkup import checkup_page

        origin = {**(provenance or {}), **versions()}
        return write_page(checkup_page(self.to_dict(), title=title, provenance=origin), path)


def conclude(checks: list[Check], setting: Setting, grade: dict[str, float]) -> Checkup:
    """Return the check-up with its conclusion."""
    # A failed check contradicts the theorem only if the fit has settled, whatever the seed.
    checks = sorted(checks, key=lambda check: _WORST_FIRST.index(check.verdict))
    found = identified(setting)
    relied_on = found.name
    failed = [c for c in checks if c.verdict == "fail" and c.name not in _ADVICE]
    doubtful = [c for c in checks if c.verdict == "warn" and c.name not in _ADVICE]
    known = all(c.verdict != "fail" for c in checks if c.name.endswith("informative"))
    # Checks that say that the data or the fit do not suffice to judge, and why.
    keys = ("open", "open_labels" if setting.supervision == "labels" else "open")
    reasons = {name: row[key] for name, row in _CHECKS.items() for key in keys if key in row}
    unsettled = [c for c in checks if c.name in reasons and c.fires and known]
    contradicted = not unsettled and (bool(failed) or len(doubtful) > 1)
    if relied_on == "permutation" and not contradicted and not _far_from_normal(checks):
        found = identified(replace(setting, conditional="normal"))
    supported: EquivalenceName | Literal["undecided"] = found.name
    if relied_on == "none":
        claim, why = "none", " ".join(found.reasons)
    elif unsettled:
        supported, claim, why = "undecided", "undecided", reasons[unsettled[0].name]
    elif contradicted:
        supported, claim = "none", "contradicted"
        why = ", ".join(c.name for c in failed or doubtful)
    else:
        claim, why = "supported", f", with a doubt about {doubtful[0].name}" if doubtful else ""
    tested = sum(c.verdict != "skipped" for c in checks)
    facts = {"theorem": found.theorem, "up_to": found.words, "tested": tested, "why": why}
    sentence = _CLAIMS[claim].format(**facts).strip()
    return Checkup(checks, relied_on, found.theorem, supported, sentence, grade)


def _far_from_normal(checks: list[Check]) -> bool:
    """Return whether the noise is not normal; no method finds the rotation of normal noise."""
    shape = next((c for c in checks if c.name == "shape" and c.verdict != "skipped"), None)
    if shape is None:
        return False
    low, high = shape.details["p_low"], shape.details["p_high"]
    return bool(high < 1.7 or low > 2.4) and np.isfinite(shape.statistic)
