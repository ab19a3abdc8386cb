"""Pairs of rendered images: exact ones, nearest ones, or two views of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from demix.data.rows import array_rows
from demix.distributions.generalized_normal import Laplace, Normal
from demix.papers.datasets.nearest import NearestPairs
from demix.papers.datasets.simclr import SimCLRViews
from demix.papers.scenes.opening import Rendered
from demix.processes.process import Pairs
from demix.spaces.kinds import Box

PairNoise = Literal["normal", "laplace", "augmentations"]


class RenderedPairs:
    """Training pairs of a folder of rendered images; the last tenth of them is for scoring.

    Positives differ by ``noise``: "normal" or "laplace" around the latents, or "augmentations",
    views of one image as in SimCLR. Where the folder holds no positives of this noise, a positive
    is the image whose latents are nearest to a draw, as in the paper. ``width`` is the scale of
    the conditional, for all latents or one for each: Theorems 5 and 6 hold for any. A latent that
    is hard to see is found sooner the narrower it is and the wider the others are.
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
