"""What a figure of panels shows: plain data, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from demix._support.errors import DemixError


@dataclass(frozen=True)
class Series:
    """Points of one name; series of one name look alike in all panels of a figure.

    ``x`` are numbers, joined by a line, or words, which are not joined. ``spread`` is one standard
    deviation of each ``y``. What was published, not measured, is hollow, dashed and grey.
    """

    name: str
    x: Sequence[float | str]
    y: Sequence[float]
    spread: Sequence[float] | None = None
    published: bool = False

    def __post_init__(self) -> None:
        spread = self.y if self.spread is None else self.spread
        if not len(self.x) == len(self.y) == len(spread) > 0:
            raise DemixError(
                f"series {self.name!r} needs at least one point and equally many x, y and spread, "
                f"but has {len(self.x)}, {len(self.y)} and {len(spread)}; drop incomplete points"
            )
        numbers = [*self.y, *spread, *(() if self.in_words else self.x)]
        if any(isinstance(value, str) for value in numbers):
            raise DemixError(
                f"series {self.name!r} mixes words and numbers; write its x as one or the other"
            )
        if not all(math.isfinite(float(value)) for value in numbers):
            raise DemixError(
                f"series {self.name!r} holds a value that is not finite; drop that point"
            )
        if self.spread is not None and min(self.spread) < 0:
            raise DemixError(
                f"series {self.name!r} has a negative spread; give standard deviations"
            )

    @property
    def in_words(self) -> bool:
        """Whether ``x`` are words."""
        return all(isinstance(value, str) for value in self.x)


@dataclass(frozen=True)
class Subplot:
    """One pair of axes with its series, all with numbers or all with words as ``x``."""

    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    log_x: bool = False

    def __post_init__(self) -> None:
        names = [(line.name, line.published) for line in self.series]
        if not names:
            raise DemixError(
                f"panel {self.title!r} needs at least one series, but has none; leave it out"
            )
        if len(set(names)) < len(names):
            raise DemixError(
                f"panel {self.title!r} has two series of one name; give each a name of its own"
            )
        if len({line.in_words for line in self.series}) > 1:
            raise DemixError(
                f"panel {self.title!r} mixes words and numbers; write all its x as one or the other"
            )
        if self.log_x and (self.in_words or min(self.numbers()) <= 0):
            raise DemixError(
                f"panel {self.title!r} has a logarithmic axis, which needs positive numbers as x; "
                "drop the other points or choose log_x=False"
            )

    @property
    def in_words(self) -> bool:
        """Whether the horizontal axis carries words."""
        return self.series[0].in_words

    def numbers(self) -> set[float]:
        """Return all ``x`` of a panel of numbers."""
        return {float(x) for line in self.series for x in line.x}
