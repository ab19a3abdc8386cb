"""Rows of Figure 3 of the second paper: factors that a classifier's features tell of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from demix.papers.runner.declaration import Figure, Model, Row
from demix.papers.runner.scales import Scale

_IMAGES = 256  # at smoke scale


@dataclass(frozen=True)
class FactorRow(Row):
    """One factor of photographs, read out of three representations."""

    factor: str

    @property
    def models(self) -> tuple[Model, ...]:
        """A trained net, the same net at random initialisation, and projected pixels."""
        return ("trained", "random", "pixels")

    @property
    def main(self) -> tuple[Model, ...]:
        """All of them: each has its bar."""
        return self.models

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return self.factor.replace("_", " ")

    def published(self, model: Model, score: str) -> Figure | None:
        """Return nothing: the paper shows bars without numbers."""
        return None

    def cells(self) -> dict[str, str]:
        """Describe the factor for the columns of a table."""
        return {"factor": self.label("trained")}

    def setting(self) -> Row:
        """Return the row without number."""
        return replace(self, number=0)

    def facts(self) -> dict[str, Any]:
        """Describe the factor for a machine."""
        return {"factor": self.factor}

    def repeats(self, scale: Scale) -> int:
        """Return how often rows are resampled; nothing is trained, so laptop and paper agree."""
        return 3 if scale.smoke else 10

    def images(self, scale: Scale) -> int | None:
        """Return how many photographs are encoded; None for all."""
        return _IMAGES if scale.smoke else None
