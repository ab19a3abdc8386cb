"""What all methods are given: rows, and factors that only the read-outs see."""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np

from demix._support.files import write_atomic

FITTED = 0.8
"""The first share of rows is fitted; the last rows score."""

CACHE = Path.home() / ".cache" / "demix-real"
"""Where made data are kept."""

Kind = Literal["series", "labels", "views"]


@dataclass(frozen=True, eq=False)
class Task:
    """Rows ``x`` ``(N, d)`` or ``(N, C, H, W)`` and their known factors.

    Factors are numbers ``(N, k)``, or classes ``(N,)`` of whole numbers. Labels are classes that
    methods are given; ``view`` ``(N, d)`` holds the other view of each row.
    """

    x: np.ndarray
    factors: dict[str, np.ndarray]
    n_latents: int
    lag: int = 1
    labels: np.ndarray | None = None
    view: np.ndarray | None = None

    @property
    def fitted(self) -> int:
        """The number of rows that are fitted."""
        return round(FITTED * len(self.x))

    @property
    def flat(self) -> np.ndarray:
        """The rows as vectors ``(N, d)``."""
        return self.x.reshape(len(self.x), -1)


@dataclass(frozen=True)
class Dataset:
    """A task by name: how to make it, and what to say of it."""

    name: str
    kind: Kind
    about: str
    make: Callable[[], Task]
    nuisance: tuple[str, ...] = ()
    """Factors that nothing given speaks of: shown, but no bar asks for them."""

    def load(self, cache: Path) -> Task:
        """Return the task, from the cache if its script has not changed since."""
        script = inspect.getsource(sys.modules[self.make.__module__])
        digest = hashlib.sha256(script.encode()).hexdigest()[:12]
        file = cache / f"{self.name.replace(' ', '-')}-{digest}.npz"
        if not file.exists():
            cache.mkdir(parents=True, exist_ok=True)
            task = self.make()
            given: dict[str, Any] = {"x": task.x, "n_latents": task.n_latents, "lag": task.lag}
            given |= {f"factor {name}": values for name, values in task.factors.items()}
            own = {"labels": task.labels, "view": task.view}
            given |= {name: values for name, values in own.items() if values is not None}
            packed = BytesIO()
            np.savez_compressed(packed, **given)
            write_atomic(file, packed.getvalue())
        return _read(file)


def _read(file: Path) -> Task:
    with np.load(file) as held:
        factors = {k.removeprefix("factor "): held[k] for k in held if k.startswith("factor ")}
        own = {name: held[name] for name in ("labels", "view") if name in held}
        return Task(held["x"], factors, int(held["n_latents"]), int(held["lag"]), **own)


def angles(values: np.ndarray) -> np.ndarray:
    """Return angles ``(N,)`` or ``(N, k)`` as cosines and sines ``(N, 2k)``."""
    values = values.reshape(len(values), -1)
    return np.concatenate([np.cos(values), np.sin(values)], axis=1).astype(np.float32)


def seen_through_net(states: np.ndarray, columns: int, seed: int) -> np.ndarray:
    """Return states ``(N, k)`` through a fixed random net of one layer, with 5 % of noise."""
    random = np.random.default_rng(seed)
    states = (states - states.mean(axis=0)) / states.std(axis=0)
    hidden = np.tanh(states @ random.normal(size=(states.shape[1], 32)) + random.normal(size=32))
    x = hidden @ random.normal(size=(32, columns)) / np.sqrt(32)
    return (x + 0.05 * x.std() * random.normal(size=x.shape)).astype(np.float32)


def windows(series: np.ndarray, length: int) -> np.ndarray:
    """Return of moments ``(N, d)`` all windows of a length ``(N - length + 1, d length)``."""
    found = np.lib.stride_tricks.sliding_window_view(series, length, axis=0)
    return np.ascontiguousarray(found).reshape(len(found), -1).astype(np.float32)
