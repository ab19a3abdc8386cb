"""Positive pairs over a finite set: the nearest there is to what a conditional draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, need
from demix._support.validation import check_matrix
from demix.distributions.base import Conditional

# Above so many latents they are searched in cells. Each of the cells' centres wants 39 latents to
# be fitted on; 32 of 1024 cells missed none of 500 neighbours among 250 000 latents in 10 d.
_EXACT = 40_960
_CELLS, _LOOKED_AT = 1024, 32


class Realised(NamedTuple):
    """Distances ``(B,)`` from the anchors: of what was drawn, and of what was matched to it."""

    drawn: Tensor
    matched: Tensor


class NearestPairs:
    r"""Pairs of a finite set of latents, such as those a set of rendered images has.

    .. math:: \tilde z \sim p(\tilde z | z_i), \qquad
              j = \operatorname{arg\,min}_{k \ne i} |\tilde z - z_k|_2

    So Zimmermann et al. (2021) pair the images of 3DIdent. Pairs can be no closer than the set is
    dense; :meth:`realised` shows how far the conditional goes, and how far the pairs are.

    Parameters
    ----------
    latents : array or Tensor (N, n)
        The set, at least two latents, in the conditional's space.
    conditional : Conditional
        How positives differ.

    Notes
    -----
    Needs the extra ``papers`` (FAISS). The search is exact up to 40 960 latents; above, it looks
    into 32 of 1024 cells (Johnson et al. 2019), and almost always finds the nearest.

    Examples
    --------
    >>> import torch
    >>> from demix import Box, Normal, Uniform
    >>> from demix.papers import NearestPairs
    >>> box = Box(3)
    >>> generator = torch.Generator().manual_seed(0)
    >>> latents = Uniform(box).sample(2000, generator=generator)
    >>> pairs = NearestPairs(latents, Normal(box, sigma=0.05))
    >>> index, positive = pairs.sample(512, generator=generator)
    >>> index.shape, bool((index == positive).any())
    (torch.Size([512]), False)
    >>> [round(float(side.mean()), 2) for side in pairs.realised(512, generator=generator)]
    [0.08, 0.09]
    >>> torch.stack([index, positive], dim=1).shape  # for ``positives`` of an estimator
    torch.Size([512, 2])
    """

    def __init__(self, latents: Any, conditional: Conditional) -> None:
        matrix = check_matrix(latents, "latents")
        dim = conditional.space.dim
        if matrix.shape[1] != dim or len(matrix) < 2:
            raise DemixError(
                f"Expected at least 2 latents of {conditional.space!r}, (N, {dim}), but got an "
                f"array of shape {matrix.shape}."
            )
        self.latents = torch.from_numpy(matrix.astype(np.float32))
        outside = ~conditional.space.contains(self.latents)
        if bool(outside.any()):
            raise DemixError(
                f"Expected latents in {conditional.space!r}, but {int(outside.sum())} of "
                f"{len(matrix)} lie outside, the first of them in row {int(outside.int().argmax())}"
                "; rescale them."
            )
        self.conditional = conditional
        faiss = need("faiss", "Matching nearest latents", "papers")
        if len(matrix) <= _EXACT:
            self._index = faiss.IndexFlatL2(dim)
        else:
            self._index = faiss.index_factory(dim, f"IVF{_CELLS},Flat")
            self._index.train(self.latents.numpy())
            self._index.nprobe = _LOOKED_AT
        self._index.add(self.latents.numpy())

    def __len__(self) -> int:
        return len(self.latents)

    def sample(
        self, size: int, *, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw anchors uniformly, and a positive for each; return their row numbers."""
        index, positive, _ = self._drawn(size, generator)
        return index, positive

    def realised(self, size: int = 4096, *, generator: torch.Generator | None = None) -> Realised:
        """Draw pairs, and measure how far they are from what the conditional asked for."""
        index, positive, drawn = self._drawn(size, generator)
        anchors = self.latents.to(index.device)[index]
        matched = self.latents.to(index.device)[positive]
        return Realised((drawn - anchors).norm(dim=1), (matched - anchors).norm(dim=1))

    def _drawn(self, size: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return anchors and positives, by row, and what was drawn in their place."""
        device = torch.device("cpu") if generator is None else generator.device
        index = torch.randint(len(self), (size,), generator=generator, device=device)
        drawn = self.conditional.sample(self.latents.to(device)[index], generator=generator)
        _, found = self._index.search(drawn.cpu().numpy(), 2)
        first, second = torch.from_numpy(found).to(device).T
        # Where the noise is smaller than the spacing, the nearest is the anchor itself.
        return index, torch.where(first == index, second, first), drawn
