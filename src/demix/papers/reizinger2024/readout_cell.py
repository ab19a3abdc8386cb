"""A cell of read-outs: a classifier of one factor, and what its features tell of the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from demix._support.errors import DemixError
from demix.encoders.encoder import Encoder
from demix.estimators.sources import DrawnLabels
from demix.losses.classification import Classification
from demix.metrics.probes.factor import Factor, Indicators
from demix.metrics.probes.readouts import read_out_within, read_outs
from demix.metrics.probes.result import ProbeSplit, ReadOut
from demix.papers.datasets.dislib.factor_images import FactorImages
from demix.papers.datasets.rendered import as_floats
from demix.papers.reizinger2024.readouts import ReadOutRow, largest_side
from demix.papers.runner.declaration import Model
from demix.papers.runner.scales import Scale
from demix.papers.runner.trial import Plan, Report, planned, trained
from demix.training.loop import Record

# Shares of images that train, and that choose weights and penalties; the others are scored.
_TRAIN, _CHOOSE = 0.8, 0.1
# Images that are encoded at a time, numbers that the pixels are reduced to, orders of the null.
_AT_ONCE = 500
_PIXELS = 1024
_ORDERS = 200
Encode = Callable[[Tensor], Tensor]


def run_readout_cell(
    row: ReadOutRow,
    seed: int,
    scale: Scale,
    model: Model,
    material: Mapping[str, FactorImages],
    report: Report | None = None,
) -> dict[str, Any] | None:
    """Train a classifier and read all factors out of its features; None if Ctrl-C ended it.

    Returns
    -------
    dict
        ``readouts``: for each factor its ``kind``, ``r`` and ``r2`` (value and both ends of the
        interval), ``chance`` and ``p``; a factor that is compared ``within`` another one is read
        out both across and within its values. ``left_out`` says which factors could not be read
        out, and why. ``r`` and ``r2`` are means over all factors but the one that was trained on,
        and over those compared within another one only within it.
        ``accuracy`` is that of the classifier on images held out.
    """
    begun = time.perf_counter()
    known = material[row.dataset]
    labels = _labels(known, row.trained_on)
    split = _split(len(known), seed)
    shape, images = _images(known, largest_side(scale))
    learnt: dict[str, Any] = {"accuracy": None, "steps": 0}
    encode: Encode = _reduced(shape)
    if model != "input":
        more = {"shape": shape, "classes": int(labels.max()) + 1, "images": len(split.train)}
        plan = planned(row, scale, model, seed, **more)
        taught = _taught(plan, images, labels, split, seed, model in row.main, report)
        if taught is None:
            return None
        encode, learnt = plan[0], taught
    features = _features(encode, images, len(known))
    found, left_out = _read_out(features, known, split, seed)
    # Across objects whose angles have nothing in common, none is to be expected.
    idle = {row.trained_on, *(column.name for column in known.columns if column.within)}
    others = [each for name, each in found.items() if name not in idle]
    return {
        **{score: float(np.mean([each[score][0] for each in others])) for score in ("r", "r2")},
        **learnt,
        "readouts": found,
        "left_out": left_out,
        "nats_above_optimum": None,
        "seconds": round(time.perf_counter() - begun, 2),
        "images": {part: len(rows) for part, rows in split._asdict().items()},
        "size": shape[1],
        "features": features.shape[1],
    }


def _labels(known: FactorImages, name: str) -> Tensor:
    values, numbers = np.unique(known.factor(name), return_inverse=True)
    if len(values) < 2:
        raise DemixError(
            f"A classifier needs a factor of several values, but all {len(known)} images of "
            f"{known.name} have one {name!r}."
        )
    return torch.from_numpy(numbers.astype(np.int64))


def _split(rows: int, seed: int) -> ProbeSplit:
    order = np.random.default_rng([seed, 5]).permutation(rows)
    first, second = int(_TRAIN * rows), int((_TRAIN + _CHOOSE) * rows)
    return ProbeSplit(order[:first], order[first:second], order[second:])


def _images(
    known: FactorImages, most: int | None
) -> tuple[tuple[int, int, int], Callable[[np.ndarray], Tensor]]:
    """Return the shape of images, reduced if they are large, and a function that reads them."""
    channels, height, width = known.shape
    side = max(height, width) if most is None else most
    small = (min(height, side), min(width, side))

    def read(rows: np.ndarray) -> Tensor:
        images = as_floats(known.read(rows))
        return images if small == (height, width) else functional.adaptive_avg_pool2d(images, small)

    return (channels, *small), read


def _taught(
    plan: Plan,
    images: Callable[[np.ndarray], Tensor],
    labels: Tensor,
    split: ProbeSplit,
    seed: int,
    train: bool,
    report: Report | None,
) -> dict[str, Any] | None:
    """Train the encoder of a plan in place, or only initialise it, and say what came of it."""
    encoder, objective, recipe = plan
    assert isinstance(objective, Classification)

    def sample(size: int, *, generator: torch.Generator) -> DrawnLabels:
        drawn = torch.randint(
            len(split.train), (size,), generator=generator, device=generator.device
        )
        rows = split.train[drawn.cpu().numpy()]
        return DrawnLabels(images(rows), labels[rows])

    def judged(rows: np.ndarray) -> tuple[float, float]:
        """Return loss and accuracy."""
        features = torch.cat([encoder(images(part)) for part in _blocks(rows)])
        right = objective.logits(features).argmax(dim=1) == labels[rows]
        return float(objective.exact_loss(features, labels[rows])), float(right.float().mean())

    def watch(encoder: Encoder) -> Record:
        return {"accuracy": judged(split.validation)[1]}

    def validate(encoder: Encoder) -> float:
        return judged(split.validation)[0]

    if not train:
        _initialised(plan, sample, seed)
        return {"accuracy": None, "steps": 0}
    training = trained(plan, sample, seed, watch, report, validate=validate)
    if training is None:
        return None
    with torch.no_grad():
        accuracy = judged(split.test)[1]
    return {
        "accuracy": accuracy,
        "steps": training.steps,
        "best_step": training.best_step,
        "batch": recipe.batch,
        "history": training.history,
    }


def _initialised(plan: Plan, sample: Any, seed: int) -> None:
    """Bring an encoder to where training would begin."""
    encoder, _, recipe = plan
    generator = torch.Generator().manual_seed(seed)
    if recipe.initialise:
        encoder.initialise(generator)
    if recipe.whiten:
        encoder.whitening.fit(sample(encoder.whitening.samples, generator=generator).x.flatten(1))
    encoder.eval()


@torch.no_grad()
def _features(encode: Encode, images: Callable[[np.ndarray], Tensor], rows: int) -> np.ndarray:
    return torch.cat([encode(images(part)) for part in _blocks(np.arange(rows))]).float().numpy()


def _read_out(
    features: np.ndarray, known: FactorImages, split: ProbeSplit, seed: int
) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return what was read out of each factor, and why others were left out."""
    factors, left_out = {}, {}
    for column in known.columns:
        kind = Indicators if column.kind == "categorical" else Factor
        factor = kind(column.name, known.factor(column.name), column.kind, column.period)
        if factor.untestable:
            left_out[column.name] = factor.untestable
        else:
            factors[column.name] = factor
    across = read_outs(features, list(factors.values()), split, permutations=_ORDERS, seed=seed)
    found = {name: _record(each) for name, each in zip(factors, across, strict=True)}
    for column in known.columns:
        if column.within is not None and column.name in factors:
            blocks = known.factor(column.within)
            each = read_out_within(
                features, factors[column.name], blocks, split, permutations=_ORDERS, seed=seed
            )
            found[f"{column.name} within {column.within}"] = _record(each)
    return found, left_out


def _record(each: ReadOut) -> dict[str, Any]:
    ends = {name: list(estimate) for name, estimate in each.scores.items()}
    return {"kind": each.kind, **ends, "chance": each.chance.value, "p": each.p}


def _reduced(shape: tuple[int, int, int]) -> Encode:
    """Return pixels of images that are halved until they are few enough for a regression."""
    channels, height, width = shape
    while channels * height * width > _PIXELS:
        height, width = max(1, height // 2), max(1, width // 2)
    return lambda images: functional.adaptive_avg_pool2d(images, (height, width)).flatten(1)


def _blocks(rows: np.ndarray) -> list[np.ndarray]:
    return np.array_split(rows, max(1, -(-len(rows) // _AT_ONCE)))
