"""Data as something that can be sliced, however large it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, warn
from demix.data.matching import listed
from demix.data.precision import narrowed
from demix.data.rows import PickedColumns, PickedRows, Rows, as_float32

BLOCK = 2**22
"""Numbers of one block unless its size is asked for: 16 MB in float32."""


@dataclass(frozen=True, eq=False)
class Data:
    """Rows ``(N, ...)`` of a user, in memory or on disk; made by ``read_data`` and ``as_data``.

    Nothing is read before it is asked for, and whatever is read comes as float32, or as float64
    where that is asked for: a matrix as ``(N, d)``, images as ``(N, C, H, W)``.

    Parameters
    ----------
    rows : Rows
        Where the rows come from.
    source : str
        The path they were read from, or a word that says what they are; messages begin with it.
    names : tuple of str, optional
        Names of the columns.
    precise : bool
        Hand out float64: columns may lie so far from zero that float32 loses what they tell.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from demix.data.arrays import as_data
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
    precise: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, d)`` or ``(N, C, H, W)``."""
        return self.rows.shape

    def __len__(self) -> int:
        return self.rows.shape[0]

    def take(self, index: Tensor) -> Tensor:
        """Return the rows at ``index`` ``(B,)`` of int64, in its order, as floats ``(B, ...)``.

        From disk they are read in the order in which they lie there.
        """
        self._check(index)
        return self._floats(self.rows.pick(index.cpu().numpy()), copy=False)

    def only(self, index: Tensor) -> Data:
        """Return the rows at ``index`` ``(B,)`` of int64 as data of their own; nothing is read."""
        self._check(index)
        return replace(self, rows=PickedRows(self.rows, index.cpu().numpy()))

    def matching(self, names: Sequence[str] | None) -> Data:
        """Return the columns of these names, in this order; refuse data that lack one.

        Where the names of either side are not known, columns are taken as they come.

        Examples
        --------
        >>> import numpy as np
        >>> from demix import Data
        >>> from demix.data.rows import ArrayRows
        >>> data = Data(ArrayRows(np.array([[1.0, 2.0]])), "a table", ("mass", "height"))
        >>> next(data.matching(["height", "mass"]).blocks())[1]
        tensor([[2., 1.]])
        """
        if names is None or self.names is None:
            if (names is None) != (self.names is None):
                known = "the model" if self.names is None else self.source
                other = self.source if self.names is None else "the model"
                warn(
                    f"Columns have names in {known}, but not in {other}; they are taken in the "
                    "order in which they come."
                )
            return self
        if tuple(names) == self.names:
            return self
        if len(set(self.names)) < len(self.names) or not set(names) <= set(self.names):
            missing = next((name for name in names if name not in self.names), None)
            what = "has one name twice" if missing is None else f"has no column {missing!r}"
            raise DemixError(
                f"Expected the columns {listed(names)} that the model was fitted to, but "
                f"{self.source} {what}; give a table with these names."
            )
        columns = np.array([self.names.index(name) for name in names])
        return replace(self, rows=PickedColumns(self.rows, columns), names=tuple(names))

    def precisely(self, precise: bool = True) -> Data:
        """Return the same rows, handed out as float64."""
        return replace(self, precise=precise)

    def check_unchanged(self) -> None:
        """Refuse data whose files were changed since they were opened."""
        self.rows.check_unchanged()

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
        block : Tensor (B, ...)
            The rows; the last block may be smaller.
        """
        for start, rows in self.raw_blocks(size):
            yield start, self._floats(rows, copy=True)

    def raw_blocks(self, size: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Go through all rows once as :meth:`blocks` does, in the type in which they are kept."""
        if size is None:
            size = max(1, BLOCK // max(1, int(np.prod(self.shape[1:]))))
        if size < 1:
            raise DemixError(f"A block must have at least 1 row, but size is {size}.")
        for start in range(0, len(self), size):
            yield start, self.rows.read(start, min(start + size, len(self)))

    def array(self) -> np.ndarray:
        """Return all rows in memory: float32, or float64 where that would lose what they tell."""
        return narrowed(self.rows.read(0, len(self)))

    def digest(self) -> str:
        """Return the SHA-256 of shape, type and content, to say later which data were used.

        It does not depend on where the rows are kept: an array, and the same array in an ``.npy``
        file, have the same digest.
        """
        digest = hashlib.sha256(f"{self.shape} {self.rows.dtype.str}".encode())
        for _, rows in self.raw_blocks():
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

    def _floats(self, rows: np.ndarray, *, copy: bool) -> Tensor:
        if self.precise:
            return torch.from_numpy(rows.astype(np.float64, order="C", copy=copy))
        return torch.from_numpy(as_float32(rows, copy=copy))
