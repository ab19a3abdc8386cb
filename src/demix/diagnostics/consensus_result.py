"""What several runs agree on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from demix._support.resources import table
from demix.data.data import Data
from demix.diagnostics.maps import Map, Stability, mean_of
from demix.estimators.base import Demixer
from demix.estimators.encoding import encoded
from demix.estimators.gain import Gain
from demix.theory.setting import Equivalence

STABLE = 0.8
"""A dimension is stable if the lower end of its interval reaches this R² (a correlation of about
0.9) and lies above the null."""
LEARNT = 0.5
"""If a smaller share of the runs has a gain above zero, no dimension is stable: what untrained
encoders agree on is the data, not latents."""

_CLAIMS = table("diagnostics/claims.toml")["consensus"]
_COMPARED = 2000  # how many held-out rows a report compares two runs on
_OF_ONE_RUN = ("steps", "training", "seed", "rows")  # facts of one run that are not those of all


@dataclass(frozen=True, eq=False)
class Consensus(Stability):
    """Latents that several runs agree on, and how well; made by :func:`demix.consensus`.

    Attributes
    ----------
    latents : ndarray (N, n) of float32
        The mean of the mapped runs, for all rows of the data. On a sphere they have length 1, else
        each dimension has mean 0 and variance 1 on the rows that aligned the runs. Unless the
        equivalence is a permutation, the dimensions that runs agree on most come first.
    stability, low, high, null, per_run : ndarray
        As in :class:`demix.diagnostics.maps.Stability`.
    untrained : float
        The mean R² over dimensions of encoders with random weights: what the data alone agree on.
    stable : ndarray (n,) of bool
        Whether ``low`` reaches 0.8 and lies above ``null``, and at least half of the runs have a
        gain above zero.
    verdict : str
        All of it in one sentence.
    equivalence : Equivalence
        What runs may differ by, and by which theorem.
    seeds : tuple of R int
        The ``random_state`` of each run.
    models : tuple of R estimators
        Fitted.
    maps : tuple of R Map
        From the latents of each run to the consensus.
    held_out : ndarray (K,) of int64
        Test rows: neither the runs nor the maps were fitted to them.
    """

    latents: np.ndarray
    untrained: float
    stable: np.ndarray
    verdict: str
    equivalence: Equivalence
    seeds: tuple[int, ...]
    models: tuple[Demixer, ...]
    maps: tuple[Map, ...]
    held_out: np.ndarray

    @property
    def gains(self) -> tuple[Gain, ...]:
        """What each run knows about held-out positives or labels."""
        return tuple(model.gain_ for model in self.models)

    def transform(self, X: Any) -> np.ndarray:
        """Return the consensus latents ``(N, n)`` of new rows, read block by block, as float32."""
        data = self.models[0]._data(X, reset=False)
        out = np.empty((len(data), len(self.stability)), dtype=np.float32)
        return write_consensus(self.models, self.maps, self.equivalence, data, out)

    def aligned(self, X: Any) -> np.ndarray:
        """Return the latents ``(R, N, n)`` of each run in the coordinates of the consensus."""
        data = self.models[0]._data(X, reset=False)
        out = np.empty((len(self.models), len(data), len(self.stability)), dtype=np.float32)
        for start, runs in encoded([model.encoder_ for model in self.models], data):
            for r, (map_, z) in enumerate(zip(self.maps, runs, strict=True)):
                out[r, start : start + len(z)] = map_(z)
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return everything but latents and models as plain data, for JSON."""
        arrays = ("stability", "low", "high", "null", "per_run", "stable")
        return {
            "verdict": self.verdict,
            "equivalence": self.equivalence.name,
            "theorem": self.equivalence.theorem,
            "rows": len(self.latents),
            "held_out_rows": len(self.held_out),
            **{name: getattr(self, name).tolist() for name in arrays},
            "untrained": self.untrained,
            "seeds": list(self.seeds),
            "gains": [gain.to_dict() for gain in self.gains],
            "maps": [map_.to_dict() for map_ in self.maps],
        }

    def report(
        self,
        path: str | Path,
        X: Any = None,
        *,
        time_order: bool = False,
        provenance: Mapping[str, object] | None = None,
    ) -> Path:
        """Write the consensus as one HTML page, which works offline, and return its path.

        An earlier page of demix is replaced, any other file is refused. Of ``X``, the rows of the
        consensus, those that were held out compare two runs; with ``time_order``, they are a
        series. ``provenance`` has entries besides the data, versions and machine.
        """
        from demix._support.provenance import provenance as versions
        from demix.estimators.models import facts_in_words, facts_of
        from demix.report.blocks import write_page
        from demix.report.consensus import consensus_page

        about = facts_of(self.models[0]) | {"time_order": time_order}
        facts = facts_in_words(self.models[0].encoder_, about)
        runs, origin = None, dict(provenance or {})
        if X is not None:
            data = self.models[0]._data(X, reset=False)
            rows = self.held_out[:: max(1, len(self.held_out) // _COMPARED)]
            runs = self.aligned(data.only(torch.from_numpy(rows)))
            origin["data"] = f"sha256 {data.digest()}"
        page = consensus_page(
            self.to_dict(),
            self.latents,
            {
                **{name: value for name, value in facts.items() if name not in _OF_ONE_RUN},
                "runs may differ by": self.equivalence.words,
                "seeds": ", ".join(map(str, self.seeds)),
                "rows": len(self.latents),
                "held-out rows": len(self.held_out),
            },
            threshold=STABLE,
            runs=runs,
            in_time=time_order,
            notes=self.models[0].notes_,
            provenance={**origin, **versions()},
        )
        return write_page(page, path)


def write_consensus(
    models: Sequence[Demixer], maps: Sequence[Map], group: Equivalence, data: Data, out: np.ndarray
) -> np.ndarray:
    """Write the consensus of all rows to ``out`` ``(N, n)``, in the memory of one block."""
    for start, runs in encoded([model.encoder_ for model in models], data):
        out[start : start + len(runs[0])] = mean_of(maps, runs, group)
    return out


def verdict(
    found: Stability, gains: Sequence[Gain], words: str, untrained: float
) -> tuple[np.ndarray, str]:
    """Return which dimensions ``(n,)`` are stable, and one sentence; runs differ by ``words``."""
    low = found.low
    learnt = np.mean([gain.above_zero for gain in gains]) >= LEARNT
    stable = np.asarray((low >= STABLE) & (low > found.null) & learnt)
    idle = sum(not gain.above_zero for gain in gains)
    unstable, least = (np.flatnonzero(~stable) + 1).tolist(), low[stable].min(initial=np.inf)
    parts = ["idle" if not learnt else "none"]
    if stable.any():
        parts = ["all" if not unstable else "one" if len(unstable) == 1 else "some"]
        parts += (["some_idle"] if idle else []) + (["untrained"] if untrained >= least else [])
    facts = {"runs": len(gains), "n": len(stable), "words": words, "stable": STABLE}
    facts |= {"idle": idle, "least": least, "untrained": untrained}
    facts |= {"unstable": ", ".join(map(str, unstable))}
    return stable, "".join(_CLAIMS[part] for part in parts).format(**facts) + "."
