"""Rows of users as :class:`Data`: something that can be sliced, however large it is."""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, demix_errors, listed, warn
from demix._support.memory import check_memory
from demix._support.validation import as_numpy
from demix.data.rows import PickedRows, Rows, array_rows

BLOCK = 2**22
"""Numbers of one block unless its size is asked for: 16 MB in float32."""

_ADVICE = {
    "c": "take real and imaginary part as columns",
    "M": "subtract a first date and divide by a unit",
    "m": "divide by a unit",
}
SHARE = 1e-3  # of the standard deviation: larger steps of a type show in what is learnt
LARGEST = np.finfo(np.float32).max / 2
"""Numbers up to it can be subtracted in float32; a Python float would be infinite in float16."""


@dataclass(frozen=True, eq=False)
class Data:
    """Rows ``(N, d)`` or images ``(N, C, H, W)`` of a user, in memory or on disk.

    They are made by ``read_data`` and ``as_data``, read when they are asked for, and come as
    float32, or as float64 if ``precise``. Messages call them ``source``; ``names`` are those of the
    columns, ``form`` says how a table is written. What a scan of all rows has found is ``known``,
    so that one scan is enough.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from demix.data.data import as_data
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
    form: str = ""
    known: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape ``(N, d)`` or ``(N, C, H, W)``."""
        return self.rows.shape

    def __len__(self) -> int:
        return self.rows.shape[0]

    def take(self, index: Tensor) -> Tensor:
        """Return the rows at ``index`` ``(B,)`` of int64, in its order, as floats ``(B, ...)``."""
        self._check(index)
        return self._floats(self.rows[index.cpu().numpy()], copy=False)

    def only(self, index: Tensor) -> Data:
        """Return the rows at ``index`` ``(B,)`` of int64 as data of their own; nothing is read."""
        self._check(index)
        return replace(self, rows=PickedRows(self.rows, index.cpu().numpy()), known={})

    def matching(self, names: Sequence[str] | None) -> Data:
        """Return the columns of these names, in this order; raise if one is missing.

        If the names of either side are not known, all columns are returned in their order.
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
        picked = PickedRows(self.rows, columns=columns)
        return replace(self, rows=picked, names=tuple(names), known={})

    def precisely(self, precise: bool = True) -> Data:
        """Return the same rows as float64."""
        return replace(self, precise=precise)

    def check_unchanged(self) -> None:
        """Raise :class:`DemixError` if a file was changed since it was opened."""
        self.rows.check_unchanged()

    def blocks(self, size: int | None = None) -> Iterator[tuple[int, Tensor]]:
        """Yield all rows once, in order: the number of the first of a block, and ``(B, ...)``.

        A block has ``size`` rows, by default as many as fit into 16 MB; the last may have fewer.
        """
        for start, rows in self.raw_blocks(size):
            yield start, self._floats(rows, copy=True)

    def raw_blocks(self, size: int | None = None) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all rows as :meth:`blocks` does, in the type in which they are kept."""
        size = max(1, BLOCK // max(1, math.prod(self.shape[1:]))) if size is None else size
        if size < 1:
            raise DemixError(f"A block must have at least 1 row, but size is {size}.")
        for start in range(0, len(self), size):
            yield start, self.rows[start : min(start + size, len(self))]

    def array(self, *, exact: bool = False) -> np.ndarray:
        """Return all rows in memory: float32, or float64 where that is too coarse or not exact."""
        size = math.prod(self.shape) * max(4, self.rows.dtype.itemsize)
        check_memory(size, f"Reading all of {self.source}", "take fewer rows")
        return narrowed(self.by_number().rows[:], exact=exact)

    def by_number(self) -> Data:
        """Return itself to what counts its rows, with a warning if their order is in doubt."""
        if self.rows.doubt is not None:
            warn(self.rows.doubt)
        return self

    def digest(self) -> str:
        """Return the SHA-256 of shape and numbers, the same for an array and any file of it."""
        if "digest" not in self.known:
            for _ in self.digested_blocks():
                pass
        return str(self.known["digest"])

    def digested_blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield all rows as :meth:`raw_blocks` does, and keep their digest."""
        digest = hashlib.sha256(f"{self.shape}".encode())
        for start, rows in self.raw_blocks():
            digest.update(np.ascontiguousarray(_shortest(rows)).data)
            yield start, rows
        self.known["digest"] = digest.hexdigest()

    def _check(self, index: Tensor) -> None:
        tensor = torch.is_tensor(index)
        if not tensor or index.dtype != torch.int64 or index.ndim != 1:
            got = f"{index.dtype} of shape {tuple(index.shape)}" if tensor else index
            raise DemixError(f"Rows are taken by an int64 tensor (B,) of numbers, but got {got}.")
        if len(index) and not 0 <= int(index.min()) <= int(index.max()) < len(self):
            raise DemixError(
                f"Rows are numbered 0..{len(self) - 1}, but {int(index.min())}.."
                f"{int(index.max())} were asked for."
            )

    def _floats(self, rows: np.ndarray, *, copy: bool) -> Tensor:
        dtype = np.float64 if self.precise else np.float32
        return torch.from_numpy(_as_floats(rows, dtype, copy=copy))


def as_data(x: Any) -> Data:
    """Return an array, memory map, tensor, frame, series, zarr array or list of lists as `Data`.

    Names of a frame's columns are kept. What is on disk stays there. Arrays in memory are not
    copied (frames are), so they must not be changed while in use.
    """
    if isinstance(x, Data):
        return x
    # A frame or a zarr array exists only if the library it is from was imported.
    pandas, zarr = sys.modules.get("pandas"), sys.modules.get("zarr")
    if pandas is not None and isinstance(x, pandas.DataFrame | pandas.Series):
        return _from_frame(x, pandas)
    if zarr is not None and isinstance(x, zarr.Array):
        from demix.data.zarr_files import ZarrRows

        return checked_data(ZarrRows(x, "the zarr array"), "the zarr array")
    kind, source = type(x).__name__, "the tensor" if torch.is_tensor(x) else "the array"
    x = as_numpy(x, "rows")
    if isinstance(x, np.ndarray):
        return checked_data(array_rows(x), source)
    problem = f"Expected rows of equally many numbers, but got a {kind} that is no array"
    with demix_errors(problem, "give rows of one length"):
        array = np.asarray(x)
    if array.ndim == 0:
        raise DemixError(
            f"Expected an array, a tensor, a frame or a list of lists, but got {kind}; files are "
            "read with read_data."
        )
    return checked_data(array_rows(array), f"the {kind}")


def checked_data(rows: Rows, source: str, names: tuple[str, ...] | None = None) -> Data:
    """Return rows as :class:`Data`; raise if they are no real numbers or have no columns."""
    if rows.dtype.kind not in "biuf":
        advice = _ADVICE.get(rows.dtype.kind, "convert it, e.g. with .astype(float)")
        raise DemixError(f"Expected real numbers, but {source} is of type {rows.dtype}; {advice}.")
    if len(rows.shape) < 2:
        raise DemixError(
            f"Expected rows (N, d) or images (N, C, H, W), but {source} has shape {rows.shape}; "
            "reshape a single dimension with [:, None]."
        )
    if 0 in rows.shape:
        raise DemixError(f"Expected at least one row and column, but {source} has {rows.shape}.")
    return Data(rows, source, names)


def check_columns(dtypes: Any, source: str) -> None:
    """Raise if one of the types of columns of pandas is none of real numbers."""
    types = sys.modules["pandas"].api.types
    for name, dtype in dtypes.items():
        if not types.is_numeric_dtype(dtype) or types.is_complex_dtype(dtype):
            raise DemixError(
                f"Expected columns of real numbers, but column {str(name)!r} of {source} is of "
                f"type {dtype}; convert it or leave it out."
            )


def _from_frame(x: Any, pandas: Any) -> Data:
    """Return a frame, or a series as its one column."""
    source = f"the {type(x).__name__}"
    frame = x.to_frame() if isinstance(x, pandas.Series) else x
    check_columns(frame.dtypes, source)
    array = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return checked_data(array_rows(array), source, tuple(map(str, frame.columns)))


def _as_floats(array: np.ndarray, dtype: type[np.floating], *, copy: bool) -> np.ndarray:
    """Return numbers of a type; what is too large becomes infinite, which the checks then find."""
    with np.errstate(over="ignore"):
        return array.astype(dtype, order="C", copy=copy)


def narrowed(array: np.ndarray, *, exact: bool = False) -> np.ndarray:
    """Return numbers ``(N, ...)`` as float32, or as float64 if that is too coarse for a column."""
    enough = np.can_cast(array.dtype, np.float32) or not (exact or _loses(array))
    return _as_floats(array, np.float32 if enough else np.float64, copy=False)


def _shortest(rows: np.ndarray) -> np.ndarray:
    """Return the numbers as bytes, float32 or float64, the shortest of them that holds all."""
    # Readers of tables give float64, whatever their numbers were once written from.
    with np.errstate(over="ignore", invalid="ignore"):
        for kind in (np.uint8, np.float32):
            short = rows.astype(kind, copy=False)
            if short is rows or np.array_equal(short, rows, equal_nan=kind is np.float32):
                return short
    return rows.astype(np.float64)


def loses_precision(largest: np.ndarray, std: np.ndarray) -> np.ndarray:
    """Return for which columns ``(d,)``, of these magnitudes, steps of float32 are too coarse."""
    with np.errstate(over="ignore", invalid="ignore"):
        return (std > 0) & (np.spacing(np.asarray(largest, np.float32)) > SHARE * std)


def _loses(array: np.ndarray) -> bool:
    """Whether some column loses precision; NaN and what is larger are ignored."""
    for column in array.reshape(len(array), -1).T if array.size else ():
        known = column[np.abs(column) <= LARGEST].astype(np.float64)
        # A constant column minus its first number is zero; minus its mean it may not be.
        if known.size and loses_precision(np.abs(known).max(), (known - known[0]).std()):
            return True
    return False
