"""Factors of both kinds: numbers, and categories."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import rankdata

from demix._support.errors import DemixError
from demix._support.memory import check_memory
from demix._support.validation import as_numpy, check_pair
from demix.data.csv_files import refuse_missing
from demix.data.factors import FEW, are_few_whole_numbers
from demix.metrics.blocks import Blocks, Sampling, sampling_of

Columns = Sequence[int] | None
"""Columns of factors that are categories, counted from 0; by default they are guessed."""


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors that can be scored."""

    values: np.ndarray  # (N, n); categories are numbered from 0
    categorical: np.ndarray  # (n,) of bool
    fit: np.ndarray  # numbers of the rows that fit
    test: np.ndarray  # and of those that score

    @cached_property
    def classes(self) -> np.ndarray:
        """Each factor ``(N, n)`` as whole numbers from 0: its categories, or its bins."""
        columns = [
            column.astype(int) if categorical else binned(column)
            for column, categorical in zip(self.values.T, self.categorical, strict=True)
        ]
        return np.stack(columns, axis=1)

    def __len__(self) -> int:
        return len(self.values)

    def classes_of(self, column: int) -> int:
        """How many categories or bins a factor has."""
        return int(self.classes[:, column].max()) + 1


def check_factors(
    latents: Any, factors: Any, categorical: Columns = None, blocks: Blocks = None, seed: int = 0
) -> tuple[np.ndarray, Factors, Sampling]:
    """Return latents ``(N, m)``, factors ``(N, n)`` to score them with, and how rows are drawn."""
    numbers, text = _numbers(factors)  # text is always categories
    found, values = check_pair(latents, numbers)
    chosen = _chosen(values, text, categorical)
    values = values.copy()
    for column in np.flatnonzero(chosen):
        kinds, values[:, column] = np.unique(values[:, column], return_inverse=True)
        if 4 * len(kinds) > len(values):
            raise DemixError(
                "Expected categories that recur, four rows each or more, but column "
                f"{column} of factors (counted from 0) has {len(kinds)} of them in {len(values)} "
                "rows; drop it, or make it a number that is not listed as categorical."
            )
    sampling = sampling_of(found, values, blocks, seed)
    return found, Factors(values, chosen, *sampling.halves()), sampling


def binned(column: np.ndarray) -> np.ndarray:
    """Return numbers ``(N,)`` as whole numbers from 0: up to 20 bins of equally many samples."""
    # A table of two binned columns holds 5 samples in a cell on average. Equal numbers share a bin.
    kinds, numbered = np.unique(column, return_inverse=True)
    bins = int(np.clip((len(column) / 5) ** 0.5, 2, FEW))
    if len(kinds) <= bins:
        return np.asarray(numbered)
    # Middle ranks, so that bins are the same from either end.
    places = (2 * rankdata(column) - 1).astype(int) * bins // (2 * len(column))
    return np.asarray(np.unique(places, return_inverse=True)[1])


def column_of(values: Any, called: str) -> np.ndarray:
    """Return one column ``(N,)`` as numbers, truth values or text."""
    column = np.asarray(as_numpy(values, f"values of {called}"))
    if column.ndim != 1:
        raise DemixError(
            f"A factor must be one value for each row, (N,), but {called} has shape {column.shape}."
        )
    if column.dtype.kind == "O" and all(isinstance(cell, str) for cell in column):
        size = 4 * len(column) * max(map(len, column), default=0)
        check_memory(size, f"Factor {called}", "write its values shorter")
        column = column.astype(str)
    elif column.dtype.kind == "O":
        try:
            column = column.astype(float)
            if (np.abs(column[np.isfinite(column)]) >= 2.0**53).any():
                raise ValueError("whole numbers from 2^53 on merge; give them as text")
        except (TypeError, ValueError) as error:
            raise DemixError(
                f"A factor must be numbers or text throughout, but {called} is neither ({error})."
            ) from error
    if column.dtype.kind not in "biufU":
        raise DemixError(f"A factor must be numbers or text, but {called} is {column.dtype}.")
    if column.dtype.kind == "U":
        refuse_missing(column.tolist(), f"a value of {called}")
    return column


def _numbers(factors: Any) -> tuple[Any, np.ndarray]:
    """Return factors as numbers, text numbered in alphabetical order, and which columns it was."""
    try:
        array = np.empty(factors.shape) if hasattr(factors, "detach") else np.asarray(factors)
    except ValueError:  # ragged, for which check_pair raises
        array = np.empty(0)
    if array.dtype.kind not in "UO" or array.ndim != 2 or array.size == 0:
        return factors, np.zeros(array.shape[1] if array.ndim == 2 else 0, dtype=bool)
    columns = [
        column_of(column, f"column {i} of factors (counted from 0)")
        for i, column in enumerate(array.T)
    ]
    text = [column.dtype.kind == "U" for column in columns]
    numbers = [np.unique(x, return_inverse=True)[1] if x.dtype.kind == "U" else x for x in columns]
    return np.stack(numbers, axis=1), np.array(text)


def _chosen(values: np.ndarray, text: np.ndarray, categorical: Columns) -> np.ndarray:
    chosen = text.copy()
    if categorical is None:
        return chosen | [are_few_whole_numbers(column) for column in values.T]
    given = list(categorical) if np.iterable(categorical) else [str(categorical)]
    known = range(values.shape[1])
    outside = [
        x for x in given if isinstance(x, bool) or not isinstance(x, Integral) or x not in known
    ]
    if outside:
        raise DemixError(
            f"categorical must list columns 0..{values.shape[1] - 1} of factors, but holds "
            f"{', '.join(map(str, outside))}."
        )
    chosen[given] = True
    return chosen
