"""Arrays of any library as :class:`Data`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch

from demix._support.errors import DemixError
from demix._support.text import reason
from demix._support.validation import as_numpy, refuse_masked
from demix.data.data import Data
from demix.data.precision import narrowed
from demix.data.rows import ZarrRows, array_rows
from demix.data.zarr_files import check_zarr


def as_data(x: Any) -> Data:
    """Return an array of any common library as :class:`Data`, without reading what is on disk.

    Parameters
    ----------
    x : array, np.memmap, Tensor, DataFrame, Series, zarr array, list of lists or Data
        Rows ``(N, d)`` or images ``(N, C, H, W)`` of real numbers. Names of a frame's columns are
        kept. Whole numbers and booleans become float32 when they are taken, as all others do.

    Returns
    -------
    Data
        Arrays in memory are not copied (frames are), so they must not be changed while in use.

    Examples
    --------
    >>> from demix.data.arrays import as_data
    >>> as_data([[1, 2], [3, 4], [5, 6]]).shape
    (3, 2)
    """
    if isinstance(x, Data):
        return x
    # Nobody can have a frame or a zarr array without having imported the library it is from.
    pandas, zarr = sys.modules.get("pandas"), sys.modules.get("zarr")
    if pandas is not None and isinstance(x, pandas.DataFrame | pandas.Series):
        return _from_frame(x, pandas)
    if zarr is not None and isinstance(x, zarr.Array):
        return zarr_data(x, "the zarr array")
    if torch.is_tensor(x):
        return array_data(as_numpy(x, "rows"), "the tensor")
    refuse_masked(x, "rows")
    if isinstance(x, np.ndarray):
        return array_data(x, "the array")
    try:
        array = np.asarray(x)
    except (TypeError, ValueError) as error:
        raise DemixError(
            f"Expected rows of equally many numbers, but got a {type(x).__name__} that is no "
            f"array: {reason(error)}."
        ) from error
    if array.ndim == 0:
        raise DemixError(
            f"Expected an array, a tensor, a frame or a list of lists, but got "
            f"{type(x).__name__}; files are read with read_data."
        )
    return array_data(array, f"the {type(x).__name__}")


def array_data(array: np.ndarray, source: str, names: tuple[str, ...] | None = None) -> Data:
    """Return a numpy array as :class:`Data`, or say why it cannot be used."""
    _check(array.shape, array.dtype, source)
    return Data(array_rows(array), source, names)


def zarr_data(array: Any, source: str) -> Data:
    """Return a zarr array as :class:`Data`, or say why it cannot be used."""
    check_zarr(array, source)
    _check(array.shape, array.dtype, source)
    return Data(ZarrRows(array, source), source)


def _check(shape: tuple[int, ...], dtype: np.dtype[Any], source: str) -> None:
    if dtype.kind not in "biuf":
        advice = {
            "c": "take real and imaginary part as columns",
            "M": "subtract a first date and divide by a unit",
            "m": "divide by a unit",
        }.get(dtype.kind, "convert it, e.g. with .astype(float)")
        raise DemixError(f"Expected real numbers, but {source} is of type {dtype}; {advice}.")
    if len(shape) < 2:
        raise DemixError(
            f"Expected rows (N, d) or images (N, C, H, W), but {source} has shape {shape}; "
            "reshape a single dimension with [:, None]."
        )
    if 0 in shape:
        raise DemixError(f"Expected at least one row and column, but {source} has shape {shape}.")


def _from_frame(x: Any, pandas: Any) -> Data:
    """Return a frame, or a series as its one column."""
    source = f"the {type(x).__name__}"
    frame = x.to_frame() if isinstance(x, pandas.Series) else x
    for name, dtype in frame.dtypes.items():
        number = pandas.api.types.is_numeric_dtype(dtype)
        if not number or pandas.api.types.is_complex_dtype(dtype):
            raise DemixError(
                f"Expected columns of real numbers, but column {str(name)!r} of {source} is of "
                f"type {dtype}; convert it or leave it out."
            )
    array = narrowed(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    return array_data(array, source, tuple(map(str, frame.columns)))
