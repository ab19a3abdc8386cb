"""All sections of the benchmark in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from benchmarks.bars import judge
from benchmarks.convergence import measure_convergence
from benchmarks.distributed import measure_distributed
from benchmarks.estimators import measure_estimators
from benchmarks.everyday import measure_everyday
from benchmarks.losses import measure_losses
from benchmarks.samplers import measure_samplers
from benchmarks.scaling import measure_scaling
from benchmarks.scoring import measure_scores
from benchmarks.sizes import Sizes
from benchmarks.step import measure_steps
from benchmarks.sweeps import measure_sweep
from benchmarks.timing import Say
from demix._support.errors import DemixError
from demix._support.provenance import provenance
from demix.losses.streaming import kernel_name

SECTIONS = (
    "contrast",
    "step",
    "convergence",
    "samplers",
    "scores",
    "scaling",
    "estimators",
    "everyday",
    "sweep",
    "distributed",
)


class Watcher(Protocol):
    """Told how far the run is."""

    def section(self, name: str) -> None:
        """Hear that a section begins."""

    def say(self, what: str) -> None:
        """Hear what is measured next."""


def run_suite(sizes: Sizes, watcher: Watcher, sections: Sequence[str] = SECTIONS) -> dict[str, Any]:
    """Measure everything, or some sections, and judge it.

    Parameters
    ----------
    sizes : Sizes
        How large.
    watcher : Watcher
        Told before every measurement.
    sections : sequence of str
        Which of `SECTIONS`; ``"convergence"`` needs ``"step"``.

    Returns
    -------
    dict
        The sections, the ``bars``, ``size``, ``rounds`` and ``provenance``;
        all of it plain data.
    """
    data: dict[str, Any] = {
        "size": sizes.name,
        "rounds": sizes.rounds,
        "provenance": {
            "command": "python -m benchmarks",
            **provenance(),
            "kernel": kernel_name(),
            **_peer_versions(),
        },
    }
    simple: dict[str, Callable[[Sizes, Say], dict[str, Any]]] = {
        "contrast": measure_losses,
        "step": measure_steps,
        "samplers": measure_samplers,
        "scores": measure_scores,
        "scaling": measure_scaling,
        "estimators": measure_estimators,
        "everyday": measure_everyday,
        "sweep": measure_sweep,
        "distributed": measure_distributed,
    }
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown or ("convergence" in sections and "step" not in sections):
        raise DemixError(
            f"Sections are {', '.join(SECTIONS)}, and convergence needs step, but got "
            f"{', '.join(sections)}."
        )
    for name in [name for name in SECTIONS if name in sections]:
        watcher.section(name)
        if name == "convergence":
            # In units of a step that was measured just before.
            dense = [entry["seconds"]["dense"] for entry in data["step"]["entries"]]
            data[name] = measure_convergence(sizes, dense, watcher.say)
        else:
            data[name] = simple[name](sizes, watcher.say)
    return data | {"bars": judge(data, sizes)}


def _peer_versions() -> dict[str, str]:
    found = {}
    for name in ("pytorch-metric-learning", "cebra", "cut-cross-entropy"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
