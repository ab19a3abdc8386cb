"""Rows of Table 4 of the second paper: classifiers of one factor, and what else they tell."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from demix._support.errors import DemixWarning
from demix.encoders.encoder import Encoder
from demix.losses.classification import Classification
from demix.papers.runner.declaration import Figure, Model, Row
from demix.papers.runner.scales import Scale
from demix.spaces.real import Real
from demix.training.recipe import Recipe

_BODIES = {"mlp": "perceptron", "cnn": "compact"}
_FEATURES = {"mlp": 512, "cnn": 256}
_PAPER_BODIES = {"mlp": "perceptron", "cnn": "resnet18_linear"}
_PAPER_FEATURES = 512
_PAPER_EPOCHS, _PAPER_BATCH = 100, 4096
# Larger data sets are thinned out at random.
_MOST = {"smoke": 400, "laptop": 20_000}
_SIDES = {"smoke": 32, "laptop": 64}


@dataclass(frozen=True)
class ReadOutRow(Row):
    """A data set, and the category that a classifier learns to tell.

    Parameters
    ----------
    number : int
        Of the row.
    dataset : str
        Name of the data set, as its loader gives it.
    title : str
        The same in words.
    trained_on : str
        The category.
    paper : mapping of str to mapping of Model to float
        For some factors, Pearson's r of the paper's models.
    """

    dataset: str
    title: str
    trained_on: str
    paper: Mapping[str, Mapping[Model, float]] = field(default_factory=dict)

    @property
    def models(self) -> tuple[Model, ...]:
        """The pixels, both networks, and the same networks before training."""
        return ("input", "untrained mlp", "mlp", "untrained cnn", "cnn")

    @property
    def main(self) -> tuple[Model, ...]:
        """The classifiers."""
        return ("mlp", "cnn")

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return f"{self.title}, {model}"

    def published(self, model: Model, score: str) -> Figure | None:
        """Return nothing: the paper has a figure for each factor, see :meth:`figure`."""
        return None

    def figure(self, factor: str, model: Model) -> float | None:
        """Return the paper's r of a factor."""
        return self.paper.get(factor, {}).get(model)

    def cells(self) -> dict[str, str]:
        """Describe data and task for the columns of a table."""
        return {"data": self.title, "trained on": self.trained_on}

    def setting(self) -> Row:
        """Return the row without number and figures."""
        return replace(self, number=0, paper={})

    def facts(self) -> dict[str, Any]:
        """Describe data and task for a machine."""
        return {
            "dataset": self.dataset,
            "trained_on": self.trained_on,
            "published": {factor: dict(figures) for factor, figures in self.paper.items()},
        }

    def lacks(self, material: Any) -> str | None:
        """Say which data the row would need, if they were not given."""
        return None if self.dataset in material else f"the data set {self.dataset}"

    def plan(
        self,
        scale: Scale,
        model: Model,
        shape: tuple[int, int, int],
        classes: int,
        images: int,
    ) -> tuple[Encoder, Classification, Recipe]:
        """Return encoder, objective and recipe for so many classes and images to train on."""
        network, paper = model.removeprefix("untrained "), scale.name == "paper"
        width = _PAPER_FEATURES if paper else _FEATURES[network]
        body = (_PAPER_BODIES if paper else _BODIES)[network]
        encoder = Encoder(shape, Real(width), body=body)
        with warnings.catch_warnings():
            # There are fewer classes than features, on purpose; the table says so below.
            warnings.simplefilter("ignore", DemixWarning)
            objective = Classification(classes, width, bias=True)
        if paper:
            recipe = Recipe(
                steps=max(1, _PAPER_EPOCHS * images // _PAPER_BATCH),
                batch=_PAPER_BATCH,
                optimizer="adam",
                rate=1e-3,
                warmup=0.0,
                decay=False,
                whiten=False,
                initialise=False,
            )
        else:
            recipe = _LAPTOP[network]
        return encoder, objective, replace(recipe, steps=10, batch=16) if scale.smoke else recipe


_LAPTOP = {
    "mlp": Recipe(steps=500, batch=256, optimizer="adam", rate=1e-3),
    # Gently: at larger rates it learns to tell shapes wherever they are, and forgets where.
    "cnn": Recipe(steps=400, batch=128, optimizer="adam", rate=3e-4, bf16=True),
}


def most_images(scale: Scale) -> int | None:
    """Return how many images of a data set are used at a scale; None for all."""
    return _MOST.get(scale.name)


def largest_side(scale: Scale) -> int | None:
    """Return the height and width that larger images are reduced to at a scale; None for none."""
    return _SIDES.get(scale.name)
