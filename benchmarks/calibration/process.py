"""A process, and what it draws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Random = np.random.Generator


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows ``x`` of known ``factors`` ``(N, n)``, their targets, and the estimator."""

    x: np.ndarray
    factors: np.ndarray
    targets: dict[str, Any]
    demixer: Any


@dataclass(frozen=True)
class Process:
    """One way in which data may come about.

    Attributes
    ----------
    name : str
        What is special about it.
    breaks : tuple of str
        Names of the checks of which one has to fire; none if all assumptions hold.
    kept : bool
        Whether it was kept out of all tuning.
    draw : callable
        ``draw(rows, random)`` returns a `Sample`.
    rows : int
        How many rows are fitted.
    most : int
        Of how many seeds at most; very many rows take long.
    """

    name: str
    breaks: tuple[str, ...]
    draw: Callable[[int, Random], Sample] = field(repr=False)
    kept: bool = False
    rows: int = 6000
    most: int = 1000
