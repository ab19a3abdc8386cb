"""Folders of rendered images: written in shards, by many processes, through any interruption."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from demix.errors import DemixError
from demix.files import claim_folder, write_atomic
from demix.provenance import provenance
from demix.scenes.arrays import allocate, is_allocated, save
from demix.scenes.disk import check_room, full_disk, is_full
from demix.scenes.order import Order
from demix.scenes.pairs import positive_latents
from demix.scenes.registry import scene_named
from demix.scenes.workers import rendered, shards

META = "meta.json"
_COMMAND = "demix render"


def render_folder(
    order: Order,
    folder: str | Path,
    *,
    jobs: int | None = None,
    command: str = _COMMAND,
    watch: Callable[[int], None] | None = None,
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
    watch : callable, optional
        It is told how many images are there, first and as often as that changes.

    Examples
    --------
    >>> import tempfile
    >>> from demix.scenes import Order, open_rendered, render_folder
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = open_rendered(render_folder(Order("sprites", n=3, size=16), folder))
    ...     found.images.shape
    (3, 16, 16, 3)
    """
    order.check()
    if jobs is not None and jobs < 1:
        raise DemixError(f"The number of processes must be at least 1, but got {jobs}.")
    path, watch = Path(folder), watch or (lambda done: None)
    done = _begun(path, order)
    if done == order.n:
        return path
    check_room(path, order.bytes_of(order.n - done))
    claim_folder(path, META, command=_COMMAND)
    origin = {"command": command, **provenance("embreex", "bpy")}
    try:
        _write_meta(path, order, done, origin)
        _prepare(path, order)
        watch(done)
        with closing(rendered(shards(path, order, done), jobs)) as counts:
            for done in counts:
                _write_meta(path, order, done, origin)
                watch(done)
    except (OSError, DemixError) as error:
        if not is_full(error):
            raise
        raise full_disk(path, order.bytes_of(order.n - done), done) from error
    return path


def _begun(path: Path, order: Order) -> int:
    """Return how many images of the order a folder holds; refuse one of another order."""
    if not (path / META).is_file():
        return 0
    claim_folder(path, META, command=_COMMAND)
    try:
        found = json.loads((path / META).read_text(encoding="utf-8"))
        done, before, versions = int(found["rendered"]), dict(found["order"]), found["renderer"]
    except (ValueError, KeyError, TypeError) as error:
        raise DemixError(f"{path / META} is damaged; render into a new folder.") from error
    if before != asdict(order):
        names = [name for name, value in asdict(order).items() if before.get(name) != value]
        raise DemixError(
            f"{path} holds images of {_told(before, names)}, but got "
            f"{_told(asdict(order), names)}; choose a new folder."
        )
    if not all(is_allocated(path / f"{name}.npy", order.shape) for name in order.files.values()):
        return 0
    if 0 < done < order.n and versions != _renderer():
        raise DemixError(
            f"{path} was begun with {_told(versions, list(versions))}, and "
            f"{_told(_renderer(), list(versions))} may give other bytes; choose a new folder."
        )
    return done


def _told(values: dict[str, Any], names: list[str]) -> str:
    return ", ".join(f"{name} {values.get(name, 'none')}" for name in names)


def _renderer() -> dict[str, str]:
    """Return the versions that the bytes of an image depend on."""
    found = {name: version(name) for name in ("demix", "numpy")}
    try:
        return found | {"embreex": version("embreex")}
    except ImportError:
        return found


def _prepare(path: Path, order: Order) -> None:
    """Write all latents, and files that the images fit in."""
    scene = scene_named(order.scene)
    latents = scene.sample(order.n, order.seed)
    save(path / "latents.npy", latents)
    if order.pairs:
        positives = positive_latents(scene, latents, order.pairs, order.seed)
        save(path / "positive_latents.npy", positives)
    for name in order.files.values():
        allocate(path / f"{name}.npy", order.shape)


def _write_meta(path: Path, order: Order, done: int, origin: dict[str, Any]) -> None:
    scene = scene_named(order.scene)
    about = {
        "rendered": done,
        "order": asdict(order),
        "latents": scene.latents,
        "categories": scene.categories,
        "renderer": _renderer(),
        "provenance": origin,
    }
    write_atomic(path / META, json.dumps(about, indent=1) + "\n")
