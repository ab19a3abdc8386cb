"""Images, whoever made them, and a folder of them as rows ``(N, C, H, W)``."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from demix._support.errors import DemixError, reason
from demix._support.files import changed, open_regular, stamp_of
from demix.data.data import Data
from demix.data.formats import looks_like

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
# Pillow opens many more, some of them with another program.
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")
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


def open_image(source: Path | BytesIO, mode: str) -> Image.Image:
    """Decode an image to a mode such as ``"RGB"``, upright as its EXIF orientation says.

    Parameters
    ----------
    source : Path or BytesIO
        A PNG, JPEG, WebP, TIFF or BMP image; anything else, and what is damaged, is refused.
    mode : str
        What Pillow calls the channels.

    Examples
    --------
    >>> from io import BytesIO
    >>> from demix.data.images import open_image
    >>> open_image(BytesIO(b"%!PS"), "RGB")
    Traceback (most recent call last):
    demix.DemixError: Expected a PNG, JPEG, WebP, TIFF or BMP image, but ...
    """
    with _opened(source) as image:
        ImageOps.exif_transpose(image, in_place=True)
        return image.convert(mode)


@contextmanager
def _opened(source: Path | BytesIO) -> Iterator[Image.Image]:
    """Open an image, decoding no pixels; whatever fails until it is closed is told."""
    name = source if isinstance(source, Path) else "one of the images"
    try:
        with (
            open_regular(source) if isinstance(source, Path) else nullcontext(source) as file,
            warnings.catch_warnings(),
        ):
            # Pillow warns of odd metadata, which change no pixel, and of sizes meant to exhaust.
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=_FORMATS) as image:
                # Some cameras put a second, smaller image behind the photograph (MPO).
                if getattr(image, "is_animated", False) and image.format != "MPO":
                    raise ValueError("it has several pages")
                yield image
    except DemixError:
        raise
    except Exception as error:  # every format fails in its own way
        found = f"cannot be decoded ({reason(error)})"
        if isinstance(error, UnidentifiedImageError):
            kind = looks_like(source) if isinstance(source, Path) else "something else"
            found = f"looks like {kind}"
        raise DemixError(
            f"Expected a PNG, JPEG, WebP, TIFF or BMP image, but {name} {found}; remove it or "
            "write it again."
        ) from error


class ImageRows:
    """Images of one size, decoded when they are asked for, as float32 in ``[0, 1]``."""

    def __init__(self, paths: Sequence[Path], mode: str, width: int, height: int) -> None:
        self._paths = paths
        self._looks = mode, width, height
        self.shape = (len(paths), len(mode), height, width)
        self.dtype = np.dtype(np.float32)
        self._stamp = stamp_of(paths)

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

    def check_unchanged(self) -> None:
        """Refuse images that were changed."""
        if stamp_of(self._paths) != self._stamp:
            raise changed(self._paths[0].parent)

    def _decode(self, path: Path) -> np.ndarray:
        image = open_image(path, self._looks[0])
        _check_looks((image.mode, *image.size), self._looks, path, self._paths[0])
        pixels = np.asarray(image)
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
            f"Expected a folder of .png, .jpg, .webp, .tif or .bmp images or a zarr store, but "
            f"{folder} is neither."
        )
    first = _looks(paths[0])
    for path in paths[1:]:
        _check_looks(_looks(path), first, path, paths[0])
    return Data(ImageRows(paths, *first), str(folder))


def _looks(path: Path) -> tuple[str, int, int]:
    """Return mode, width and height of an image when it is upright."""
    with _opened(path) as image:
        mode, (width, height) = image.mode, image.size
        # The method of PNG images would decode them, to look for an orientation behind the pixels.
        orientation = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
        # Pillow turns TIFF images by itself.
        if orientation in (5, 6, 7, 8) and image.format != "TIFF":
            width, height = height, width
    if mode not in _MODES:
        raise DemixError(
            f"Expected an image with 8 bits for each channel, but {path} is of mode {mode}; "
            "convert it to grey (L) or RGB."
        )
    return _MODES[mode], width, height


def _check_looks(
    looks: tuple[str, int, int], first: tuple[str, int, int], path: Path, like: Path
) -> None:
    if looks != first:
        raise DemixError(
            f"Expected images of one size, {_words(first)} as {like.name}, but {path} is "
            f"{_words(looks)}; convert or remove it."
        )


def _words(looks: tuple[str, int, int]) -> str:
    mode, width, height = looks
    return f"{width} x {height} pixels in {mode}"
