"""Photographs of a folder or a tar archive, decoded when they are asked for."""

from __future__ import annotations

import hashlib
import lzma
import os
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from PIL import Image

from demix._support.errors import DemixError, demix_errors, reason
from demix._support.files import check_regular, inside, open_regular
from demix.data.images import SUFFIXES, open_image
from demix.papers.datasets.archives import open_tar

_AROUND = 256 / 224  # the short side of an image that is cut, in units of what is cut out of it
_MOST_DAMAGED = 0.01
# Bytes that are read at a time, and the most of a file in an archive, which may hold mere zeros.
_PIECE, _LARGEST = 2**20, 2**26
# An image so many times as long as wide becomes too large when its short side grows.
_LONGEST = 100
_DAMAGE = (OSError, EOFError, tarfile.TarError, lzma.LZMAError, zlib.error, DemixError)


class ImageBatch(NamedTuple):
    """File ``names``, without folders, and ``pixels`` ``(B, H, W, 3)`` of uint8."""

    names: list[str]
    pixels: np.ndarray


class ImageFiles:
    """Photographs of a folder or a tar archive, ``source``; made by :func:`open_images`.

    ``names`` are without folders, in the order of the archive, or sorted; ``side`` is width and
    height of images when they are read.
    """

    def __init__(self, source: Path, members: dict[str, str], side: int) -> None:
        self.source, self.side = source, side
        self.names = tuple(members)
        self._members = members

    def __len__(self) -> int:
        return len(self.names)

    def some(self, count: int) -> ImageFiles:
        """Return at most so many of the images, evenly spread over all."""
        step = max(1, -(-len(self) // count))
        kept = {name: self._members[name] for name in self.names[::step]}
        return ImageFiles(self.source, kept, self.side)

    def digest(self) -> str:
        """Return a checksum of names and files, which are read but not decoded."""
        digest = hashlib.sha256()
        for name, file in self._files():
            found = hashlib.sha256()
            with suppress(*_DAMAGE), open_regular(file) if isinstance(file, Path) else file as raw:
                while piece := raw.read(_PIECE):
                    found.update(piece)
            digest.update(f"{name} {found.hexdigest()}\n".encode(errors="replace"))
        return digest.hexdigest()

    def batches(self, size: int) -> Iterator[ImageBatch]:
        """Go through all images once, in batches; up to one in a hundred may be damaged."""
        damaged: list[str] = []
        names: list[str] = []
        images: list[np.ndarray] = []
        for name, file in self._files():
            try:
                images.append(_decoded(file, self.side))
                names.append(name)
            except _DAMAGE as error:
                damaged.append(name)
                if len(damaged) > _MOST_DAMAGED * len(self):
                    raise DemixError(
                        f"Expected images that can be decoded, but {len(damaged)} of {len(self)} "
                        f"in {self.source} cannot, which is more than 1 %; the last of them is "
                        f"{name} ({reason(error.__cause__ or error)}); fetch or write them again."
                    ) from None
            if len(images) == size:
                yield ImageBatch(names, np.stack(images))
                names, images = [], []
        if images:
            yield ImageBatch(names, np.stack(images))

    def _files(self) -> Iterator[tuple[str, Path | IO[bytes]]]:
        """Go through names and files."""
        if self.source.is_dir():
            for name, path in self._members.items():
                yield name, Path(path)
            return
        wanted = {member: name for name, member in self._members.items()}
        # In the order of the archive, which may be compressed.
        with _archive(self.source) as archive:
            for member in archive:
                wanted_file = member.isreg() and member.name in wanted
                if wanted_file and (file := archive.extractfile(member)) is not None:
                    yield wanted[member.name], file


def open_images(path: str | Path, *, side: int = 224) -> ImageFiles:
    """Open the photographs of a folder or a tar archive, without decoding them.

    Images of other sizes are reduced to a short side of ``side * 256 / 224`` pixels and the middle
    is cut out, as is usual for ImageNet; images of exactly ``side x side`` are taken as they are.

    Parameters
    ----------
    path : path
        A folder, with or without folders in it, or a tar archive, compressed or not, of ``.png``,
        ``.jpg``, ``.webp``, ``.tif`` and ``.bmp`` files. Nothing is unpacked.
    side : int
        Width and height of the images that are handed out.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from demix.papers import open_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.jpg", "b.jpg"):
    ...         Image.new("RGB", (40, 30)).save(f"{folder}/{name}")
    ...     images = open_images(folder, side=16)
    ...     batch = next(images.batches(8))
    >>> batch.names, batch.pixels.shape
    (['a.jpg', 'b.jpg'], (2, 16, 16, 3))
    """
    path = Path(path)
    if side < 1:
        raise DemixError(f"Images need a side of at least 1 pixel, but got {side}.")
    if not path.exists():
        raise DemixError(f"Expected a folder or a tar archive of images, but {path} is not there.")
    members: dict[str, str] = {}
    for member in sorted(map(os.fspath, inside(path, OSError))) if path.is_dir() else _listed(path):
        name = member.rpartition("/")[2]
        if not name.lower().endswith(SUFFIXES) or name.startswith("."):
            continue
        if name in members:
            raise DemixError(
                f"Expected each file name once, because rows are joined by it, but {path} has "
                f"{name} as {members[name]} and as {member}; rename one of them."
            )
        members[name] = member
    if not members:
        raise DemixError(
            f"Expected .png, .jpg, .webp, .tif or .bmp images in {path}, but there are none."
        )
    return ImageFiles(path, members, side)


def _listed(path: Path) -> Iterator[str]:
    with _archive(path) as archive:
        yield from (member.name for member in archive if member.isreg())


@contextmanager
def _archive(path: Path) -> Iterator[tarfile.TarFile]:
    problem = f"Expected a folder or a tar archive of images, but {path} cannot be read as one"
    with demix_errors(problem, "fetch it again"):
        check_regular(path)
        with open_tar(path) as archive:
            yield archive


def _decoded(file: Path | IO[bytes], side: int) -> np.ndarray:
    """Return the pixels ``(side, side, 3)`` of an image."""
    # Going back in a compressed archive would begin it anew. What is cut off is damaged.
    image = open_image(file if isinstance(file, Path) else BytesIO(file.read(_LARGEST)), "RGB")
    if max(image.size) > _LONGEST * min(image.size):
        raise DemixError(
            f"Expected images at most {_LONGEST} times as long as wide, but one has "
            f"{image.width} x {image.height} pixels; cut it."
        )
    if image.size != (side, side):
        share = round(side * _AROUND) / min(image.size)
        width, height = (max(side, round(length * share)) for length in image.size)
        image = image.resize((width, height), Image.Resampling.BICUBIC)
        left, top = (width - side) // 2, (height - side) // 2
        image = image.crop((left, top, left + side, top + side))
    return np.asarray(image)
