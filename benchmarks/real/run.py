"""Run what is missing, keep each outcome at once, write the table."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real.methods import METHODS, Cell, latents_file, run_one
from benchmarks.real.scoring import agreement
from benchmarks.real.sets import SETS
from benchmarks.real.table import bars, real_table
from demix._support.errors import DemixError
from demix._support.files import write_atomic
from demix._support.outputs import read_marker
from demix._support.provenance import provenance
from demix.papers.workers.executors import completed

MARKER, COMMAND = "real.json", "python -m benchmarks.real"
_PACKAGES = (
    "cebra",
    "deeptime",
    "dm-control",
    "dysts",
    "mujoco",
    "mvlearn",
    "openmm",
    "pmdarima",
    "statsmodels",
    "vega-datasets",
)
RunOne = Callable[..., dict[str, Any]]
"""``run_one(cell, cache=cache)``"""


def cells_of(sets: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Cell]:
    """Return what is asked for; every set is run once before any is run again."""
    return [
        (name, method, seed)
        for seed in seeds
        for name in sets
        for method in METHODS[SETS[name].kind]
        if method in methods
    ]


def missing(cells: Sequence[Cell], done: Sequence[dict[str, Any]], cache: Path) -> list[Cell]:
    """Return cells without an outcome, and with them those of other seeds whose latents are gone.

    What failed is tried again.
    """
    well = {key(run) for run in done if "error" not in run}
    touched = {cell[:2] for cell in cells if cell not in well}
    return [
        cell
        for cell in cells
        if cell not in well or (cell[:2] in touched and not latents_file(cache, cell).exists())
    ]


def key(outcome: dict[str, Any]) -> Cell:
    """Return what names an outcome."""
    return outcome["set"], outcome["method"], outcome["seed"]


def run_cells(
    cells: Sequence[Cell],
    folder: Path,
    cache: Path,
    executor: Executor,
    function: RunOne = run_one,
) -> Iterator[dict[str, Any]]:
    """Run cells, and yield each outcome once it is kept in ``real.json``; a failure is one, too."""
    for cell, future in completed(executor, partial(function, cache=cache), cells):
        data = read_results(folder)
        name, method, seed = cell
        outcome: dict[str, Any] = {"set": name, "method": method, "seed": seed}
        origin = provenance(*_PACKAGES)
        try:
            found = future.result()
            data["sets"][name] = found.pop("task")
            outcome |= found
        except Exception as error:  # of whatever kind a peer's is
            outcome["error"] = f"{type(error).__name__}: {error}"
        outcome["commit"] = origin.get("commit", "unknown")
        others = [run for run in data["outcomes"] if key(run) != cell]
        data["outcomes"] = sorted([*others, outcome], key=_order)
        for run in data["outcomes"]:  # also of later seeds, if an earlier one was run again
            if key(run)[:2] == cell[:2] and latents_file(cache, key(run)).exists():
                run["agreement"] = _agreements(key(run), cache, data)
        data["provenance"] = {"command": COMMAND, **origin}
        write_results(folder, data)
        yield outcome


def _agreements(cell: Cell, cache: Path, data: dict[str, Any]) -> dict[str, float]:
    """Return the agreement with each earlier seed whose latents are there."""
    own = np.load(latents_file(cache, cell))
    found = {}
    for run in data["outcomes"]:
        file = latents_file(cache, key(run))
        if key(run)[:2] == cell[:2] and run["seed"] < cell[2] and file.exists():
            found[str(run["seed"])] = agreement(own, np.load(file))
    return found


def _order(outcome: dict[str, Any]) -> tuple[int, int, int]:
    name, method, seed = key(outcome)
    return list(SETS).index(name), METHODS[SETS[name].kind].index(method), seed


def read_results(folder: Path) -> dict[str, Any]:
    """Return what a folder holds, without outcomes of sets or methods that are no more."""
    if not (folder / MARKER).exists():
        return {"sets": {}, "outcomes": []}
    match read_marker(folder / MARKER):
        case {"sets": dict(), "outcomes": list(outcomes)} as data:
            known = [
                run
                for run in outcomes
                if run["set"] in SETS and run["method"] in METHODS[SETS[run["set"]].kind]
            ]
            return data | {"outcomes": known}
    raise DemixError(
        f"Expected outcomes of '{COMMAND}' in {folder / MARKER}, but it is damaged; choose a new "
        "folder."
    )


def write_results(folder: Path, data: dict[str, Any]) -> None:
    """Write ``real.json`` with the bars, and ``table.md``."""
    data = data | {"bars": bars(data["outcomes"])}
    write_atomic(folder / MARKER, json.dumps(data, indent=1) + "\n")
    write_atomic(folder / "table.md", real_table(data))
