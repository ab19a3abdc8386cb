"""What a folder of images holds, as it was asked for."""

import math
from dataclasses import dataclass

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_seed
from demix.papers.scenes.base import Scene
from demix.papers.scenes.registry import check_count, check_size, scene_named

_ENGINES, _KINDS = ("embree", "blender"), ("normal", "laplace")


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


def shards(order: Order) -> list[range]:
    """Return the rows of a folder in parts."""
    rows = shard_rows(order)
    return [range(first, min(first + rows, order.n)) for first in range(0, order.n, rows)]


def shard_rows(order: Order) -> int:
    """Return how many rows are rendered at a time, for a few seconds."""
    return 1 if order.engine == "blender" else min(256, max(1, (1 << 20) // order.size**2))


def check_noise(noise: str) -> tuple[str, float]:
    """Return kind and scale of ``normal:0.1`` or ``laplace:0.05``."""
    kind, _, number = noise.partition(":")
    try:
        scale = float(number)
    except ValueError:
        scale = math.nan
    if kind not in _KINDS or not 0 < scale < math.inf:
        raise DemixError(
            f"Pairs are given as normal:SIGMA or laplace:LAMBDA, for example normal:0.1, but got "
            f"{noise!r}."
        )
    return kind, scale


def positive_latents(scene: Scene, latents: np.ndarray, noise: str, seed: int) -> np.ndarray:
    r"""Draw a positive :math:`\tilde z \sim p(\tilde z | z)` for each row, truncated to the box.

    The conditional of Zimmermann et al. (2021), Eq. 5, on the box of the latents ``(N, d)``, with
    ``noise`` ``normal:SIGMA`` or ``laplace:LAMBDA``; categories of the scene stay as they are.
    Published pairs of 3DIdent are the nearest neighbours among finitely many images; these are
    exact. The seed may be that of the latents.

    Examples
    --------
    >>> from demix.papers.scenes.order import positive_latents
    >>> from demix.papers import sample_latents, scene_named
    >>> scene = scene_named("sprites")
    >>> z = sample_latents(scene, 100, seed=0)
    >>> positive = positive_latents(scene, z, "normal:0.1", seed=0)
    >>> bool((positive[:, 0] == z[:, 0]).all()), bool((abs(positive[:, 1:]) <= 1).all())
    (True, True)
    """
    kind, scale = check_noise(noise)
    # Only here: whoever renders without pairs does not wait for torch, nor does any worker.
    import torch

    from demix.distributions.generalized_normal import Laplace, Normal
    from demix.spaces.kinds import Box

    free = [k for k, name in enumerate(scene.latents) if name not in scene.categories]
    box = Box(len(free), low=-1.0, high=1.0)
    conditional = Normal(box, scale) if kind == "normal" else Laplace(box, scale)
    # Not the numbers that made the latents, even if torch and NumPy drew them alike.
    generator = torch.Generator().manual_seed(check_seed(seed) + 2**40)
    anchors = torch.from_numpy(latents[:, free].astype(np.float64))
    drawn = conditional.sample(anchors, generator=generator).numpy()
    positives = latents.astype(np.float32)
    positives[:, free] = np.clip(drawn, -1, 1)
    return positives
