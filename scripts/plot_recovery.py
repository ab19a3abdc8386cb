"""Draw docs/assets/recovery.png: two factors, what is observed of them, and what demix recovers."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np
import torch

matplotlib.use("agg")
from matplotlib import pyplot
from torch import Tensor

import demix

FILE = Path(__file__).resolve().parents[1] / "docs" / "assets" / "recovery.png"
SHOWN = 4000


class Spiral(demix.Mixing):
    """Turn points of the plane further the larger their radius, by so many turns per unit."""

    dim_in = dim_out = 2
    turns = 0.75

    def __call__(self, z: Tensor) -> Tensor:
        """Turn points."""
        return self._turned(z, self.turns)

    def inverse(self, x: Tensor) -> Tensor:
        """Turn back; radii have not changed."""
        return self._turned(x, -self.turns)

    def _turned(self, z: Tensor, turns: float) -> Tensor:
        a, b = z.T
        angle = 2 * torch.pi * turns * torch.hypot(a, b)
        return torch.stack(
            [a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1
        )


def recovered() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return factors, observations, recovered latents in the factors' order, and their MCC."""
    box = demix.Box(2)
    process = demix.Process(demix.Uniform(box), demix.Laplace(box, 0.05), Spiral())
    encoder = demix.Encoder(2, box, scale=10.0)
    demix.train(encoder, process.sample, demix.InfoNCE(1), demix.Recipe(steps=2000), seed=0)
    fresh = process.sample(SHOWN, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        latents = encoder(fresh.x)
    score = float(demix.mean_correlation(latents, fresh.z))
    found = np.corrcoef(fresh.z.T, latents.T)[:2, 2:]
    order = np.abs(found).argmax(axis=1)
    signs = np.sign(found[[0, 1], order])
    return fresh.z.numpy(), fresh.x.numpy(), latents.numpy()[:, order] * signs, score


def draw(path: Path) -> None:
    """Draw the three side by side, each point in the colour of its factors."""
    factors, observed, latents, score = recovered()
    low, high = factors.min(axis=0), factors.max(axis=0)
    first, second = ((factors - low) / (high - low)).T
    colours = np.stack([first, 0.25 + 0.5 * second, 1 - first], axis=1)
    figure, axes = pyplot.subplots(1, 3, figsize=(9, 3.1))
    panels = [
        (factors, "true factors z"),
        (observed, "what is observed: x = g(z)"),
        (latents, f"recovered: f(x), MCC {score:.4f}"),
    ]
    for axis, (points, title) in zip(axes, panels, strict=True):
        axis.scatter(*points.T, s=3, c=colours, linewidths=0)
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    draw(FILE)
