"""One factor: its kind, and what a linear read-out of it is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from demix._support.errors import DemixError

KINDS = ("continuous", "ordinal", "periodic", "categorical", "binary")
LEAST = 20
"""Rows that must have a value, or have another one, for a factor to be tested."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A factor of known kind.

    Parameters
    ----------
    name : str
        What messages and tables call it.
    values : ndarray (N,)
        Numbers, or text for categories.
    kind : "continuous", "ordinal", "periodic", "categorical" or "binary"
        ``continuous`` and ``ordinal`` factors are read out as one number, the value itself or the
        place of the level; ``periodic`` ones as sine and cosine; the others as categories.
    period : float, optional
        After which a periodic factor repeats.
    """

    name: str
    values: np.ndarray
    kind: str
    period: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise DemixError(f"A kind is one of {', '.join(KINDS)}, but got {self.kind!r}.")
        if (self.kind == "periodic") != (self.period is not None):
            raise DemixError(
                f"A period belongs to a periodic factor, but {self.name!r} is {self.kind} with "
                f"period {self.period}; give both or neither."
            )
        if self.period is not None and not 1e-100 < self.period < 1e100:
            raise DemixError(
                f"A period must be a positive number, but that of {self.name!r} is {self.period}."
            )
        if self.values.dtype.kind == "U" and self.kind not in ("categorical", "binary"):
            raise DemixError(
                f"A {self.kind} factor must be numbers, but {self.name!r} is text; make it "
                "categorical."
            )
        if self.values.dtype.kind != "U" and not np.isfinite(self.values).all():
            bad = int((~np.isfinite(self.values)).sum())
            raise DemixError(
                f"Factors must be finite, but {bad} of the {len(self.values)} values of "
                f"{self.name!r} are NaN or infinite; remove these rows or fill them in."
            )
        if self.kind == "binary" and len(self.levels) > 2:
            raise DemixError(
                f"A binary factor has two values, but {self.name!r} has {len(self.levels)}; make "
                "it categorical."
            )

    @property
    def categorical(self) -> bool:
        """Whether it is read out as categories rather than numbers."""
        return self.kind in ("categorical", "binary")

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.values, return_inverse=True)

    @property
    def levels(self) -> np.ndarray:
        """The different values, in order."""
        return self._numbered[0]

    @property
    def codes(self) -> np.ndarray:
        """The place ``(N,)`` of each value among the levels."""
        return self._numbered[1]

    @cached_property
    def targets(self) -> np.ndarray:
        """What a read-out of numbers is fitted to ``(N, k)``; sine and cosine of a period."""
        if self.period is not None:
            angle = 2 * np.pi * self.values.astype(float) / self.period
            return np.stack([np.sin(angle), np.cos(angle)], axis=1)
        number = self.codes if self.kind == "ordinal" else self.values
        return number.astype(float)[:, None]

    @cached_property
    def counted(self) -> np.ndarray:
        """Places of the levels that enough rows have to be scored."""
        return np.flatnonzero(np.bincount(self.codes) >= LEAST)

    @property
    def untestable(self) -> str | None:
        """Why nothing can be said about this factor, whatever the features; None if it can."""
        counts = np.bincount(self.codes)
        if len(counts) == 1:
            return "it has one value only"
        if self.kind == "binary":
            if counts.min() < LEAST:
                return f"fewer than {LEAST} rows have its rarer value ({counts.min()})"
        elif self.categorical:
            if len(self.counted) < 2:
                return f"fewer than two of its values have {LEAST} rows"
        elif (others := len(self.codes) - counts.max()) < LEAST:
            return f"fewer than {LEAST} rows differ from its most frequent value ({others})"
        return None


class Indicators(Factor):
    """A category that is read out as numbers: for each of its values, whether it is this one.

    So read-outs of categories and of numbers are measured alike, by r and :math:`R^2`.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.metrics.probes.factor import Indicators
    >>> Indicators("shape", np.array(["cube", "ball", "cube"]), "categorical").targets.tolist()
    [[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    """

    @property
    def categorical(self) -> bool:
        """It is read out as numbers."""
        return False

    @cached_property
    def targets(self) -> np.ndarray:
        """What a read-out is fitted to, ``(N, k)`` for ``k`` different values."""
        return (self.codes[:, None] == np.arange(len(self.levels))).astype(float)
