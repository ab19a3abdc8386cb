"""Rows of two files that belong together, by the names they have in both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import numpy as np

from demix._support.errors import DemixError

_SHOWN = 3


class Matched(NamedTuple):
    """Which rows belong together.

    Attributes
    ----------
    first, second : ndarray (M,) of int
        Numbers of the rows in both, in the order of the first.
    only_first, only_second : list of str
        Names that the other lacks.
    """

    first: np.ndarray
    second: np.ndarray
    only_first: list[str]
    only_second: list[str]


def match_rows(
    first: Sequence[str], second: Sequence[str], *, called: tuple[str, str] = ("first", "second")
) -> Matched:
    """Return which rows have the same name in both.

    Names are compared as they are; if not a single one is in both, as file names without folders.

    Parameters
    ----------
    first, second : sequence of str
        A name for each row; none may occur twice.
    called : two str
        What messages call them.

    Examples
    --------
    >>> from demix.data.matching import match_rows
    >>> found = match_rows(["b.png", "a.png", "c.png"], ["set/a.png", "set/b.png"])
    >>> found.first.tolist(), found.second.tolist(), found.only_first
    ([0, 1], [1, 0], ['c.png'])
    """
    for names, words in zip((first, second), called, strict=True):
        _check_names(names, words)
    found = _matched(first, second)
    if len(found.first) == 0:
        short = [[_file_name(name) for name in names] for names in (first, second)]
        if all(len(set(names)) == len(names) for names in short):
            found = _matched(*short)
    if len(found.first) == 0:
        raise DemixError(
            f"Expected rows of the same names, but {called[0]} and {called[1]} share none: theirs "
            f"are {listed(first)} and {listed(second)}."
        )
    return found


def listed(names: Sequence[str]) -> str:
    """Return the first few names, for a message."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _matched(first: Sequence[str], second: Sequence[str]) -> Matched:
    places = {name: place for place, name in enumerate(second)}
    pairs = [(place, places[name]) for place, name in enumerate(first) if name in places]
    known = set(first)
    return Matched(
        np.array([a for a, _ in pairs], dtype=np.int64),
        np.array([b for _, b in pairs], dtype=np.int64),
        [name for name in first if name not in places],
        [name for name in second if name not in known],
    )


def _check_names(names: Sequence[str], called: str) -> None:
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        if name in places:
            raise DemixError(
                f"Expected a name of its own for each row of {called}, but rows {places[name]} and "
                f"{place} (counted from 0) are both called {name!r}."
            )
        places[name] = place


def _file_name(name: str) -> str:
    return PurePosixPath(name.replace("\\", "/")).name
