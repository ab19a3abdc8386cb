"""The angle of a turntable, from photographs of which it is only known which follow each other.

Takes COIL-100 (Nene, Nayar and Murase 1996): objects on a turntable, photographed every 5 degrees.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.decomposition import PCA

from common import ACCENT, GREY, best_of, error_and_chance, keep, panels, parser, turned
from demix import ContrastiveDemixer, Recipe
from demix.data.images import open_image

Photographs = dict[int, dict[int, Path | BytesIO]]
SIDE = 16
# Every so manyth view is held out: no photograph of it is ever trained on.
HELD_OUT = 6
# Settings were chosen on objects before this one, so these are not scored.
FIRST = 10


def main(given: Sequence[str] | None = None) -> dict[str, Any]:
    """Recover the angle of each object from its neighbouring views, and score views held out."""
    arguments = parsed(given)
    photographs = read(arguments.data)
    found = {}
    numbers = [number for number in sorted(photographs) if number >= FIRST]
    for number in numbers[: 1 if arguments.quick else arguments.objects]:
        views, angle = stacked(photographs[number])
        found[number] = one_object(views, angle, arguments)
        print(f"object {number}: {found[number]['error']:.1f}° held out")
    return shown(found, arguments)


def parsed(given: Sequence[str] | None) -> argparse.Namespace:
    found = parser(__file__, str(__doc__))
    found.add_argument("--data", default=os.environ.get("DEMIX_COIL100"), help="see docs/images.md")
    found.add_argument("--objects", type=int, default=8, help="how many objects")
    arguments = found.parse_args(given)
    if not arguments.data or not Path(arguments.data).exists():
        sys.exit("Give COIL-100 with --data or DEMIX_COIL100: its folder of PNG files, or an .npz.")
    return arguments


def read(path: str | Path) -> Photographs:
    """Return the photographs by object and angle, from the official folder or an archive."""
    path = Path(path)
    found: Photographs = {}
    if path.is_dir():
        for file in path.glob("obj*__*.png"):
            number, angle = map(int, re.findall(r"\d+", file.stem))
            found.setdefault(number, {})[angle] = file
        return found
    with np.load(path, allow_pickle=False) as archive:
        data, offset = archive["data"], archive["offset"]
        numbers, angles = archive["object_id"].tolist(), archive["angle_deg"].tolist()
    for row, (number, angle) in enumerate(zip(numbers, angles, strict=True)):
        image = data[offset[row] : offset[row + 1]].tobytes()
        found.setdefault(number, {})[int(angle)] = BytesIO(image)
    return found


def stacked(views: dict[int, Path | BytesIO]) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the views of one object in order, ``(V, 3, SIDE, SIDE)``, and their angles."""
    order = sorted(views)
    whole = [open_image(views[a], "RGB") for a in order]
    small = [image.resize((SIDE, SIDE), Image.Resampling.BOX) for image in whole]
    pixels = np.stack([np.asarray(image) for image in small]).transpose(0, 3, 1, 2)
    return pixels.astype(np.float32) / 255, np.radians(order)


def film(views: NDArray[np.float32], turns: int, seed: int) -> NDArray[np.float32]:
    """Return the views turning so many times, in time order; light flickers, and there is noise."""
    random = np.random.default_rng(seed)
    rows = np.tile(views, (turns, 1, 1, 1)) * random.uniform(
        0.95, 1.05, (turns * len(views), 1, 1, 1)
    )
    return (rows + random.normal(0, 0.02, rows.shape)).astype(np.float32)


def one_object(
    views: NDArray[np.float32], angle: NDArray[np.float64], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Fit the views that are kept, and score those that are not."""
    kept = np.arange(len(views)) % HELD_OUT != HELD_OUT // 2
    # `fit` holds out blocks of time, 20 in all; with 21 turns they end anywhere in a turn.
    rows = film(views[kept], 21, arguments.seed)

    def fit(seed: int) -> ContrastiveDemixer:
        return ContrastiveDemixer(
            n_latents=2,
            space="sphere",
            lag=1,
            encoder={"components": 16, "hidden": (64, 64)},
            recipe=Recipe(steps=400, batch=256),
            random_state=seed,
        ).fit(rows)

    demixer = best_of(4 if arguments.quick else 6, fit, arguments.seed)
    latents = demixer.transform(views)
    error, chance = error_and_chance(latents, angle, kept)
    flat = views.reshape(len(views), -1)
    plain = PCA(2).fit(flat[kept]).transform(flat)
    return {
        "error": error,
        "chance": chance,
        "linear": error_and_chance(plain, angle, kept)[0],
        "bits": demixer.gain_.bits,
        "found": np.degrees(turned(latents, angle, kept)).round(1).tolist(),
        "angle": np.degrees(angle).round(1).tolist(),
        "kept": kept.tolist(),
    }


def shown(found: dict[int, dict[str, Any]], arguments: argparse.Namespace) -> dict[str, Any]:
    """Draw and keep the errors of all objects, and the angles of the one in the middle."""
    order = sorted(found, key=lambda number: found[number]["error"])
    middle = order[len(order) // 2]
    figure, (angles, errors) = panels(2)
    one = {name: np.asarray(found[middle][name]) for name in ("angle", "found", "kept")}
    for held, shade, name in ((False, GREY, "trained on"), (True, ACCENT, "held out")):
        rows = one["kept"] != held
        angles.plot(one["angle"][rows], one["found"][rows] % 360, ".", color=shade, label=name)
    angles.set(title=f"object {middle}", xlabel="angle in degrees", ylabel="recovered angle")
    angles.legend(frameon=False)
    errors.bar([str(n) for n in order], [found[n]["error"] for n in order], color=ACCENT)
    errors.axhline(90, color=GREY, linestyle=":", label="chance")
    errors.set(title="all objects", xlabel="object", ylabel="held-out error in degrees")
    errors.legend(frameon=False)

    def cells(name: str, *, of: list[dict[str, Any]]) -> list[str]:
        keys = ("error", "linear", "chance")
        return [name, *(f"{np.median([x[key] for x in of]):.1f}" for key in keys)]

    return keep(
        arguments,
        "Angle of views that were held out, in degrees",
        ["object", "mean error", "of the first two principal components", "by chance"],
        [
            *(cells(str(number), of=[found[number]]) for number in found),
            cells("median", of=list(found.values())),
        ],
        [
            f"COIL-100, objects from number {FIRST} on, none left out (settings were chosen on "
            f"earlier ones); every {HELD_OUT}th view is held out. Rotation and reflection are "
            "fitted on the other views.",
        ],
        figure,
        objects=found,
    )


if __name__ == "__main__":
    main()
