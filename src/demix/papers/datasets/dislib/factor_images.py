"""Images with known factors, whatever file they lie in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix.papers.datasets.dislib.columns import FactorColumn
from demix.papers.datasets.dislib.pixels import ArrayPixels, Pixels, Report, silent

# Rows that are read at a time, so that a bar can move.
_AT_ONCE = 1000


@dataclass(frozen=True, eq=False)
class FactorImages:
    """Images ``(N, H, W, C)`` of bytes, read row by row, and what they show.

    Parameters
    ----------
    name : str
        The data set, such as ``dsprites``.
    pixels : Pixels
        Where the images come from.
    columns : tuple of FactorColumn
        What the ``k`` factors are.
    values : ndarray (N, k), float32
        Their values; categories are numbered from 0.
    skipped : int
        How many images of the file could not be decoded and are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.papers import FactorColumn, FactorImages
    >>> from demix.papers.datasets.dislib.pixels import ArrayPixels
    >>> dots = np.zeros((6, 4, 4, 1), dtype=np.uint8)
    >>> column = FactorColumn("shape", "categorical", levels=("dot", "hole"))
    >>> known = FactorImages("dots", ArrayPixels(dots), (column,), np.zeros((6, 1), np.float32))
    >>> len(known), known.shape, known.read([5, 0]).shape
    (6, (1, 4, 4), (2, 4, 4, 1))
    """

    name: str
    pixels: Pixels
    columns: tuple[FactorColumn, ...]
    values: np.ndarray
    skipped: int = 0

    def __post_init__(self) -> None:
        if self.values.shape != (self.pixels.shape[0], len(self.columns)):
            raise DemixError(
                f"Every image of {self.name} must have a value of each of its {len(self.columns)} "
                f"factors, but there are {self.pixels.shape[0]} images and values of shape "
                f"{self.values.shape}; is the file complete?"
            )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        _, height, width, channels = self.pixels.shape
        return channels, height, width

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors."""
        return tuple(column.name for column in self.columns)

    def read(self, rows: Any) -> np.ndarray:
        """Return the images at ``rows`` ``(B,)``, in their order: uint8 ``(B, H, W, C)``."""
        return self.pixels.read(np.asarray(rows, dtype=np.intp))

    def column(self, name: str) -> FactorColumn:
        """Return what the factor of that name is."""
        return self.columns[self._place(name)]

    def factor(self, name: str) -> np.ndarray:
        """Return the values ``(N,)`` of the factor of that name."""
        return self.values[:, self._place(name)]

    def only(self, rows: Any, *, report: Report = silent) -> FactorImages:
        """Return some of the images, read into memory; ``report`` is told how many are read."""
        index = np.asarray(rows, dtype=np.intp)
        order = np.argsort(index)  # in the order in which they lie in the file
        images = np.empty((len(index), *self.pixels.shape[1:]), dtype=np.uint8)
        for start in range(0, len(index), _AT_ONCE):
            report(start, len(index), f"images of {self.name}")
            part = order[start : start + _AT_ONCE]
            images[part] = self.pixels.read(index[part])
        report(len(index), len(index), f"images of {self.name}")
        return replace(self, pixels=ArrayPixels(images), values=self.values[index])

    def _place(self, name: str) -> int:
        if name not in self.names:
            raise DemixError(
                f"The factors of {self.name} are {', '.join(self.names)}, but {name!r} was asked "
                "for."
            )
        return self.names.index(name)


def grid(sizes: tuple[int, ...]) -> np.ndarray:
    """Return all combinations ``(N, k)`` of whole numbers below ``sizes``, the last one fastest.

    Examples
    --------
    >>> from demix.papers.datasets.dislib.factor_images import grid
    >>> grid((2, 2)).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    """
    places = np.indices(sizes, dtype=np.float32)
    return places.reshape(len(sizes), -1).T.copy()
