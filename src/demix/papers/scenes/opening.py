"""Opening a folder of rendered images."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from demix._support.errors import DemixError, warn
from demix.data.npy_files import read_npy
from demix.papers.digests import digest_of
from demix.papers.scenes.arrays import META, Sums, read_meta
from demix.papers.scenes.order import Order
from demix.papers.scenes.registry import scene_named


@dataclass(frozen=True)
class Rendered:
    """A folder of rendered images, mapped from the disk.

    Attributes
    ----------
    images, latents : ndarray (N, size, size, 3) of uint8, (N, d) of float32
        The images that are rendered, and what they show.
    names, categories : tuple of str, dict of str to list of str
        The names of the latents, and the values of those that are categories.
    positives, positive_latents : ndarray, optional
        The same for the other half of each pair.
    order, digest : Order, str
        What the folder was asked to hold, and a checksum of order and files.
    """

    images: np.ndarray
    latents: np.ndarray
    names: tuple[str, ...]
    categories: dict[str, list[str]]
    positives: np.ndarray | None
    positive_latents: np.ndarray | None
    order: Order
    digest: str


def open_rendered(folder: str | Path, *, verify: bool = False) -> Rendered:
    """Open what ``demix render`` wrote, without reading it into memory.

    Of a folder that is not finished, the rows that are rendered are given, with a warning.

    Parameters
    ----------
    folder : str or Path
        The folder.
    verify : bool
        Read everything once, block by block, and refuse a folder whose checksums are others.

    Examples
    --------
    >>> import tempfile
    >>> from demix.papers import Order, open_rendered, render_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_rendered(render_folder(Order("sprites", n=2, size=8), folder)).latents.shape
    (2, 5)
    """
    path = Path(folder)
    if not (path / META).is_file():
        raise DemixError(
            f"Expected a folder that 'demix render' wrote, but {path} holds no {META}."
        )
    about = read_meta(path)
    try:
        order, done = Order(**about["order"]), int(about["rendered"])
        order.check()
        if not 0 <= done <= order.n:
            raise ValueError("it holds another number of images")
        sums, scene = Sums.of(about, order), scene_named(order.scene)
        names, categories = scene.latents, {k: list(v) for k, v in scene.categories.items()}
        if about["latents"] != list(names) or about["categories"] != categories:
            raise ValueError("it holds other latents")
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise DemixError(f"{path / META} is damaged; render the folder anew.") from error
    if not done:
        raise DemixError(f"Expected images in {path}, but none is rendered yet; render it again.")
    found: dict[str, np.ndarray] = {}
    for latents, images in order.files.items():
        found[latents] = _mapped(path / f"{latents}.npy", (order.n, len(names)), "float32")[:done]
        found[images] = _mapped(path / f"{images}.npy", order.shape, "uint8")[:done]
    if verify and not sums.hold(path, order):
        raise DemixError(
            f"{path} is damaged: its files do not match their checksums; the command that rendered "
            "it renders what is damaged again."
        )
    if verify:
        scene.check(found["latents"])
    if done < order.n:
        warn(
            f"{path} holds {done} of {order.n} images so far; the command that rendered them goes "
            "on after them."
        )
    return Rendered(
        found["images"],
        found["latents"],
        names,
        categories,
        found.get("positives"),
        found.get("positive_latents"),
        order,
        digest_of([repr(order), repr(sums)]),
    )


def _mapped(file: Path, shape: tuple[int, ...], kind: str) -> np.ndarray:
    if not file.is_file():
        raise DemixError(f"{file} is missing or no file; render the folder anew.")
    try:
        array = read_npy(file)
    except DemixError as error:
        raise DemixError(
            f"Expected a whole .npy file, but {file} is truncated or damaged; render the folder "
            "anew."
        ) from error
    if array.shape != shape or array.dtype != kind:
        raise DemixError(
            f"Expected {kind} of shape {shape} in {file}, but found {array.dtype} of shape "
            f"{array.shape}; render the folder anew."
        )
    return array
