"""The commands that faults are done to, and what must come out of them, to the bit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demix.encoders.encoder import Encoder
from demix.encoders.files import save_encoder
from demix.spaces.kinds import Sphere

ROWS = 1000


@dataclass(frozen=True)
class Work:
    """A command.

    Attributes
    ----------
    name : str
        What tables call it.
    arguments : list
        Its arguments, without where to write.
    out : str
        The option that says where, and what the place is called.
    result : callable
        ``result(place)``: all that must not depend on faults.
    finished : callable
        ``finished(place)``: the parts that are finished, with what they hold.
    keeps : tuple of str
        Files that may be there, with what was finished, when it was refused.
    """

    name: str
    arguments: list[object]
    result: Callable[[Path], Any]
    finished: Callable[[Path], dict[Any, Any]] = lambda place: {}
    out: str = "--out"
    file: str = "out"
    keeps: tuple[str, ...] = ()

    def command(self, folder: Path) -> list[object]:
        """Return the arguments with a place in a folder."""
        return [*self.arguments, self.out, self.place(folder)]

    def place(self, folder: Path) -> Path:
        """Return where it writes to."""
        return folder / self.file


def inputs(folder: Path) -> None:
    """Write the files that the commands read."""
    random = np.random.default_rng(0)
    angle = np.cumsum(random.normal(0, 0.5, ROWS))
    walk = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    np.save(folder / "x.npy", walk.astype(np.float32))
    np.save(folder / "y.npy", (np.arctan2(walk[:, 1], walk[:, 0]) // (np.pi / 2)).astype(int))
    np.save(folder / "wide.npy", random.normal(size=(2000, 200)).astype(np.float32))
    # Large enough to weigh something, and of known weights.
    encoder = Encoder(200, Sphere(5), hidden=(256,) * 3)
    save_encoder(encoder, folder / "model")


def works(folder: Path) -> dict[str, Work]:
    """Return all works by name."""
    x, wide, model = (folder / name for name in ("x.npy", "wide.npy", "model"))
    table = ["reproduce", "clica-table1", "--rows", "9,10", "--seeds", 0, "--scale", "smoke"]
    found = [
        Work(
            "demix fit",
            ["fit", x, "--n-latents", 2, "--labels", folder / "y.npy"],
            fitted,
        ),
        Work("demix transform", ["transform", model, wide], bytes_of, file="z.npy"),
        Work("demix export", ["export", model], bytes_of, out="--onnx", file="model.onnx"),
        Work("demix evaluate", ["evaluate", "--latents", x, "--factors", x], scores),
        Work(
            "demix render sprites",
            ["render", "sprites", "--n", 1500, "--size", 16, "--jobs", 1, "--pairs", "normal:0.1"],
            images,
            rendered,
        ),
        Work(
            "demix render 3dident",
            ["render", "3dident", "--n", 24, "--size", 256, "--jobs", 1],
            images,
            rendered,
        ),
        Work("demix reproduce", table, cells, cells, keeps=("results.json",)),
        Work("demix reproduce, 2 processes", [*table, "--executor", "local:2"], cells, cells),
    ]
    return {work.name: work for work in found}


def bytes_of(place: Path) -> bytes:
    """Return what a file holds."""
    return place.read_bytes()


def fitted(place: Path) -> Any:
    """Return weights, latents and what a model says of itself, without times."""
    about = json.loads((place / "model.json").read_text(encoding="utf-8"))["about"]
    history = [_without(record, ["seconds"]) for record in about["history"]]
    kept = {name: about[name] for name in ("gain", "best_step", "steps", "notes", "data")}
    files = ["model.safetensors", "latents.npy"]
    names = sorted(file.name for file in place.iterdir())
    return [(place / name).read_bytes() for name in files], kept, history, names


def scores(place: Path) -> Any:
    """Return the scores of an evaluation."""
    found = json.loads((place / "scores.json").read_text(encoding="utf-8"))
    return _without(found, ["provenance"]), sorted(file.name for file in place.iterdir())


def images(place: Path) -> Any:
    """Return all arrays of a rendered folder."""
    return {file.name: file.read_bytes() for file in sorted(place.glob("*.npy"))}


def rendered(place: Path) -> dict[int, Any]:
    """Return the shards that are rendered, with their checksums."""
    try:
        about = json.loads((place / "meta.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return dict(enumerate(about["sha256"]["shards"]))


def cells(place: Path) -> dict[Any, Any]:
    """Return the cells of a table, without times and places."""
    try:
        records = json.loads((place / "results.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    found = {}
    for record in records:
        kept = _without(record, ["seconds", "provenance", "history"])
        history = [_without(look, ["seconds"]) for look in record.get("history", [])]
        found[record["row"], record["seed"], record["model"]] = (kept, history)
    return found


def _without(record: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}
