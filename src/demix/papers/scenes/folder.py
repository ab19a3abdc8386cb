"""Folders of rendered images: written in shards through any interruption, and opened again."""

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from demix import __version__
from demix._support.errors import DemixError, shortened, warn
from demix._support.files import FULL, claiming, is_os_error, write_atomic
from demix._support.locks import lock_folder
from demix._support.outputs import claim_folder
from demix._support.provenance import cores, provenance
from demix.data.npy_files import read_npy
from demix.papers.digests import digest_of
from demix.papers.scenes.arrays import (
    META,
    Sums,
    allocate,
    check_length,
    check_ours,
    checksum,
    raw_npy,
    read_meta,
    sealed,
)
from demix.papers.scenes.order import Order, positive_latents, shards
from demix.papers.scenes.registry import scene_named
from demix.papers.scenes.workers import check_processes, check_room, full_disk, image_of, rendered

_COMMAND = "demix render"


def render_folder(
    order: Order,
    folder: str | Path,
    *,
    jobs: int | None = None,
    command: str = _COMMAND,
    callback: Callable[[int], None] | None = None,
) -> Path:
    """Render a folder of images, or go on where an interrupted run stopped.

    It writes ``images.npy`` (uint8, ``(n, size, size, 3)``), ``latents.npy`` (float32, ``(n, d)``),
    with pairs ``positives.npy`` and ``positive_latents.npy``, and ``meta.json``, which says how
    many rows are rendered. The bytes do not depend on the number of processes or on interruptions.

    Parameters
    ----------
    order : Order
        What to render.
    folder : str or Path
        Where to; new, empty, or of the same order.
    jobs : int, optional
        Processes; by default one for each core. With more than one, a script needs the usual
        ``if __name__ == "__main__":`` around what it does.
    command : str
        What to note as the origin.
    callback : callable, optional
        Called with the number of images that are rendered, at first and whenever it changes.

    Examples
    --------
    >>> import tempfile
    >>> from demix.papers import Order, open_rendered, render_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = open_rendered(render_folder(Order("sprites", n=3, size=16), folder))
    ...     found.images.shape, found.latents.shape
    ((3, 16, 16, 3), (3, 5))
    """
    order.check()
    if jobs is not None and jobs < 1:
        raise DemixError(f"The number of processes must be at least 1, but got {jobs}.")
    path = Path(folder)
    sums = _begun(path, order)
    if sums.count(order) == order.n and sums.hold(path, order):
        return path
    check_room(path, order.bytes_of(order.n - sums.count(order)))
    check_processes(order, len(scene_named(order.scene).latents), jobs or cores())
    claim_folder(path, META, command=_COMMAND)
    origin = {"command": command, **provenance("embreex", "bpy")}
    with lock_folder(path), claiming(path):
        _render(path, order, jobs, origin, callback or (lambda done: None))
    return path


def _render(
    path: Path,
    order: Order,
    jobs: int | None,
    origin: dict[str, Any],
    callback: Callable[[int], None],
) -> None:
    """Make what is missing or damaged; nobody else writes to the folder."""
    sums, parts = _begun(path, order), shards(order)
    if sums.shards:
        _check_renderer(path)
    broken, latents = list(sums.damaged(path, order)), _latents(order)
    # Shards that are as they were rendered prove whose images these are.
    _check_files(path, order, latents, images=len(broken) == len(sums.shards))
    if broken:
        count = sum(len(parts[place]) for place in broken)
        warn(f"{count} images in {path} are damaged; they are rendered again.")
    todo = [*broken, *range(len(sums.shards), len(parts))]
    done = sums.count(order)
    try:
        files = {f"{name}.npy": raw_npy(array) for name, array in latents.items()}
        sums.latents = {name: checksum(raw) for name, raw in files.items()}
        _write_meta(path, order, sums, origin)  # first: it says whose folder this is
        for name, raw in files.items():
            write_atomic(path / name, raw)
        empty = [allocate(path / f"{name}.npy", order.shape) for name in order.files.values()]
        callback(done)
        with closing(rendered(path, order, empty, [parts[k] for k in todo], jobs)) as made:
            for place, found in zip(todo, made, strict=True):
                sums.shards[place : place + 1] = [found]
                done = sums.count(order)
                _write_meta(path, order, sums, origin)
                callback(done)
    except (OSError, DemixError) as error:
        if not is_os_error(error, *FULL):
            raise
        raise full_disk(path, order.bytes_of(order.n - done), done) from error


def _begun(path: Path, order: Order) -> Sums:
    """Return the checksums of what a folder holds of the order; refuse one of another order."""
    if not (path / META).is_file():
        return Sums()
    claim_folder(path, META, command=_COMMAND)
    found = read_meta(path)
    try:
        before, _ = dict(found["order"]), dict(found["renderer"])
        if before == asdict(order):
            return Sums.of(found, order)
    except (ValueError, KeyError, TypeError) as error:
        raise DemixError(f"{path / META} is damaged; render into a new folder.") from error
    names = [name for name, value in asdict(order).items() if before.get(name) != value]
    raise DemixError(
        f"{path} holds images of {_listed(before, names)}, but got "
        f"{_listed(asdict(order), names)}; choose a new folder."
    )


def _check_renderer(path: Path) -> None:
    """Refuse to mix images of several versions in a folder."""
    versions = dict(read_meta(path)["renderer"])
    if versions != _renderer():
        raise DemixError(
            f"{path} was begun with {_listed(versions, list(versions))}, and "
            f"{_listed(_renderer(), list(versions))} may give other bytes; choose a new folder."
        )


def _listed(values: dict[str, Any], names: list[str]) -> str:
    return shortened(", ".join(f"{name} {values.get(name, 'none')}" for name in names), 200)


def _renderer() -> dict[str, str]:
    """Return the versions that the bytes of an image depend on."""
    found = {"demix": __version__, "numpy": version("numpy")}
    try:
        return found | {"embreex": version("embreex")}
    except ImportError:
        return found


def _check_files(path: Path, order: Order, latents: dict[str, np.ndarray], *, images: bool) -> None:
    """Refuse others' arrays in place of latents, or images if asked for, and additions to them."""
    for name, array in latents.items():

        def drawn(row: int, array: np.ndarray = array) -> bytes:
            return image_of(order, array[row]).tobytes()

        def given(row: int, array: np.ndarray = array) -> bytes:
            return array[row].tobytes()

        shown = path / f"{order.files[name]}.npy"
        check_length(path / f"{name}.npy", array.shape, array.dtype.str)
        check_length(shown, order.shape, "|u1")
        check_ours(path / f"{name}.npy", array.shape, array.dtype.str, given)
        if images:
            check_ours(shown, order.shape, "|u1", drawn)


def _latents(order: Order) -> dict[str, np.ndarray]:
    """Return the latents by the name of their file."""
    scene = scene_named(order.scene)
    files = {"latents": scene.sample(order.n, order.seed)}
    if order.pairs:
        files["positive_latents"] = positive_latents(
            scene, files["latents"], order.pairs, order.seed
        )
    return files


def _write_meta(path: Path, order: Order, sums: Sums, origin: dict[str, Any]) -> None:
    scene = scene_named(order.scene)
    about = {
        "rendered": sums.count(order),
        "order": asdict(order),
        "latents": scene.latents,
        "categories": scene.categories,
        "renderer": _renderer(),
        "provenance": origin,
        "sha256": asdict(sums),
    }
    write_atomic(path / META, json.dumps(sealed(about), indent=1) + "\n")


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
