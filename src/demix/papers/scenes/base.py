"""The contract of a scene."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from demix._support.errors import DemixError
from demix._support.validation import check_matrix, check_seed


class Scene(ABC):
    """Images as a function of latents.

    Attributes
    ----------
    name : str
        What the command line calls it.
    latents : tuple of str
        What each column of the latents ``(N, d)`` means.
    categories : mapping of str to tuple of str
        The values of latents that are categories: column values are positions in the tuple. All
        other latents lie in ``[-1, 1]``.
    typical : tuple of float
        Latents at which every part of the scene shows, around which a preview varies them.
    """

    name: ClassVar[str]
    latents: ClassVar[tuple[str, ...]]
    categories: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    typical: ClassVar[tuple[float, ...]]

    @abstractmethod
    def image(self, latents: np.ndarray, size: int) -> np.ndarray:
        """Return the image ``(size, size, 3)`` of latents ``(d,)``, as bytes."""

    def sample(self, n: int, seed: int) -> np.ndarray:
        """Draw latents ``(n, d)``, independent and uniform; fewer rows are the first of more."""
        unit = np.random.default_rng(check_seed(seed)).random((n, len(self.latents)))
        drawn = 2 * unit - 1
        for name, values in self.categories.items():
            column = self.latents.index(name)
            drawn[:, column] = np.floor(len(values) * unit[:, column])
        return drawn.astype(np.float32)

    def check(self, latents: Any) -> np.ndarray:
        """Return latents as a float32 matrix ``(N, d)`` that the scene can show, or refuse them."""
        z = check_matrix(latents, "latents")
        if z.shape[1] != len(self.latents):
            raise DemixError(
                f"The scene {self.name} has {len(self.latents)} latents "
                f"({', '.join(self.latents)}), but got {z.shape[1]} columns."
            )
        for column, name in enumerate(self.latents):
            values = z[:, column]
            if name in self.categories:
                known = self.categories[name]
                if not np.isin(values, np.arange(len(known))).all():
                    raise DemixError(
                        f"The latent {name!r} (column {column}) must be 0 to {len(known) - 1} for "
                        f"{', '.join(known)}, but other values were given."
                    )
            elif len(values) and np.abs(values).max() > 1 + 1e-6:
                raise DemixError(
                    f"The latent {name!r} (column {column}) must lie in [-1, 1], but reaches "
                    f"{values[np.abs(values).argmax()]:g}; divide by its largest size."
                )
        return z.astype(np.float32)
