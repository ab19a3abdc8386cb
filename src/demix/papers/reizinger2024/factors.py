"""Rows of Figure 3: factors of photographs, read out of the features of a classifier."""

import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from demix._support.process_group.group import Ranks
from demix.papers.datasets.annotations import ImageNetX
from demix.papers.datasets.factor_images import Progress
from demix.papers.pages.panels import write_grouped_bars
from demix.papers.reizinger2024.balanced import LEVEL, balanced_readout, is_testable
from demix.papers.reizinger2024.photographs import (
    MODELS,
    AnnotatedFeatures,
    Photographs,
    open_photographs,
)
from demix.papers.runner.experiment import Experiment, InputFiles, Lines, Records, Results, Row
from demix.papers.runner.run import UNTRAINED, Run
from demix.papers.runner.scales import Scale
from demix.report.blocks import Picture

Inputs = Photographs | AnnotatedFeatures
_IMAGES = 256  # at smoke scale
_NAMES = {
    "trained": "{encoder}",
    "random": "the same net at random initialisation",
    "pixels": "pixels, randomly projected",
}


@dataclass(frozen=True)
class FactorRow(Row):
    """One factor of photographs, read out of several models; the paper shows bars, no numbers."""

    factor: str
    work = "read-outs in all on one of"
    models = MODELS

    def columns(self) -> dict[str, str]:
        """Describe the factor for the columns of a table."""
        return {"factor": self.factor.replace("_", " ")}

    def repeats(self, scale: Scale) -> int:
        """Return how often rows are resampled; nothing is trained, so laptop and paper agree."""
        return 3 if scale.smoke else 10

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> Inputs:
        """Open photographs, or features of them."""
        return open_photographs(files.paths, _IMAGES if files.scale.smoke else None)

    @classmethod
    def prepare(
        cls, inputs: Inputs, data: tuple[Path, ...], folder: Path, reading: Progress
    ) -> tuple[AnnotatedFeatures, tuple[Path, ...]]:
        """Encode photographs once for all jobs, into ``folder``."""
        features = inputs.encoded(folder / "features", reading)
        return features, features.paths

    def available(self, inputs: Inputs) -> tuple[str, ...]:
        """Return the models of which there are features, or can be."""
        return inputs.models

    def run(self, run: Run) -> dict[str, Any] | None:
        """Read one factor out, unless it is too rare; None if interrupted, and on other ranks."""
        if not Ranks.current().leads:
            return None  # there is nothing to share
        features: AnnotatedFeatures = run.inputs
        repeats, done = self.repeats(run.scale), count(1)

        def fitted() -> None:
            run.monitor(next(done), repeats + 1, {})

        begun = time.process_time()
        values, targets = features.rows(run.model)
        factor = targets[:, ImageNetX.target_names.index(self.factor)]
        positives = int(factor.sum())
        testable = is_testable(min(positives, len(factor) - positives))
        measured: dict[str, Any] = {"accuracy": None}
        if testable:
            try:
                found = balanced_readout(
                    values, factor, repeats=repeats, seed=run.seed, callback=fitted
                )
            except KeyboardInterrupt:
                return None
            measured = {
                "accuracy": found.accuracy,
                "sem": found.sem,
                "accuracies": found.accuracies.tolist(),
                "p_resampled": found.p_resampled,
                "held_accuracy": found.held_accuracy,
                "held_interval": list(found.held_interval),
                "held_rows": found.held_rows,
                "p_held": found.p_held,
            }
        return {
            **measured,
            "testable": testable,
            "factor": self.factor,
            "positives": positives,
            "images": len(factor),
            **features.about(run.model),
            **UNTRAINED,
            "seconds": round(time.process_time() - begun, 2),
        }

    @classmethod
    def table(cls, experiment: Experiment, results: Results[Self]) -> Lines:
        """Return header and lines: for each model the resampled and the held-out accuracy."""
        models = _models(results)
        header = ["row", "factor", "with", "without", *models]
        header += [f"{model}, held out" for model in models]
        lines = []
        for row, by_model in results:
            first = next(records[0] for records in by_model.values() if records)
            line = [str(row.number), *row.columns().values(), str(first["positives"])]
            line.append(str(first["images"] - first["positives"]))
            found = {model: _found(by_model[model]) for model in models}
            missing = {model: "too rare" if by_model[model] else "–" for model in models}
            line += [str(each or missing[model]) for model, each in found.items()]
            held = [f"{x.held:.1f}{'*' * x.surely}" if x else "–" for x in found.values()]
            lines.append(line + held)
        return header, lines

    @classmethod
    def figure(cls, experiment: Experiment, results: Results[Self], folder: Path) -> Picture:
        """Draw the bars, also into files."""
        panel = experiment.panels[0]
        bars = {}
        for model in _models(results):
            each = [by_model[model] for _, by_model in results]
            first = next(records[0] for records in each if records)
            bars[_NAMES[model].format(encoder=first["encoder"])] = [
                (found.mean, found.sem, found.surely) if (found := _found(records)) else None
                for records in each
            ]
        labels = [row.columns()["factor"] for row, _ in results]
        svg, _ = write_grouped_bars(panel.title, panel.y_label, labels, bars, folder, chance=50.0)
        return Picture(
            svg.read_text(encoding="utf-8"),
            f"{experiment.title}. Mean over balanced resamplings; bars reach one standard error to "
            "either side, the dashed line is chance. Stars: significant on held-out images, at the "
            "paper's level.",
            alt=f"{experiment.title}: accuracy of each factor for {len(bars)} representations.",
        )

    @classmethod
    def notes(cls, results: Results[Self]) -> tuple[str, ...]:
        """Say what was encoded, by what, and how well that knows its classes."""
        records = [r for _, by_model in results for each in by_model.values() for r in each]
        trained = next((r for r in records if r["model"] == "trained"), records[0])
        note = f"Trained: {trained['encoder']}, {trained['width']} features of "
        note += f"{trained['encoded']} images"
        if trained["feature_seconds"] is not None:
            note += f" in {trained['feature_seconds']:.0f} seconds of one core"
        if trained["top1"]:
            note += (
                f"; it names the class of {100 * trained['top1']['share']:.1f} % of "
                f"{trained['top1']['images']} labelled ones"
            )
        return (f"{note}. {trained['images']} of them are annotated.",)


def _models(results: Results[FactorRow]) -> list[str]:
    return [model for model in MODELS if any(by_model[model] for _, by_model in results)]


class _Found(NamedTuple):
    """Accuracies over all seeds in percent, and whether they are above chance."""

    mean: float
    sem: float
    above: bool
    held: float
    surely: bool

    def __str__(self) -> str:
        return f"{self.mean:.1f} ± {self.sem:.1f}{'*' * self.above}"


def _found(records: Records) -> _Found | None:
    """Return what was read out; None if the factor was not run or could not be tested."""
    if not records or records[0]["accuracy"] is None:
        return None
    values = np.concatenate([record["accuracies"] for record in records])
    mean, sem = float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)
    above = mean > 0.5 and _p(records, "p_resampled") < LEVEL
    held = float(np.mean([record["held_accuracy"] for record in records]))
    return _Found(100 * mean, 100 * sem, above, 100 * held, _p(records, "p_held") < LEVEL)


def _p(records: Records, name: str) -> float:
    """Return one p-value; of several, twice the median, which holds whatever their dependence."""
    values = [record[name] for record in records]
    return float(values[0]) if len(values) == 1 else min(1.0, 2 * float(np.median(values)))
