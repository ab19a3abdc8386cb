"""What checkpoints cost of the time of training: `python -m faults.cost`."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from demix._support.files import write_atomic
from demix._support.provenance import provenance
from demix.distributions.base import Uniform
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.classification import InstanceDiscrimination
from demix.losses.pairs import InfoNCE
from demix.papers import Labelled
from demix.papers.pages.table import table_markdown
from demix.processes.process import LeakyMixing, Process
from demix.spaces.kinds import Sphere
from demix.training import loop
from demix.training.checkpoints import Checkpoints
from demix.training.loop import train
from demix.training.recipe import Recipe

ROOT = Path(__file__).resolve().parents[1]
ROWS = 200_000


class _Timed(Checkpoints):
    """Checkpoints that know how long all of them took."""

    seconds, written = 0.0, 0

    def save(self, *arguments: Any, **more: Any) -> None:
        start, before = time.perf_counter(), self._kept
        super().save(*arguments, **more)
        _Timed.seconds += time.perf_counter() - start
        _Timed.written += self._kept != before


def checkpoint_costs() -> Iterator[dict[str, Any]]:
    """Train models of several sizes, and tell how long training and checkpoints took."""
    sphere = Sphere(10)
    mixing = LeakyMixing(10, seed=0, draws=100)
    process: Any = Process(Uniform(sphere), VonMisesFisher(sphere, 10.0), mixing)

    def labelled(size: int, *, generator: torch.Generator) -> Labelled:
        pairs = process.sample(size, generator=generator)
        rows = torch.randint(ROWS, (size,), generator=generator)
        return Labelled(pairs.z, pairs.x, rows, rows)

    table: Any = InstanceDiscrimination(ROWS, 10, sampled=256)
    wide = Encoder(10, sphere, hidden=(512,) * 4)
    for name, steps, encoder, objective, sample in (
        ("64 units", 3000, Encoder(10, sphere), InfoNCE(), process.sample),
        ("512 units", 300, wide, InfoNCE(), process.sample),
        (f"64 units, a table of {ROWS} rows", 3000, Encoder(10, sphere), table, labelled),
    ):
        _Timed.seconds, _Timed.written = 0.0, 0
        with tempfile.TemporaryDirectory() as folder, _timed():
            path = Path(folder) / "checkpoint.safetensors"
            recipe = Recipe(steps=steps, batch=512)
            done = train(encoder, sample, objective, recipe, checkpoint=path)
        yield {
            "training": name,
            "steps": steps,
            "seconds": round(done.seconds, 2),
            "checkpoints": _Timed.written,
            "seconds of checkpoints": round(_Timed.seconds, 3),
            "share": round(_Timed.seconds / done.seconds, 4),
        }


@contextmanager
def _timed() -> Iterator[None]:
    usual = loop.Checkpoints
    loop.Checkpoints = _Timed  # type: ignore[misc]
    try:
        yield
    finally:
        loop.Checkpoints = usual  # type: ignore[misc]


def table(data: dict[str, Any]) -> str:
    """Return Markdown of what ``checkpoints.json`` holds."""
    header = ["training", "steps", "seconds", "checkpoints", "seconds of checkpoints", "share"]
    rows = [
        [*(f"{one[name]}" for name in header[:-1]), f"{100 * one['share']:.2f} %"]
        for one in data["trainings"]
    ]
    about = data["provenance"]
    notes = [
        "Batches of 512 pairs, ten latents; the share of the whole time of training.",
        f"Regenerate with `{about['command']}`: commit {str(about.get('commit', 'unknown'))[:12]}.",
    ]
    return table_markdown("What checkpoints cost", header, rows, notes)


def main() -> None:
    """Measure, and write what came out."""
    parser = argparse.ArgumentParser(prog="python -m faults.cost", description=__doc__)
    folder = ROOT / "results" / "faults" / "checkpoints"
    parser.add_argument("--out", type=Path, default=folder)
    out = parser.parse_args().out
    data = {
        "trainings": list(checkpoint_costs()),
        "provenance": {"command": "python -m faults.cost", **provenance()},
    }
    write_atomic(out / "checkpoints.json", json.dumps(data, indent=1) + "\n")
    write_atomic(out / "table.md", table(data))


if __name__ == "__main__":
    main()
