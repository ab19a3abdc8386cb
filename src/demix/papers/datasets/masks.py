"""KITTI Masks: pedestrians in short films of 64 x 64 pixels, with known factors."""

from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.memory import check_memory
from demix.papers.datasets.mots import Video, read_mots, sampled
from demix.papers.digests import digest_of
from demix.processes.process import Pairs

_SIDE = 64
_WINDOWS = 6
_LEAST_AREA = 30
_LEAST_FRAMES = 3


@dataclass(frozen=True, eq=False)
class KittiMasks:
    """Sequences of masks, made by :func:`kitti_masks`; rows of a sequence follow each other.

    Attributes
    ----------
    masks : array (N, 1, 64, 64) of bool
        The observations.
    factors : array (N, 3) of float32
        Vertical and horizontal position of the centre of mass, in pixels from the upper left one,
        and area, in pixels.
    sequence : array (N,) of int64
        Which sequence a row belongs to, counted from 0.
    frame : array (N,) of int64
        Number of its frame in the video; within a sequence each is one more than the last.
    track : array (N,) of int64
        Which pedestrian it is, counted from 0 over all videos. Windows overlap, so that one
        pedestrian is seen in several sequences: hold out tracks, not sequences.
    window : array (N,) of int64
        Which of the six windows, from left to right.
    """

    masks: np.ndarray
    factors: np.ndarray
    sequence: np.ndarray
    frame: np.ndarray
    track: np.ndarray
    window: np.ndarray

    names: ClassVar[tuple[str, ...]] = ("vertical position", "horizontal position", "area")

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def n_sequences(self) -> int:
        """How many sequences there are."""
        return int(self.sequence[-1]) + 1

    @cached_property
    def digest(self) -> str:
        """A checksum of all that they hold."""
        return digest_of(vars(self)[part.name] for part in fields(self))

    @cached_property
    def _left(self) -> Tensor:
        """How many rows of its sequence come after each row ``(N,)``."""
        last = np.cumsum(np.bincount(self.sequence))[self.sequence] - 1
        return torch.from_numpy(last - np.arange(len(self)))

    def pairs(self, max_delta_t: int = 1) -> Tensor:
        """Return all pairs ``(P, 2)`` of rows of a sequence that are at most so many frames apart.

        Zimmermann et al. (2021) take 1 and 5 frames, 0.05 and 0.15 seconds on average.
        """
        rows = torch.arange(len(self))
        lags = range(1, _checked_delta(max_delta_t) + 1)
        early = [rows[self._left >= lag] for lag in lags]
        return torch.cat([torch.stack([a, a + d], 1) for d, a in zip(lags, early, strict=True)])

    def sample_pairs(
        self, size: int, *, max_delta_t: int = 1, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Draw rows ``(size,)``: any frame but the last of its sequence, and one soon after it.

        The distance is uniform from 1 to ``max_delta_t``, or to what is left of the sequence.
        """
        most = self._left.clamp_max(_checked_delta(max_delta_t))
        device = None if generator is None else generator.device
        chance = torch.rand((2, size), dtype=torch.float64, generator=generator, device=device)
        # The last of a sequence have nothing after them.
        early = torch.nonzero(most)[:, 0].to(chance.device)
        index = early[(chance[0] * len(early)).long()]
        lag = 1 + (chance[1] * most.to(chance.device)[index]).long()
        return index, index + lag

    def sample(
        self, size: int, *, max_delta_t: int = 1, generator: torch.Generator | None = None
    ) -> Pairs:
        """Draw pairs as :func:`demix.train` takes them, with the factors as latents."""
        sides = self.sample_pairs(size, max_delta_t=max_delta_t, generator=generator)
        rows = [side.cpu().numpy() for side in sides]
        z = [torch.from_numpy(self.factors[row]).to(sides[0].device) for row in rows]
        x = [torch.from_numpy(self.masks[row]).to(sides[0].device).float() for row in rows]
        return Pairs(*z, *x)


def kitti_masks(*paths: str | Path) -> KittiMasks:
    r"""Build KITTI Masks from annotations of KITTI-MOTS and MOTSChallenge.

    The recipe is that of Klindt et al. (2021): masks of pedestrians are brought to a height
    of 64 pixels, cut into six windows of 64 x 64, and left out where a window shows less than 30
    pixels of a pedestrian; what is left of one pedestrian in one window, frame after frame, is a
    sequence. The page on data sets says how what the paper leaves open was settled.

    Parameters
    ----------
    *paths : str or Path
        Folders that are searched for ``.txt`` files, tar or zip archives of such, or the files
        themselves. The published set is made of the 21 videos of KITTI-MOTS and the 4 of
        MOTSChallenge, and has 2120 sequences with 84 626 frames, each of 4 kB.

    References
    ----------
    Klindt et al. (2021), Towards Nonlinear Disentanglement in Natural Data with Temporal Sparse
    Coding; Voigtlaender et al. (2019), MOTS: Multi-Object Tracking and Segmentation.

    Examples
    --------
    Something that comes in from the right, half the image, then 34 and 36 of 64 columns:

    >>> import tempfile
    >>> from pathlib import Path
    >>> from demix.papers import kitti_masks
    >>> codes = ["PP2PP2", "Pl1PT2", "Ph1PX2"]
    >>> lines = [f"{frame} 2001 2 64 64 {code}" for frame, code in enumerate(codes)]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "0000.txt").write_text("\n".join(lines))
    ...     data = kitti_masks(folder)
    >>> data.masks.shape, data.n_sequences  # all six windows lie on the whole image
    ((18, 1, 64, 64), 6)
    >>> data.factors[:3, 1].tolist()
    [47.5, 46.5, 45.5]
    >>> data.pairs(max_delta_t=2)[-1].tolist()
    [15, 17]
    """
    if not paths:
        raise DemixError("Expected folders or archives of MOTS annotations, but got none.")
    parts: list[list[np.ndarray]] = []
    sequences = tracks = 0
    videos = [video for path in paths for video in read_mots(path)]
    for video in videos:
        part = _sequences(video)
        if len(part[0]):
            part[2] += sequences
            part[4] += tracks
            sequences, tracks = part[2].max() + 1, part[4].max() + 1
            parts.append(part)
    if not parts:
        count = sum(len(video.frame) for video in videos)
        raise DemixError(
            f"Expected pedestrians of at least {_LEAST_AREA} pixels in {_LEAST_FRAMES} frames in a "
            f"row, but {count} masks from {', '.join(map(str, paths))} hold none."
        )
    return KittiMasks(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _sequences(video: Video) -> list[np.ndarray]:
    """Return the columns of :class:`KittiMasks` for one video."""
    width = video.width * _SIDE // video.height
    if width < _SIDE:
        raise DemixError(
            f"Expected a video at least as wide as high, but {video.name} is {video.width} wide "
            f"and {video.height} high; rotate its masks."
        )
    check_memory(
        4 * len(video.frame) * _SIDE * width,
        f"Cutting windows out of {video.name}",
        "give fewer frames at a time",
    )
    rows = np.arange(_SIDE) * video.height // _SIDE
    columns = np.arange(width) * video.width // width
    small = sampled(video.runs, video.height, rows, columns)
    offset = np.arange(_WINDOWS) * ((width - _SIDE) // (_WINDOWS - 1))
    area = sliding_window_view(small.sum(axis=1), _SIDE, axis=1)[:, offset].sum(axis=2)
    mask, window = np.nonzero(area >= _LEAST_AREA)
    _, track = np.unique(video.track, return_inverse=True)
    order = np.lexsort((video.frame[mask], window, track[mask]))
    mask, window = mask[order], window[order]
    frame, track = video.frame[mask], track[mask]
    consecutive = (np.diff(frame) == 1) & (np.diff(track) == 0) & (np.diff(window) == 0)
    sequence = np.cumsum(np.append(0, ~consecutive))[: len(mask)]
    kept = np.bincount(sequence, minlength=1)[sequence] >= _LEAST_FRAMES
    # (M, 64, w - 63, 64), and none of it copied before the windows are taken.
    windows = sliding_window_view(small, _SIDE, axis=2)
    masks = np.ascontiguousarray(windows[mask[kept], :, offset[window[kept]]])
    _, sequence = np.unique(sequence[kept], return_inverse=True)
    _, track = np.unique(track[kept], return_inverse=True)
    return [masks[:, None], _factors(masks), sequence, frame[kept], track, window[kept]]


def _factors(masks: np.ndarray) -> np.ndarray:
    """Return vertical and horizontal centre of mass, and area, ``(N, 3)``."""
    place = np.arange(_SIDE)
    area = masks.sum(axis=(1, 2))
    down, across = masks.sum(axis=2) @ place / area, masks.sum(axis=1) @ place / area
    return np.stack([down, across, area], axis=1).astype(np.float32)


def _checked_delta(max_delta_t: int) -> int:
    if isinstance(max_delta_t, bool) or not isinstance(max_delta_t, int | np.integer):
        raise DemixError(f"max_delta_t must be a whole number of frames, but got {max_delta_t!r}.")
    if max_delta_t < 1:
        raise DemixError(f"max_delta_t must be at least 1 frame, but got {max_delta_t}.")
    return int(max_delta_t)
