"""Rows of Table 4: classifiers of one factor of images, and read-outs of all factors."""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from demix._support.errors import DemixError, DemixWarning
from demix.encoders.encoder import Encoder
from demix.losses.classification import Classification
from demix.metrics.blocks import exchangeable
from demix.metrics.probes import readouts
from demix.metrics.probes.factor import Factor
from demix.metrics.probes.linear import Basis
from demix.papers.datasets.factor_images import FactorImages
from demix.papers.datasets.opening import open_factor_images
from demix.papers.pages.panels import Subplot
from demix.papers.reizinger2024.labelled_images import LabelledImages
from demix.papers.runner.experiment import Experiment, InputFiles, Lines, Records, Results, Row
from demix.papers.runner.original import plain_adam
from demix.papers.runner.run import Run
from demix.papers.runner.scales import Scale
from demix.papers.runner.score_rows import panels_picture
from demix.report.blocks import Picture
from demix.spaces.kinds import Real
from demix.training.recipe import Recipe

_MODELS = {
    "input": "input",
    "untrained mlp": "untrained MLP",
    "mlp": "MLP",
    "untrained cnn": "untrained CNN",
    "cnn": "CNN",
}
_BODIES = {"mlp": "perceptron", "cnn": "compact"}
_FEATURES = {"mlp": 512, "cnn": 256}
_PAPER_BODIES = {"mlp": "perceptron", "cnn": "resnet18_linear"}
_PAPER_FEATURES = 512
_PAPER_EPOCHS, _PAPER_BATCH = 100, 4096
_LAPTOP = {
    "mlp": Recipe(steps=500, batch=256, optimizer="adam", rate=1e-3),
    # Small: at larger rates it learns shapes whatever their position, and forgets the position.
    "cnn": Recipe(steps=400, batch=128, optimizer="adam", rate=3e-4, bf16=True),
}
# Larger data sets are thinned out at random, and larger images reduced.
_MOST = {"smoke": 400, "laptop": 20_000}
_SIDES = {"smoke": 32, "laptop": 64}
_ORDERS = 200  # of the null


