"""Which equivalence class the checks support, by which theorem, and how to say so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from demix.diagnostics.check import Check
from demix.theory.setting import EquivalenceName, Setting, identified

# These checks advise on the fit and do not contradict the theorem's conclusion.
_ADVICE = ("too many latents", "balance")


@dataclass(frozen=True, eq=False)
class Checkup:
    """The check-up of a model.

    Attributes
    ----------
    checks : list of Check
        One for each assumption.
    relied_on : str
        The class that the theorem gives if all of its assumptions hold.
    theorem : str or None
        Its name, if there is one.
    supported : "orthogonal", "affine", "linear", "permutation" or "none"
        The class that the checks support.
    sentence : str
        What a careful author may write.
    """

    checks: list[Check]
    relied_on: EquivalenceName
    theorem: str | None
    supported: EquivalenceName
    sentence: str

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

        Parameters
        ----------
        path : path
            The file; an earlier page of demix is replaced, any other file is refused.
        title : str
            Heading.
        provenance : mapping, optional
            Entries of the provenance besides versions and machine.
        """
        from demix._support.provenance import provenance as versions
        from demix.report.checkup import checkup_page
        from demix.report.page import write_page

        origin = {**(provenance or {}), **versions()}
        return write_page(checkup_page(self.to_dict(), title=title, provenance=origin), path)


def conclude(checks: list[Check], setting: Setting) -> Checkup:
    """Return the check-up with its conclusion."""
    found = identified(setting)
    relied_on = found.name
    failed = [c for c in checks if c.verdict == "fail" and c.name not in _ADVICE]
    doubtful = [c for c in checks if c.verdict == "warn" and c.name not in _ADVICE]
    contradicted = bool(failed) or len(doubtful) > 1
    if relied_on == "permutation" and not contradicted and not _far_from_normal(checks):
        found = identified(replace(setting, conditional="normal"))
    supported = "none" if contradicted else found.name
    if relied_on == "none":
        sentence = "No theorem covers this space and conditional; the latents are a description."
    elif contradicted:
        names = ", ".join(c.name for c in failed or doubtful)
        sentence = (
            f"The assumptions of {found.theorem} do not hold on these data ({names}); we make no "
            "claim that the latents are the factors."
        )
    else:
        tested = sum(c.verdict != "skipped" for c in checks)
        doubt = f", with a doubt about {doubtful[0].name}" if doubtful else ""
        sentence = (
            f"On held-out data none of {tested} checks contradicts the assumptions of "
            f"{found.theorem}{doubt}, under which the latents are the factors up to {found.words}."
        )
    return Checkup(checks, relied_on, found.theorem, supported, sentence)


def _far_from_normal(checks: list[Check]) -> bool:
    """Return whether the noise is not normal; no method finds the rotation of normal noise."""
    shape = next((c for c in checks if c.name == "shape" and c.verdict != "skipped"), None)
    if shape is None:
        return False
    low, high = shape.details["p_low"], shape.details["p_high"]
    return bool(high < 1.7 or low > 2.4) and np.isfinite(shape.statistic)
