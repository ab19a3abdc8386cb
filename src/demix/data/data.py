"""Data as something that can be sliced, however large it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from demix.data.rows import PickedRows, Rows, as_float32
from demix.errors import DemixError

# What one block holds unless its size is asked for: 16 MB in float32.
_BLOCK = 2**22


@dataclass(frozen=True, eq=False)
class Data:
    """Rows ``(N, ...)`` of a user, in memory or on disk; made by ``read_data`` and ``as_data``.

    Nothing is read before it is asked for, and whatever is read comes as float32: a matrix as
    ``(N, d)``, images as ``(N, C, H, W)``.

    Parameters
    ----------
    rows : Rows
        Where the rows come from.
    source : str
        The path they were read from, or a word that says what they are; messages begin with it.
    names : tuple of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from demix import as_data
    >>> data = as_data(np.arange(12).reshape(4, 3))
    >>> data.shape
    (4, 3)
    >>> data.take(torch.tensor([3, 0]))
    tensor([[ 9., 10., 11.],
            [ 0.,  1.,  2.]])
    >>> [(start, len(block)) for start, block in data.blocks(3)]
    [(0, 3), (3, 1)]
    """

    rows: Rows
    source: str
    names: tuple[str, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, d)`` or ``(N, C, H, W)``."""
        return self.rows.shape

    def __len__(self) -> int:
        return self.rows.shape[0]

    def take(self, index: Tensor) -> Tensor:
        """Return the rows at ``index`` ``(B,)`` of int64, in its order, as float32 ``(B, ...)``.

        From disk they are read in the order in which they lie there.
        """
        self._check(index)
        return torch.from_numpy(self.rows.pick(index.cpu().numpy()))

    def only(self, index: Tensor) -> Data:
        """Return the rows at ``index`` ``(B,)`` of int64 as data of their own; nothing is read."""
        self._check(index)
        return Data(PickedRows(self.rows, index.cpu().numpy()), self.source, self.names)

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, Tensor]]:
        """Go through all rows once, in order, in the memory of one block.

        Parameters
        ----------
        size : int, optional
            Rows of a block; by default as many as fit into 16 MB.

        Yields
        ------
        start : int
            Number of the first row of the block.
        block : Tensor (B, ...) of float32
            The rows; the last block may be smaller.
        """
        for start, rows in self._raw(size):
            yield start, torch.from_numpy(as_float32(rows))

    def digest(self) -> str:
        """Return the SHA-256 of shape, type and content, to say later which data were used.

        It does not depend on where the rows are kept: an array, and the same array in an ``.npy``
        file, have the same digest.
        """
        digest = hashlib.sha256(f"{self.shape} {self.rows.dtype.str}".encode())
        for _, rows in self._raw(None):
            digest.update(np.ascontiguousarray(rows).data)
        return digest.hexdigest()

    def _check(self, index: Tensor) -> None:
        if not torch.is_tensor(index) or index.dtype != torch.int64 or index.ndim != 1:
            got = (
                f"{index.dtype} of shape {tuple(index.shape)}" if torch.is_tensor(index) else index
            )
            raise DemixError(
                f"Rows are taken by an int64 tensor (B,) of their numbers, but got {got}."
            )
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise DemixError(
                f"Rows are numbered 0..{len(self) - 1}, but {int(index.min())}.."
                f"{int(index.max())} were asked for."
            )

    def _raw(self, size: int | None) -> Iterator[tuple[int, np.ndarray]]:
        if size is None:
            size = max(1, _BLOCK // max(1, int(np.prod(self.shape[1:]))))
        if size < 1:
            raise DemixError(f"A block must have at least 1 row, but size is {size}.")
        for start in range(0, len(self), size):
            yield start, self.rows.read(start, min(start + size, len(self)))