@dataclass(frozen=True)
class ReadOutRow(Row):
    """A data set, the category that a classifier learns, and the paper's r of some factors."""

    dataset: str
    title: str
    trained_on: str
    paper: Mapping[str, Mapping[str, float]] = field(default_factory=dict, repr=False)

    models = tuple(_MODELS)
    main = ("mlp", "cnn")

    def columns(self) -> dict[str, str]:
        """Describe data and task for the columns of a table."""
        return {"data": self.title, "trained on": self.trained_on}

    def plan(
        self, scale: Scale, model: str, shape: tuple[int, int, int], classes: int, images: int
    ) -> tuple[Encoder, Classification, Recipe]:
        """Return encoder, objective and recipe for so many classes and images to train on."""
        network, paper = model.removeprefix("untrained "), scale.name == "paper"
        width = _PAPER_FEATURES if paper else _FEATURES[network]
        body = (_PAPER_BODIES if paper else _BODIES)[network]
        encoder = Encoder(shape, Real(width), body=body)
        with warnings.catch_warnings():
            # There are fewer classes than features, on purpose; a note below the table says so.
            warnings.simplefilter("ignore", DemixWarning)
            objective = Classification(classes, width, bias=True)
        if paper:
            steps = max(1, _PAPER_EPOCHS * images // _PAPER_BATCH)
            recipe = plain_adam(steps=steps, batch=_PAPER_BATCH, rate=1e-3)
        else:
            recipe = _LAPTOP[network]
        return encoder, objective, replace(recipe, steps=10, batch=16) if scale.smoke else recipe

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> dict[str, FactorImages]:
        """Open the data sets by name, of large ones as many images as a scale takes."""
        sets = [row.facts()["dataset"] for row in experiment.rows]
        found: dict[str, FactorImages] = {}
        for path in files.paths:
            known = open_factor_images(path, callback=files.reading)
            if known.name not in sets or known.name in found:
                again = "again" if known.name in found else "which has no row"
                raise DemixError(
                    f"{experiment.name} takes one of each of {', '.join(sets)}, but {path} holds "
                    f"{known.name}, {again}."
                )
            most = _MOST.get(files.scale.name, len(known))
            if most < len(known):
                chosen = np.random.default_rng(0).choice(len(known), most, replace=False)
                known = known.only(np.sort(chosen), callback=files.reading)
            elif known.pixels.in_chunks:  # too slow to draw a batch from at every step
                known = known.only(np.arange(len(known)), callback=files.reading)
            found[known.name] = known
        return found

    def lacks(self, inputs: Any) -> str | None:
        """Return which data set the row needs if it was not given."""
        return None if self.dataset in inputs else f"the data set {self.dataset}"

    def digest(self, inputs: dict[str, FactorImages]) -> str:
        """Return a checksum of the data set that the row reads."""
        return inputs[self.dataset].digest

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train a classifier and read all factors out of its features; None if Ctrl-C ended it.

        ``r`` and ``r2`` are means over factors that were not trained on; those compared ``within``
        another one count within it only. ``left_out`` says which could not be read out, and why.
        """
        begun = time.perf_counter()
        known: FactorImages = run.inputs[self.dataset]
        images = LabelledImages(known, self.trained_on, run.seed, _SIDES.get(run.scale.name))
        learnt: dict[str, Any] | None = {"accuracy": None, "steps": 0}
        encode = images.reduced()
        if run.model != "input":
            plan = run.plan(
                self.plan,
                shape=images.shape,
                classes=int(images.labels.max()) + 1,
                images=len(images.split.train),
            )
            encode = plan[0]
            if run.model in self.main:
                learnt = images.train(run, plan)
            else:
                images.initialise(plan, run.seed)
        if learnt is None:
            return None
        features = images.encoded(encode)
        found, left_out = _read_out(features, known, images.split, run.seed)
        # Across objects whose angles have nothing in common, none is to be expected.
        idle = {self.trained_on, *(column.name for column in known.columns if column.within)}
        others = [each for name, each in found.items() if name not in idle]
        return {
            **{score: float(np.mean([each[score][0] for each in others])) for score in ("r", "r2")},
            **learnt,
            "readouts": found,
            "left_out": left_out,
            "nats_above_optimum": None,
            "seconds": round(time.perf_counter() - begun, 2),
            "images": {part: len(rows) for part, rows in images.split._asdict().items()},
            "size": images.shape[1],
            "features": features.shape[1],
        }

    @classmethod
    def table(cls, experiment: Experiment, results: Results[Self]) -> Lines:
        """Return header and lines: r of each model, the paper's in brackets, R² of the networks."""
        models = [model for model in _MODELS if any(by_model[model] for _, by_model in results)]
        mains = [model for model in models if any(model in row.main for row, _ in results)]
        header = ["row", "data", "factor", "kind"]
        for model in models:
            printed = any(model in figures for row, _ in results for figures in row.paper.values())
            header.append(f"{_MODELS[model]} r" + (" (paper)" if printed else ""))
        header += [f"{_MODELS[model]} R²" for model in mains]
        lines = []
        for row, by_model in results:
            for factor, kind in row._kinds(by_model).items():
                paper = row.paper.get(factor, {})
                line = [str(row.number), row.title, factor, kind]
                line += [_entry(by_model[m], factor, "r", paper.get(m)) for m in models]
                line += [_entry(by_model[m], factor, "r2") for m in mains]
                lines.append(line)
        return header, lines

    @classmethod
    def figure(cls, experiment: Experiment, results: Results[Self], folder: Path) -> Picture | None:
        """Draw a panel for each data set: r of all factors, with its interval, for each model."""
        panels = []
        for row, by_model in results:
            series = {}
            for model, name in _MODELS.items():
                found = {f: _mean(by_model[model], f, "r") for f in row._kinds(by_model)}
                points = [
                    (factor, ends[0], max(ends[2] - ends[0], ends[0] - ends[1]))
                    for factor, ends in found.items()
                    if ends is not None
                ]
                if points:
                    series[name] = points
            title = f"{row.title}, trained on {row.trained_on}"
            if series:
                panels.append(Subplot(title, "", "Pearson's r", series))
        words = (
            "Pearson's r of linear read-outs, with 95 % intervals over the images that are scored."
        )
        return panels_picture(experiment, panels, words, folder) if panels else None

    @classmethod
    def notes(cls, results: Results[Self]) -> tuple[str, ...]:
        """Say how accurate the classifiers are."""
        rows = []
        for row, by_model in results:
            known = {
                m: [r["accuracy"] for r in by_model[m] if r["accuracy"] is not None]
                for m in row.main
            }
            shares = [
                f"{_MODELS[model]} {100 * np.mean(values):.1f} %" if values else "unknown"
                for model, values in known.items()
                if by_model[model]
            ]
            rows.append(f"{row.title} {', '.join(shares)}")
        return (f"Accuracy of the classifiers on images held out: {'; '.join(rows)}.",)

    def _kinds(self, by_model: Mapping[str, Records]) -> dict[str, str]:
        """Return the kinds of all factors, the one that was trained on first."""
        kinds = {
            factor: found["kind"]
            for records in by_model.values()
            for record in records
            for factor, found in record["readouts"].items()
        }
        first = {self.trained_on: f"{kinds.get(self.trained_on, 'categorical')}, trained on"}
        return first | {factor: kind for factor, kind in kinds.items() if factor not in first}


def _read_out(
    features: np.ndarray, known: FactorImages, split: readouts.ProbeSplit, seed: int
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
    across = readouts.read_outs(
        features,
        list(factors.values()),
        split,
        permutations=_ORDERS,
        sampling=exchangeable(len(features), seed),
    )
    found = {name: _record(each) for name, each in zip(factors, across, strict=True)}
    for column in known.columns:
        if column.within is not None and column.name in factors:
            blocks = known.factor(column.within)
            each = read_out_within(
                features, factors[column.name], blocks, split, permutations=_ORDERS, seed=seed
            )
            found[f"{column.name} within {column.within}"] = _record(each)
    return found, left_out


def _record(each: readouts.ReadOut) -> dict[str, Any]:
    ends = {name: list(estimate) for name, estimate in each.scores.items()}
    return {"kind": each.kind, **ends, "chance": each.chance.value, "p": each.p}


def _entry(records: Records, factor: str, score: str, paper: float | None = None) -> str:
    """Return value and interval, means over seeds, and the paper's in brackets."""
    found = _mean(records, factor, score)
    if found is None:
        return "–"
    value, low, high = found
    text = f"{value:.3f} [{low:.3f}, {high:.3f}]"
    return text if paper is None else f"{text} ({paper:.2f})"


def _mean(records: Records, factor: str, score: str) -> np.ndarray | None:
    """Return value, lower and upper end of a score, means over seeds."""
    found = [r["readouts"][factor][score] for r in records if factor in r["readouts"]]
    known = [ends for ends in found if None not in ends]
    return np.mean(known, axis=0) if known else None


_LEAST = 4  # a block of which fewer rows fit is left out


class Indicators(Factor):
    """A category that is read out as numbers, one indicator for each value: by r and R², too."""

    @property
    def categorical(self) -> bool:
        """It is read out as numbers."""
        return False

    @cached_property
    def targets(self) -> np.ndarray:
        """What a read-out is fitted to, ``(N, k)`` for ``k`` different values."""
        return (self.codes[:, None] == np.arange(len(self.levels))).astype(float)


def read_out_within(
    features: np.ndarray,
    factor: Factor,
    blocks: np.ndarray,
    split: readouts.ProbeSplit,
    *,
    permutations: int,
    seed: int,
) -> readouts.ReadOut:
    """Read numbers out of features by a linear map for each block, and score all blocks together.

    Blocks of which fewer than four rows fit, or none chooses the penalty, are left out.
    """
    places, predicted, penalties = [], [], []
    for block in np.unique(blocks[split.test]):
        rows = readouts.ProbeSplit(*(part[blocks[part] == block] for part in split))
        if len(rows.train) < _LEAST or len(rows.validation) == 0:
            continue
        basis = Basis.of(features[rows.train])
        parts = readouts.ProbeSplit(*(basis(features[part]) for part in rows))
        prediction, penalty = readouts.predicted_numbers(basis, parts, factor, rows)
        places.append(rows.test)
        predicted.append(prediction)
        penalties.append(penalty)
    if not places:
        raise DemixError(
            f"Reading {factor.name!r} out within blocks needs blocks with {_LEAST} rows to fit, "
            "but none has as many; give more rows."
        )
    true = factor.targets[np.concatenate(places)]
    measured = readouts.measured_numbers(np.concatenate(predicted), true)
    sampling = exchangeable(len(true), seed)
    [null] = readouts.shuffled_scores([measured], sampling, permutations)
    scores, penalty = readouts.estimates(measured, sampling), float(np.median(penalties))
    return readouts.ReadOut(factor.kind, scores, null, penalty, split)
