"""Images of any origin, and a folder of images as rows ``(N, C, H, W)``."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from demix._support.errors import DemixError, demix_errors
from demix._support.files import open_regular, stamp_of
from demix.data.formats import looks_like
from demix.data.rows import Rows

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".tif", ".tiff", ".bmp")
_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "BMP")  # Pillow opens more, some by other programs
_LARGEST = 2**24  # numbers in an image: a small file may hold a thousand times as many
_MOST_SCANS = 100
# What images are decoded to; 8 bits for each channel.
_MODES = {"1": "L", "L": "L", "RGBA": "RGBA"} | dict.fromkeys(("P", "RGB", "CMYK", "YCbCr"), "RGB")


def open_image(source: Path | BytesIO, mode: str) -> Image.Image:
    """Decode an image to a mode of Pillow such as ``"RGB"``, upright as its EXIF data say."""
    with _opened(source) as image:
        ImageOps.exif_transpose(image, in_place=True)
        return image.convert(mode)


@contextmanager
def _opened(source: Path | BytesIO) -> Iterator[Image.Image]:
    """Open an image without decoding it; errors up to its close become one sentence."""
    name = source if isinstance(source, Path) else "one of the images"
    problem = f"Expected a PNG, JPEG, WebP, TIFF or BMP image, but {name}"
    advice = "remove it or write it again"
    # Pillow warns of odd metadata, which change no pixel, and of sizes meant to exhaust.
    with demix_errors(f"{problem} cannot be decoded", advice), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            with (
                open_regular(source) if isinstance(source, Path) else nullcontext(source) as file,
                Image.open(file, formats=_FORMATS) as image,
            ):
                # Some cameras put a second, smaller image behind the photograph (MPO).
                if getattr(image, "is_animated", False) and image.format != "MPO":
                    raise ValueError("it has several pages")
                # Each scan of a JPEG is decoded over all pixels; cameras write up to ten.
                file.seek(0)  # Pillow seeks before it reads
                if image.format in ("JPEG", "MPO") and file.read().count(b"\xff\xda") > _MOST_SCANS:
                    raise ValueError(f"it has more than {_MOST_SCANS} scans")
                tags = getattr(image, "tag_v2", {})  # Pillow drops half of 16 bits in colour
                bits = tags.get(ExifTags.Base.BitsPerSample, (8,))
                if max(bits) > 8 or ";16B" in str(image.tile[:1]):
                    raise ValueError("it has more than 8 bits for each channel")
                if 2 in tags.get(ExifTags.Base.SampleFormat, ()):  # which Pillow does not look at
                    raise ValueError("its numbers have signs")
                # Pillow decodes thousands of parts over each other, and leaves black what has none.
                places = (tile.extents or (0, 0, 0, 0) for tile in image.tile)
                pixels = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in places)
                if tags.get(ExifTags.Base.PlanarConfiguration) == 2 and image.tile[0][0] == "raw":
                    pixels /= tags.get(ExifTags.Base.SamplesPerPixel, 1)
                if tags and pixels != image.width * image.height:
                    raise ValueError("its strips or tiles do not cover it once")
                yield image
        except UnidentifiedImageError as error:
            kind = looks_like(source) if isinstance(source, Path) else "something else"
            raise DemixError(f"{problem} looks like {kind}; {advice}.") from error


class ImageRows(Rows):
    """All images of a folder ``(N, C, H, W)``, sorted by name, as float32 in ``[0, 1]``.

    They are decoded when they are asked for; at first only their sizes and channels are read.
    """

    def __init__(self, folder: Path) -> None:
        shown = (path for path in folder.iterdir() if not path.name.startswith("."))
        self._paths = sorted(path for path in shown if path.suffix.lower() in SUFFIXES)
        if not self._paths:
            raise DemixError(
                "Expected a folder of .png, .jpg, .webp, .tif or .bmp images or a zarr store, but "
                f"{folder} is neither."
            )
        self._format = _format(self._paths[0])
        for path in self._paths[1:]:
            self._check(_format(path), path)
        mode, width, height = self._format
        self.shape, self.dtype = (len(self._paths), len(mode), height, width), np.dtype(np.float32)
        self.source, self.stamp = folder, self.now()

        def counted(path: Path) -> list[str | int]:
            return [int(x) if x.isdecimal() else x for x in re.split(r"(\d+)", path.name)]

        for first, other in zip(self._paths, sorted(self._paths, key=counted), strict=True):
            if first != other:
                self.doubt = (
                    f"Images in {folder} are sorted by name, {first.name} before {other.name}, "
                    "which may not be the order of time, pairs, labels or factors; write their "
                    "numbers with leading zeros."
                )
                break

    def __getitem__(self, index: slice | np.ndarray) -> np.ndarray:
        numbers = np.arange(len(self._paths))[index]
        images = np.empty((len(numbers), *self.shape[1:]), dtype=np.float32)
        decoded: dict[int, int] = {}  # and where: of few images, a batch holds each many times
        for place, number in enumerate(numbers):
            if decoded.setdefault(number, place) < place:
                images[place] = images[decoded[number]]
                continue
            path = self._paths[number]
            image = open_image(path, self._format[0])
            self._check((image.mode, *image.size), path)
            images[place] = np.atleast_3d(np.asarray(image)).transpose(2, 0, 1)  # (H, W), (H, W, C)
        return np.divide(images, 255, out=images)

    def now(self) -> object:
        """Return the stamp of all images."""
        return stamp_of(self._paths)

    def _check(self, found: tuple[str, int, int], path: Path) -> None:
        if found != self._format:
            first, other = (f"{w} x {h} pixels in {mode}" for mode, w, h in (self._format, found))
            raise DemixError(
                f"Expected images of one size, {first} as {self._paths[0].name}, but {path} is "
                f"{other}; convert or remove it."
            )


def _format(path: Path) -> tuple[str, int, int]:
    """Return mode, width and height of an image when it is upright."""
    with _opened(path) as image:
        mode, (width, height) = image.mode, image.size
        # The method of PNG images would decode them, to look for an orientation behind the pixels.
        orientation = Image.Image.getexif(image).get(ExifTags.Base.Orientation)
        if orientation in (5, 6, 7, 8) and image.format != "TIFF":  # it turns TIFF itself
            width, height = height, width
    if mode not in _MODES:
        raise DemixError(
            f"Expected an image with 8 bits for each channel, but {path} is of mode {mode}; "
            "convert it to grey (L) or RGB."
        )
    if len(_MODES[mode]) * width * height > _LARGEST:
        raise DemixError(
            f"Expected images of at most {_LARGEST} numbers, but {path} has {width} x {height} "
            "pixels; make them smaller."
        )
    return _MODES[mode], width, height
