"""A folder of images as rows ``(N, C, H, W)``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from demix.data.data import Data
from demix.data.formats import looks_like, reason
from demix.errors import DemixError

SUFFIXES = (".png", ".jpg", ".jpeg")
# What images are decoded to; 8 bits for each channel.
_MODES = {
    "1": "L",
    "L": "L",
    "P": "RGB",
    "RGB": "RGB",
    "RGBA": "RGBA",
    "CMYK": "RGB",
    "YCbCr": "RGB",
}


class ImageRows:
    """Images of one size, decoded when they are asked for, as float32 in ``[0, 1]``."""

    def __init__(self, paths: Sequence[Path], mode: str, width: int, height: int) -> None:
        self._paths = paths
        self._mode = mode
        self.shape = (len(paths), len(mode), height, width)
        self.dtype = np.dtype(np.float32)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return images ``start..stop - 1``."""
        return self.pick(np.arange(start, stop))

    def pick(self, index: np.ndarray) -> np.ndarray:
        """Return the images at ``index``."""
        images = np.empty((len(index), *self.shape[1:]), dtype=np.float32)
        for place, row in enumerate(index):
            images[place] = self._decode(self._paths[row])
        images /= 255
        return images

    def _decode(self, path: Path) -> np.ndarray:
        try:
            with Image.open(path) as image:
                pixels = np.asarray(image.convert(self._mode))
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DemixError(
                f"Expected an image that can be decoded, but {path} is damaged ({reason(error)}); "
                "replace or remove it."
            ) from error
        # One channel comes as (H, W), several as (H, W, C).
        return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def image_data(folder: Path) -> Data:
    """Return all images of a folder, sorted by name, as :class:`Data` ``(N, C, H, W)``.

    Only the beginning of each file is read here, for its size and its channels.
    """
    paths = sorted(
        path
        for path in folder.iterdir()
        if path.suffix.lower() in SUFFIXES and not path.name.startswith(".")
    )
    if not paths:
        raise DemixError(
            f"Expected a folder of .png or .jpg images or a zarr store, but {folder} is neither."
        )
    first = _looks(paths[0])
    for path in paths[1:]:
        looks = _looks(path)
        if looks != first:
            raise DemixError(
                f"Expected images of one size, {_words(first)} as {paths[0].name}, but {path} is "
                f"{_words(looks)}; convert or remove it."
            )
    return Data(ImageRows(paths, *first), str(folder))


def _looks(path: Path) -> tuple[str, int, int]:
    """Return mode, width and height of an image."""
    try:
        with Image.open(path) as image:
            mode, size = image.mode, image.size
    except UnidentifiedImageError as error:
        raise DemixError(
            f"Expected a PNG or JPEG image, but {path} looks like {looks_like(path)}; remove it "
            "or write it again."
        ) from error
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DemixError(
            f"Expected a PNG or JPEG image, but {path} cannot be read: {reason(error)}."
        ) from error
    if mode not in _MODES:
        raise DemixError(
            f"Expected an image with 8 bits for each channel, but {path} is of mode {mode}; "
            "convert it to grey (L) or RGB."
        )
    return _MODES[mode], *size


def _words(looks: tuple[str, int, int]) -> str:
    mode, width, height = looks
    return f"{width} x {height} pixels in {mode}"
