"""What the examples share: their arguments, angles up to a rotation, and how a result is kept."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes

from demix import ContrastiveDemixer
from demix._support.files import write_atomic
from demix._support.provenance import provenance
from demix.papers.pages.table import table_markdown

matplotlib.use("agg")
from matplotlib.figure import Figure

ACCENT, GREY = "#1f4e79", "#9aa3ad"


def parser(script: str, about: str) -> argparse.ArgumentParser:
    """Return the arguments that every example takes."""
    name = Path(script).stem
    found = argparse.ArgumentParser(prog=f"examples/{name}.py", description=about)
    found.add_argument("--quick", action="store_true", help="a smaller run, for tests")
    found.add_argument("--seed", type=int, default=0, help="seed of weights and batches")
    found.add_argument(
        "--out", type=Path, default=Path("example-output"), help="folder for JSON and figure"
    )
    found.set_defaults(name=name)
    return found


def best_of(starts: int, fit: Callable[[int], ContrastiveDemixer], seed: int) -> ContrastiveDemixer:
    """Fit from several seeds, and return the one with the smallest held-out loss.

    A closed curve can come to lie in folds, from which no small step leads out. Such a fit tells
    fewer positives from others; which one is best shows without any known angle.
    """
    return min((fit(seed + start) for start in range(starts)), key=lambda fitted: fitted.gain_.loss)


def circle(angle: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points ``(N, 2)`` of angles in radians."""
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def turned(
    latents: NDArray[np.floating], known: NDArray[np.float64], fit: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return the angle ``(N,)`` of each latent after the best rotation or reflection.

    Theorem 2 leaves a rotation open, and nothing else. It is found on the rows ``fit``, where the
    known angles are looked at; on all others they are not.
    """
    points = latents / np.linalg.norm(latents, axis=1, keepdims=True)
    rotation, _ = orthogonal_procrustes(points[fit], circle(known[fit]))
    points = points @ rotation
    return np.arctan2(points[:, 1], points[:, 0])


def apart(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance on the circle between angles, in degrees; two at random are 90 apart."""
    return np.degrees(np.abs(np.angle(np.exp(1j * (one - other)))))


def error_and_chance(
    latents: NDArray[np.floating], known: NDArray[np.float64], fit: NDArray[np.bool_]
) -> tuple[float, float]:
    """Return the mean error in degrees on rows that are not ``fit``, and that of shuffled ones."""
    random = np.random.default_rng(0)
    error = apart(turned(latents, known, fit), known)[~fit].mean()
    shuffled = [random.permutation(known) for _ in range(50)]
    chance = [apart(turned(latents, other, fit), other)[~fit].mean() for other in shuffled]
    return float(error), float(np.mean(chance))


def panels(count: int) -> tuple[Figure, Any]:
    """Return a figure with so many axes side by side, in the look of the other figures."""
    matplotlib.rcParams.update({"svg.hashsalt": "demix", "svg.fonttype": "none", "font.size": 9})
    figure = Figure(figsize=(3.6 * count, 3.3), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    return figure, axes


def keep(
    arguments: argparse.Namespace,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str],
    figure: Figure,
    **numbers: Any,
) -> dict[str, Any]:
    """Print the table, write ``NAME.json`` and ``NAME.svg``, and return what was written."""
    size = " --quick" if arguments.quick else ""
    result = {
        "table": {"title": title, "header": header, "rows": rows, "notes": notes},
        **numbers,
        "command": f"python examples/{arguments.name}.py{size} --seed {arguments.seed}",
        "seconds": round(time.process_time()),  # of one core, whatever else the machine does
        "provenance": provenance(),
    }
    print(table_markdown(**result["table"]))
    folder = Path(arguments.out)
    written = json.dumps(result, indent=1, ensure_ascii=False, default=float) + "\n"
    write_atomic(folder / f"{arguments.name}.json", written)
    figure.savefig(folder / f"{arguments.name}.svg", metadata={"Date": None, "Creator": None})
    print(f"Wrote {folder / arguments.name}.json and .svg")
    return result
