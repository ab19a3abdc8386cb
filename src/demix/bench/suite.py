"""All sections of the benchmark in one run."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from demix.bench.bars import judge
from demix.bench.convergence import measure_convergence
from demix.bench.losses import measure_losses
from demix.bench.samplers import measure_samplers
from demix.bench.scaling import measure_scaling
from demix.bench.scoring import measure_scores
from demix.bench.sizes import Sizes
from demix.bench.step import measure_steps
from demix.objectives import kernel_name
from demix.provenance import provenance

SECTIONS = ("contrast", "step", "convergence", "samplers", "scores", "scaling")


class Watcher(Protocol):
    """Told how far the run is."""

    def section(self, name: str) -> None:
        """Hear that a section begins."""

    def say(self, what: str) -> None:
        """Hear what is measured next."""


def run_suite(sizes: Sizes, watcher: Watcher) -> dict[str, Any]:
    """Measure everything and judge it.

    Parameters
    ----------
    sizes : Sizes
        How large.
    watcher : Watcher
        Told before every measurement.

    Returns
    -------
    dict
        A section for each of `SECTIONS`, the ``bars``, ``size``, ``rounds`` and ``provenance``;
        all of it plain data.
    """
    data: dict[str, Any] = {
        "size": sizes.name,
        "rounds": sizes.rounds,
        "provenance": {
            "command": "demix bench",
            **provenance(),
            "kernel": kernel_name(),
            **_peer_version(),
        },
    }
    simple = {
        "contrast": measure_losses,
        "step": measure_steps,
        "samplers": measure_samplers,
        "scores": measure_scores,
        "scaling": measure_scaling,
    }
    for name in SECTIONS:
        watcher.section(name)
        if name == "convergence":
            # In units of a step that was measured just before.
            dense = [entry["seconds"]["dense"] for entry in data["step"]["entries"]]
            data[name] = measure_convergence(sizes, dense, watcher.say)
        else:
            data[name] = simple[name](sizes, watcher.say)
    return data | {"bars": judge(data, sizes)}


def _peer_version() -> dict[str, str]:
    try:
        return {"pytorch-metric-learning": version("pytorch-metric-learning")}
    except PackageNotFoundError:
        return {}
