"""What a known factor of images is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from demix._support.errors import DemixError

Kind = Literal["categorical", "ordinal", "periodic", "continuous"]


@dataclass(frozen=True)
class FactorColumn:
    """What a column of factors holds.

    Parameters
    ----------
    name : str
        What the data set calls it.
    kind : "categorical", "ordinal", "periodic" or "continuous"
        Names without an order, levels in an order, numbers that come round again, or numbers.
    levels : tuple of str
        Names of the values 0, 1, 2 and so on of a category, where it has some.
    period : float, optional
        After which a periodic factor repeats.
    within : str, optional
        The category outside of which values cannot be compared. Photographs of an object on a
        turntable show angles from wherever it was put: those of two objects have nothing in common.

    Examples
    --------
    >>> from demix.papers import FactorColumn
    >>> FactorColumn("azimuth", "periodic", period=360).period
    360
    """

    name: str
    kind: Kind
    levels: tuple[str, ...] = ()
    period: float | None = None
    within: str | None = None

    def __post_init__(self) -> None:
        if (self.kind == "periodic") != (self.period is not None):
            raise DemixError(
                f"A period belongs to a periodic factor, but {self.name!r} is {self.kind} with "
                f"period {self.period}; give both or neither."
            )
