"""Draw docs/scaling.svg from results/bench/bench.json."""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

ROOT = Path(__file__).resolve().parents[1]


def draw(scaling: dict, path: Path) -> None:
    """Draw the cost of a step against each quantity, with the fitted power law."""
    # The same measurements give the same file to the byte.
    matplotlib.rcParams["svg.hashsalt"] = "demix"
    curves = scaling["curves"]
    figure, axes = pyplot.subplots(1, len(curves), figsize=(3.2 * len(curves), 3), sharey=True)
    for axis, (name, curve) in zip(axes, curves.items(), strict=True):
        values = curve["values"]
        milliseconds = [1000 * seconds for seconds in curve["seconds"]]
        axis.loglog(values, milliseconds, "o-", color="#1f4e79", linewidth=1.5, markersize=4)
        fitted = [milliseconds[-1] * (value / values[-1]) ** curve["exponent"] for value in values]
        axis.loglog(values, fitted, ":", color="#777777", label=f"exponent {curve['exponent']:.2f}")
        axis.set_xticks(values, [str(value) for value in values])
        axis.minorticks_off()
        axis.set_xlabel(name)
        axis.legend(frameon=False, fontsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("milliseconds per step")
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    bench = json.loads((ROOT / "results" / "bench" / "bench.json").read_text(encoding="utf-8"))
    draw(bench["scaling"], ROOT / "docs" / "scaling.svg")
