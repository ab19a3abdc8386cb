"""Where images come from: memory, a mapped file, bits in memory, or an HDF5 file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from demix._support.errors import DemixError, reason
from demix.data.rows import array_rows

Report = Callable[[int, int, str], None]
"""Told how much is done, how much there is to do, and of what."""


def silent(done: int, total: int, what: str) -> None:
    """Report nothing."""


class Pixels(Protocol):
    """Images that are read when they are asked for."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Shape ``(N, H, W, C)``."""

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows`` ``(B,)``, in their order: new uint8 ``(B, H, W, C)``."""


class ArrayPixels:
    """Images of an array ``(N, H, W)`` or ``(N, H, W, C)``, in memory or in a file."""

    def __init__(self, array: np.ndarray, *, gain: int = 1) -> None:
        self._rows, self._gain = array_rows(array), gain
        channels = array.shape[3] if array.ndim == 4 else 1
        self.shape: tuple[int, int, int, int] = (*array.shape[:3], channels)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``, times the gain."""
        picked = self._rows[rows].astype(np.uint8).reshape(len(rows), *self.shape[1:])
        return picked if self._gain == 1 else np.multiply(picked, self._gain, out=picked)


class BitPixels:
    """Images of black and white, an eighth of their size in memory.

    Parameters
    ----------
    bits : ndarray (N, ceil(H W / 8)), uint8
        As :func:`numpy.packbits` packs each image.
    height, width : int
        Of an image.
    """

    def __init__(self, bits: np.ndarray, height: int, width: int) -> None:
        self._bits = bits
        self.shape = (len(bits), height, width, 1)

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``: 0 and 255."""
        _, height, width, _ = self.shape
        flat = np.unpackbits(self._bits[rows], axis=1, count=height * width)
        return (255 * flat).reshape(len(rows), height, width, 1)


class H5Pixels:
    """Images ``(N, H, W, C)`` of a dataset in an HDF5 file, which stays open.

    A file of this kind is compressed in chunks of several rows, so rows that lie close together are
    read as one slice.
    """

    _NEAR = 256

    def __init__(self, dataset: Any, source: str) -> None:
        self._dataset, self._source = dataset, source
        self.shape: tuple[int, int, int, int] = dataset.shape

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the images at ``rows``."""
        images = np.empty((len(rows), *self.shape[1:]), dtype=np.uint8)
        order = np.argsort(rows, kind="stable")
        near = max(self._NEAR, (self._dataset.chunks or (1,))[0])
        edges = np.flatnonzero(np.diff(rows[order] // near)) + 1
        for part in np.split(order, edges) if len(rows) else []:
            first, last = rows[part[0]], rows[part[-1]]
            try:
                block = self._dataset[first : last + 1]
            except Exception as error:  # HDF5 fails in many ways
                raise DemixError(
                    f"Expected readable images in {self._source}, but rows {first} to {last} are "
                    f"damaged ({reason(error)}); fetch it again."
                ) from error
            images[part] = block[rows[part] - first]
        return images
