"""What a folder of images holds, as it was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demix._support.errors import DemixError
from demix._support.validation import check_seed
from demix.papers.scenes.pairs import check_noise
from demix.papers.scenes.registry import check_count, check_size, scene_named

_ENGINES = ("embree", "blender")


@dataclass(frozen=True)
class Order:
    """What a folder of images holds.

    Attributes
    ----------
    scene : str
        Name of the scene.
    n, size, seed : int
        How many images, their width and height, the seed of the latents.
    pairs : str, optional
        The noise of positives, such as ``normal:0.1``; without it there are none.
    engine : str
        ``embree``, or ``blender`` for the slow reference.

    Examples
    --------
    >>> from demix.papers import Order
    >>> Order("3dident", n=10, pairs="normal:0.1").files
    {'latents': 'images', 'positive_latents': 'positives'}
    """

    scene: str
    n: int
    size: int = 64
    seed: int = 0
    pairs: str | None = None
    engine: str = "embree"

    def check(self) -> None:
        """Refuse what cannot be rendered."""
        scene_named(self.scene)
        check_count(self.n)
        check_size(self.size)
        check_seed(self.seed)
        if self.pairs is not None:
            check_noise(self.pairs)
        if self.engine not in _ENGINES:
            raise DemixError(f"Engines are {' and '.join(_ENGINES)}, but got {self.engine!r}.")
        if self.engine == "blender" and not self.scene.endswith("3dident"):
            raise DemixError(
                f"The engine 'blender' renders 3dident and causal3dident, but got {self.scene}; "
                "use the engine 'embree'."
            )

    @property
    def files(self) -> dict[str, str]:
        """The names of files of latents, and for each the name of the file of its images."""
        files = {"latents": "images"}
        return files | {"positive_latents": "positives"} if self.pairs else files

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """The shape of each file of images."""
        return self.n, self.size, self.size, 3

    def bytes_of(self, rows: int) -> int:
        """Return how many bytes so many rows of images take."""
        return len(self.files) * rows * self.size**2 * 3


@dataclass(frozen=True)
class Shard:
    """Rows ``first`` to ``last`` of a folder, its latents already there."""

    folder: Path
    order: Order
    first: int
    last: int


def shards(folder: Path, order: Order) -> list[Shard]:
    """Return a folder in its parts."""
    rows = shard_rows(order)
    starts = range(0, order.n, rows)
    return [Shard(folder, order, first, min(first + rows, order.n)) for first in starts]


def shard_rows(order: Order) -> int:
    """Return how many rows are rendered at a time, for a few seconds."""
    return 1 if order.engine == "blender" else min(256, max(1, (1 << 20) // order.size**2))
