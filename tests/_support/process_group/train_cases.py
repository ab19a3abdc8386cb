"""Trainings that ranks share, beside the same ones in one process, and one that loses a rank.

A program: `main(ranks, folder)` writes `found.json` into the folder.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from demix import (
    Classification,
    DemixError,
    Encoder,
    InfoNCE,
    InstanceDiscrimination,
    Real,
    Recipe,
    ShapedInfoNCE,
    Sphere,
    train,
)
from demix._support.process_group.group import LostRank, Ranks
from demix.losses import streaming
from forked_ranks import fork_ranks
from small_processes import sphere_labels, sphere_pairs

SPHERE, PAIRS, LABELS = Sphere(2), sphere_pairs(), sphere_labels()
STEPS = 8
CASES: dict[str, tuple[Any, Callable[[], Any], dict[str, Any]]] = {
    "pairs": (PAIRS, InfoNCE, {}),
    "pairs in groups": (PAIRS, lambda: InfoNCE(1, within=8), {"optimizer": "adam", "chunk": 5}),
    "shaped": (PAIRS, lambda: ShapedInfoNCE(2), {}),
    "labels": (LABELS, lambda: Classification(20, 2, bias=True), {}),
    "sampled": (LABELS, lambda: InstanceDiscrimination(20, 2, sampled=5), {}),
    "fewer than ranks": (PAIRS, lambda: InfoNCE(within=2), {"batch": 2}),
    "batch": (LABELS, lambda: InstanceDiscrimination(20, 2, sampled="batch"), {}),
}


def run(name: str, *, dies_at: int | None = None, **settings: Any) -> tuple[list[Tensor], Any]:
    """Return all weights of a training in float64 and its history; a rank may die on the way."""
    process, make, options = CASES[name]
    encoder, objective = Encoder(2, Real(2), hidden=(8, 8)).double(), make()
    for parameter in objective.parameters():
        parameter.data = parameter.data.double()
    held = process.sample(50, generator=torch.Generator().manual_seed(9))
    draws = [0]

    def sample(size: int, *, generator: torch.Generator) -> Any:
        draws[0] += 1
        if draws[0] == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        drawn = process.sample(size, generator=generator)
        return type(drawn)(*(x.double() if x.is_floating_point() else x for x in drawn))

    def validate(encoder: Encoder) -> float:
        """A held-out loss that rises after the first evaluation."""
        if isinstance(objective, Classification):
            assert len(objective.prototypes()) == 20
        return float(encoder(held.x.double()).square().mean())

    training = train(
        encoder,
        sample,
        objective,
        Recipe(**{"steps": STEPS, "batch": 31} | options),
        seed=3,
        eval_every=STEPS // 4,
        validate=validate,
        **settings,
    )
    return [
        w.clone() for made in (encoder, objective) for w in made.state_dict().values()
    ], training


def told(training: Any) -> list[list[float]]:
    """Return what does not depend on the clock."""
    return [[r["step"], r["loss"], r["validation"]] for r in training.history]


def gap(found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference of two lists of weights."""
    return max(float((a - b).abs().max()) for a, b in zip(found, expected, strict=True))


def refusals() -> list[str]:
    """Return what every rank is told about trainings that ranks cannot share."""
    said = []
    rank = Ranks.current().rank
    for encoder, objective, seed in [
        (Encoder(2, SPHERE), InfoNCE(), rank),
        (Encoder(2, SPHERE), lambda encoder, batch: encoder(batch.x).sum(), 0),
        (Encoder(2, SPHERE, residual=False, batch_norm=True), InfoNCE(), 0),
    ]:
        try:
            train(encoder, PAIRS.sample, objective, Recipe(steps=1, batch=8), seed=seed)
        except DemixError as error:
            said.append(str(error))
    return said


def work(folder: Path) -> Callable[[int], None]:
    """Return what each rank does."""

    def together(rank: int) -> None:
        (folder / str(rank)).mkdir()
        found = {}
        for name in CASES:
            weights, training = run(name, checkpoint=folder / str(rank) / f"{name}.safetensors")
            same = all(map(torch.equal, weights, Ranks.current().broadcast(weights)))
            found[name] = {"history": told(training), "best": training.best_step, "same": same}
            if rank == 0:
                torch.save(weights, folder / f"{name}.pt")
        found["refused"] = refusals()
        (folder / f"found-{rank}.json").write_text(json.dumps(found))

    return together


def killed(folder: Path, name: str) -> Callable[[int], None]:
    """Return a training whose last rank dies in the middle."""

    def dying(rank: int) -> None:
        last = rank == Ranks.current().count - 1
        try:
            # One draw is for the whitening, and one for a step that does not count.
            run(name, checkpoint=folder / "cut.safetensors", dies_at=7 if last else None)
        except LostRank as error:
            (folder / f"lost-{rank}.txt").write_text(str(error))

    return dying


def resumed(folder: Path, name: str) -> Callable[[int], None]:
    """Return a training that goes on from what is there."""

    def going_on(rank: int) -> None:
        steps: list[int] = []
        weights, training = run(
            name,
            checkpoint=folder / "cut.safetensors",
            callback=lambda step, record: steps.append(step),
        )
        if rank == 0:
            whole = torch.load(folder / f"{name}.pt")
            found = {"first": steps[0], "gap": gap(weights, whole), "history": told(training)}
            (folder / "resumed.json").write_text(json.dumps(found))

    return going_on


def main(count: int, place: str) -> None:
    """Train together and alone, lose a rank, and go on."""
    folder = Path(place)
    streaming._FEW = 0  # else such small batches would be gathered
    codes = fork_ranks(count, work(folder))
    assert codes == [0] * count, codes
    found = json.loads((folder / "found-0.json").read_text())
    for name in CASES:
        weights, training = run(name)
        found[name] |= {
            "gap": gap(torch.load(folder / f"{name}.pt"), weights),
            "alone": told(training),
            "best alone": training.best_step,
        }
    name = "labels"
    found["codes"] = fork_ranks(count, killed(folder, name))
    assert fork_ranks(count, resumed(folder, name)) == [0] * count
    found["resumed"] = json.loads((folder / "resumed.json").read_text())
    found |= {"killed": name, "cases": list(CASES)}
    (folder / "found.json").write_text(json.dumps(found))
