"""What several runs agree on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demix._support.errors import DemixError
from demix._support.files import new_array
from demix.data.data import Data, as_data
from demix.diagnostics.agreement.align import Map
from demix.diagnostics.agreement.common import mean_of
from demix.diagnostics.agreement.group import Group
from demix.estimators.base import Demixer
from demix.estimators.encoding import encoded
from demix.estimators.gain import Gain


@dataclass(frozen=True, eq=False)
class Consensus:
    """Latents that several runs agree on, and how well; made by :func:`demix.consensus`.

    Attributes
    ----------
    latents : ndarray (N, n) of float32
        The mean of the mapped runs, for all rows of the data. On a sphere they have length 1, else
        each dimension has mean 0 and variance 1 on the rows that aligned the runs. Under the
        orthogonal and the affine group, the dimensions that runs agree on most come first.
    stability, low, high : ndarray (n,)
        Held-out R² of each run against the consensus of the others, the mean over runs, and its
        95 % interval over rows and runs.
    null : ndarray (n,)
        The same with rows shuffled, the largest of ten.
    untrained : float
        The mean R² over dimensions of encoders with random weights: what the data alone agree on.
    per_run : ndarray (R, n)
        The R² of each run.
    stable : ndarray (n,) of bool
        Whether ``low`` reaches 0.8 and lies above ``null``, and at least half of the runs have a
        gain above zero.
    verdict : str
        All of it in one sentence.
    group : Group
        What runs may differ by, and by which theorem.
    seeds : tuple of R int
        The ``random_state`` of each run.
    models : tuple of R estimators
        Fitted.
    maps : tuple of R Map
        From the latents of each run to the consensus.
    held_out : ndarray (K,) of int64
        Rows that judged: neither the runs nor the maps were fitted to them.

    Examples
    --------
    See :func:`demix.consensus`.
    """

    latents: np.ndarray
    stability: np.ndarray
    low: np.ndarray
    high: np.ndarray
    null: np.ndarray
    untrained: float
    per_run: np.ndarray
    stable: np.ndarray
    verdict: str
    group: Group
    seeds: tuple[int, ...]
    models: tuple[Demixer, ...]
    maps: tuple[Map, ...]
    held_out: np.ndarray

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What each run knows about held-out positives or labels."""
        return tuple(model.gain_ for model in self.models)

    def transform(self, X: Any) -> np.ndarray:
        """Return the consensus latents of new rows.

        Parameters
        ----------
        X : array-like (N, d), images (N, C, H, W), or Data
            Arrays larger than memory are read block by block.

        Returns
        -------
        ndarray (N, n) of float32
        """
        data = self._checked(X)
        out = np.empty((len(data), len(self.stability)), dtype=np.float32)
        return write_consensus(self.models, self.maps, self.group, data, out)

    def aligned(self, X: Any) -> np.ndarray:
        """Return the latents ``(R, N, n)`` of each run in the coordinates of the consensus."""
        data = self._checked(X)
        out = np.empty((len(self.models), len(data), len(self.stability)), dtype=np.float32)
        for start, runs in encoded([model.encoder_ for model in self.models], data):
            for r, (map_, z) in enumerate(zip(self.maps, runs, strict=True)):
                out[r, start : start + len(z)] = map_(z)
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return everything but latents and models as plain data, for JSON."""
        return {
            "verdict": self.verdict,
            "group": self.group.name,
            "theorem": self.group.theorem,
            "rows": len(self.latents),
            "held_out_rows": len(self.held_out),
            "stability": self.stability.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
            "null": self.null.tolist(),
            "untrained": self.untrained,
            "stable": self.stable.tolist(),
            "per_run": self.per_run.tolist(),
            "seeds": list(self.seeds),
            "gains": [gain.to_dict() for gain in self.gains],
            "maps": [map_.to_dict() for map_ in self.maps],
        }

    def _checked(self, X: Any) -> Data:
        data = as_data(X)
        features, expected = math.prod(data.shape[1:]), self.models[0].n_features_in_
        if features != expected:
            raise DemixError(
                f"X has {features} features, but the runs of the consensus were fitted to "
                f"{expected}; give data of the same kind."
            )
        return data


def write_consensus(
    models: Sequence[Demixer],
    maps: Sequence[Map],
    group: Group,
    data: Data,
    out: np.ndarray,
    report: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Write the consensus of all rows to ``out`` ``(N, n)``, in the memory of one block."""
    for start, runs in encoded([model.encoder_ for model in models], data):
        out[start : start + len(runs[0])] = mean_of(maps, runs, group)
        if report is not None:
            report(start + len(runs[0]))
    return out


def check_output(out: Any, shape: tuple[int, int]) -> None:
    """Refuse what latents cannot be written to, before anything is trained."""
    if isinstance(out, str | Path):
        if Path(out).suffix != ".npy" or not Path(out).parent.is_dir():
            raise DemixError(f"out must name an .npy file in an existing folder, but got {out}.")
    elif out is not None and (
        not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != np.float32
    ):
        got = f"{out.dtype} {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise DemixError(
            f"out must be the path of an .npy file or an array of float32 of shape {shape}, but "
            f"got {got}."
        )


def output(out: Any, shape: tuple[int, int]) -> AbstractContextManager[np.ndarray]:
    """Give where latents go: memory, the array that was given, or a new ``.npy`` file."""
    if isinstance(out, str | Path):
        return new_array(out, shape)
    return nullcontext(np.empty(shape, dtype=np.float32) if out is None else out)
