"""Which equivalence class the checks support, by which theorem, and how to say so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from demix.diagnostics.agreement.group import Group
from demix.diagnostics.assumptions.check import Check

Supported = Literal["orthogonal", "affine", "linear", "permutation", "none"]

UP_TO = {
    "orthogonal": "a rotation or reflection",
    "affine": "an affine map",
    "linear": "a linear map",
    "permutation": "order, signs and scales",
}
# A statistic of these says something about the fit, not against the theorem's conclusion.
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
    relied_on: Supported
    theorem: str | None
    supported: Supported
    sentence: str

    def __getitem__(self, name: str) -> Check:
        """Return the check of that name."""
        return next(check for check in self.checks if check.name == name)

    @property
    def fired(self) -> list[str]:
        """Names of the checks that raise a doubt."""
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


def class_of(group: Group, *, labels: bool) -> Supported:
    """Return the class that a theorem gives, in the words of a check-up."""
    if group.theorem is None:
        return "none"
    if group.name == "signed permutation":
        return "permutation"
    return "linear" if labels and group.name == "affine" else group.name


def conclude(checks: list[Check], relied_on: Supported, theorem: str | None) -> Checkup:
    """Draw the conclusion from all checks."""
    failed = [c for c in checks if c.verdict == "fail" and c.name not in _ADVICE]
    doubtful = [c for c in checks if c.verdict == "warn" and c.name not in _ADVICE]
    supported: Supported = "none" if failed or len(doubtful) > 1 else relied_on
    if supported == "permutation" and not _far_from_normal(checks):
        supported, theorem = "affine", "Theorem 5 of Zimmermann et al. (2021)"
    if relied_on == "none":
        sentence = "No theorem covers this space and conditional; the latents are a description."
    elif supported == "none":
        names = ", ".join(c.name for c in failed or doubtful)
        sentence = (
            f"The assumptions of {theorem} do not hold on these data ({names}); we make no claim "
            "that the latents are the factors."
        )
    else:
        tested = sum(c.verdict != "skipped" for c in checks)
        doubt = f", with a doubt about {doubtful[0].name}" if doubtful else ""
        sentence = (
            f"On held-out data none of {tested} checks contradicts the assumptions of {theorem}"
            f"{doubt}, under which the latents are the factors up to {UP_TO[supported]}."
        )
    return Checkup(checks, relied_on, theorem, supported, sentence)


def _far_from_normal(checks: list[Check]) -> bool:
    """Whether the noise is not normal, whose rotations nothing can tell apart."""
    shape = next((c for c in checks if c.name == "shape" and c.verdict != "skipped"), None)
    if shape is None:
        return False
    low, high = shape.details["p_low"], shape.details["p_high"]
    return bool(high < 1.7 or low > 2.4) and np.isfinite(shape.statistic)
