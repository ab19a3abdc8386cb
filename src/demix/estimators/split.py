"""Parts of data: what is trained on, what chooses the weights, and what judges them."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from demix._support.errors import DemixError

Part = Literal["train", "choose", "judge"]
PARTS: tuple[Part, ...] = ("train", "choose", "judge")


def three_parts(count: int, share: float, random: np.random.Generator) -> np.ndarray:
    """Say for each of ``count >= 3`` units to which of `PARTS` it belongs, by its number there.

    A share of them is held out: one half to choose the weights by, the other to judge them.

    Examples
    --------
    >>> import numpy as np
    >>> from demix.estimators.split import three_parts
    >>> np.bincount(three_parts(20, 0.2, np.random.default_rng(0))).tolist()
    [16, 2, 2]
    """
    half = max(1, round(share * count / 2))
    if count < 3 or count - 2 * half < 1:
        raise DemixError(
            f"Training, choosing and judging take at least 3 parts of the data, but with a share "
            f"of {share:g} held out there are {count}; give more data."
        )
    place = np.zeros(count, dtype=np.int64)
    order = random.permutation(count)
    place[order[:half]], place[order[half : 2 * half]] = 1, 2
    return place


def hanging_together(pairs: Tensor, rows: int) -> np.ndarray:
    """Return for each row ``(N,)`` the number of the set that pairs ``(P, 2)`` chain it to.

    Examples
    --------
    >>> import torch
    >>> from demix.estimators.split import hanging_together
    >>> hanging_together(torch.tensor([[0, 2], [2, 3]]), 4).tolist()
    [0, 1, 0, 0]
    """
    first, second = pairs.T.numpy()
    links = coo_array((np.ones(len(pairs)), (first, second)), shape=(rows, rows))
    return np.asarray(connected_components(links, directed=False)[1])


def pick(units: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Draw ``size`` of the units ``(U,)``, each at most once while there are enough of them."""
    device = generator.device
    if size <= len(units) <= 16 * size:
        chosen = torch.randperm(len(units), generator=generator, device=device)[:size]
    else:
        chosen = torch.randint(len(units), (size,), generator=generator, device=device)
    return units[chosen.cpu()]


def thin(units: Tensor, most: int) -> Tensor:
    """Return at most ``most`` of the units, evenly spread."""
    if len(units) <= most:
        return units
    return units[torch.linspace(0, len(units) - 1, most, dtype=torch.float64).round().long()]
