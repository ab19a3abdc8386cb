"""Pairs of rendered images: exact ones, views, or the nearest to what a conditional draws."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import DemixError, need
from demix._support.validation import check_matrix
from demix.data.rows import array_rows
from demix.distributions.base import Conditional
from demix.distributions.generalized_normal import Laplace, Normal
from demix.papers.datasets.simclr import SimCLRViews
from demix.papers.scenes.folder import Rendered
from demix.processes.process import Pairs
from demix.spaces.kinds import Box

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


PairNoise = Literal["normal", "laplace", "augmentations"]


class RenderedPairs:
    """Training pairs of a folder of rendered images; the last tenth of them is for scoring.

    Where the folder holds no positives of this ``noise``, a positive is the image whose latents are
    nearest to a draw, as in the paper, or for "augmentations" a view as in SimCLR. ``width`` is the
    scale of the conditional, of all latents or of each: Theorems 5 and 6 hold for any.
    """

    def __init__(
        self, rendered: Rendered, noise: PairNoise, width: float | Sequence[float] = 0.1
    ) -> None:
        self.rendered = rendered
        self.training = len(rendered.images) - len(rendered.images) // 10
        # Read, not mapped: a folder may be cut short while a training runs.
        self._images = array_rows(rendered.images)
        self._positives = None if rendered.positives is None else array_rows(rendered.positives)
        made = (rendered.order.pairs or "").partition(":")[0]
        self.exact = noise == made
        self._views = SimCLRViews() if noise == "augmentations" else None
        self._nearest: NearestPairs | None = None
        if not self.exact and self._views is None:
            latents = np.asarray(rendered.latents[: self.training])
            widths = np.broadcast_to(np.asarray(width, dtype=np.float32), latents.shape[1])
            # In units of their widths, all latents have one conditional.
            reach = (1 / widths).tolist()
            box = Box(len(widths), low=[-end for end in reach], high=reach)
            conditional = Normal(box, 1.0) if noise == "normal" else Laplace(box, 1.0)
            self._nearest = NearestPairs(latents / widths, conditional)

    @property
    def drawn(self) -> bool:
        """Whether positives are drawn from the conditional, and not given or made of the image."""
        return self._nearest is not None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        height, width, channels = self.rendered.images.shape[1:]
        return channels, height, width

    def sample(self, size: int, *, generator: torch.Generator) -> Pairs:
        """Draw pairs: latents ``(size, n)``, images ``(size, 3, H, W)`` of float32 in [0, 1]."""
        if self._nearest is not None:
            pair = self._nearest.sample(size, generator=generator)
            sides = [side.cpu().numpy() for side in pair]
            both = [torch.from_numpy(self.rendered.latents[rows]) for rows in sides]
            return Pairs(*both, *(self.images(rows) for rows in sides))
        device = generator.device
        chosen = torch.randint(self.training, (size,), generator=generator, device=device)
        rows = chosen.cpu().numpy()
        z = torch.from_numpy(self.rendered.latents[rows])
        x = self.images(rows)
        if self._views is not None:
            with torch.random.fork_rng(devices=[]):
                seed = torch.randint(2**62, (), generator=generator, device=device)
                torch.manual_seed(int(seed))
                return Pairs(z, z, self._views(x), self._views(x))
        assert self._positives is not None
        assert self.rendered.positive_latents is not None
        other = as_floats(self._positives[rows])
        return Pairs(z, torch.from_numpy(self.rendered.positive_latents[rows]), x, other)

    def images(self, rows: np.ndarray) -> Tensor:
        """Return the images at ``rows``, ``(B, 3, H, W)`` of float32 in [0, 1]."""
        return as_floats(self._images[rows])

    def rows(self, part: Literal["train", "test"], most: int) -> np.ndarray:
        """Return at most so many row numbers of a part."""
        if part == "train":
            return np.arange(min(most, self.training))
        return np.arange(self.training, min(len(self.rendered.images), self.training + most))


def as_floats(images: np.ndarray) -> Tensor:
    """Turn ``(B, H, W, 3)`` of uint8 into ``(B, 3, H, W)`` of float32, channels last in memory."""
    return torch.from_numpy(np.ascontiguousarray(images)).permute(0, 3, 1, 2).float() / 255
