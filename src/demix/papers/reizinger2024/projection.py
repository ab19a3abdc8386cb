"""A fixed random projection of pixels: what a linear map sees before anything is learnt."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError


class RandomProjection:
    r"""A random linear map of images to ``width`` features.

    Entries are zero but for one in :math:`\sqrt D` of the :math:`D` pixels, where they are
    :math:`\pm 1` with a common factor that keeps distances on average (Li et al. 2006). So it
    takes a megabyte or so where a dense one would take hundreds.

    Parameters
    ----------
    shape : (C, H, W)
        Of an image.
    width : int
        How many features.
    seed : int
        Draws the map.

    References
    ----------
    P. Li, T. Hastie, K. Church (2006), Very Sparse Random Projections.

    Examples
    --------
    >>> import torch
    >>> from demix.papers import RandomProjection
    >>> images = torch.rand(2, 3, 32, 32)
    >>> found = RandomProjection((3, 32, 32), 2000)(images)
    >>> round(float((found[0] - found[1]).norm() / (images[0] - images[1]).norm()), 1)
    1.0
    """

    def __init__(self, shape: tuple[int, int, int], width: int, *, seed: int = 0) -> None:
        if width < 1 or min(shape) < 1:
            raise DemixError(f"A projection needs sizes, but got {shape} to {width} features.")
        # What only saves and loads encoders does not wait for it.
        from sklearn.random_projection import SparseRandomProjection

        self.shape, self.width = shape, width
        self._map = SparseRandomProjection(width, random_state=seed, dense_output=True)
        # Only the shape of what it is fitted to matters.
        self._map.fit(np.zeros((1, int(np.prod(shape))), dtype=np.float32))

    def __call__(self, x: Tensor) -> Tensor:
        """Take images ``(N, C, H, W)`` to features ``(N, width)``."""
        if tuple(x.shape[1:]) != self.shape:
            raise DemixError(f"Expected images {self.shape}, but got {tuple(x.shape[1:])}.")
        projected = self._map.transform(x.reshape(len(x), -1).numpy())
        return torch.from_numpy(np.asarray(projected, dtype=np.float32))
