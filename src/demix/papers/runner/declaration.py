"""What an experiment is: a table or figure of a paper, declared as data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from demix.distributions.base import Conditional, Marginal
from demix.distributions.generalized_normal import GeneralizedNormal, Laplace, Normal
from demix.distributions.uniform import Uniform
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.papers.runner.scales import Scale
from demix.spaces.base import Space

Model = str
Figure = tuple[float, float | None]
"""A published mean and, where there is one, standard deviation, in percent."""


@dataclass(frozen=True)
class Distribution:
    """A distribution by name: ``Distribution("gennorm", 0.05, p=3)``."""

    kind: Literal["uniform", "vmf", "normal", "laplace", "gennorm"]
    width: float = 0.0
    p: float = 2.0
    limit: float = float("inf")

    def conditional(self, space: Space) -> Conditional:
        """Build it as a conditional on ``space``."""
        if self.kind == "vmf":
            return VonMisesFisher(space, self.width)
        if self.kind == "normal":
            return Normal(space, self.width)
        if self.kind == "laplace":
            return Laplace(space, self.width, limit=self.limit)
        return GeneralizedNormal(space, self.p, self.width, limit=self.limit)

    def marginal(self, space: Space) -> Marginal:
        """Build it as a marginal on ``space``, around the paper's centre."""
        return Uniform(space) if self.kind == "uniform" else self.conditional(space).at()

    def __str__(self) -> str:
        names = {"uniform": "Uniform", "normal": "Normal(σ={})", "laplace": "Laplace(λ={})"}
        names |= {"vmf": "vMF(κ={})", "gennorm": f"GenNorm(β={self.p:g}, λ={{}})"}
        text = names[self.kind].format(f"{self.width:g}")
        return text if self.limit == float("inf") else f"{text} within ±{self.limit:g}"


class Point(NamedTuple):
    """Where a row lies in a figure: in which panel, on which line, how far to the right."""

    panel: str
    line: str
    x: float


@dataclass(frozen=True)
class Row(ABC):
    """One row of a table, or one point of a figure: a process, and models of it."""

    number: int

    @property
    @abstractmethod
    def models(self) -> tuple[Model, ...]:
        """The models that the row runs."""

    @property
    @abstractmethod
    def main(self) -> tuple[Model, ...]:
        """Those of them that the row is about; the others are there to compare with."""

    @abstractmethod
    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""

    @abstractmethod
    def published(self, model: Model, score: str) -> Figure | None:
        """Return the paper's figure for a score of a model, in percent."""

    @abstractmethod
    def cells(self) -> dict[str, str]:
        """Describe process and model for the columns of a table."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """Describe process and model for a machine."""

    @abstractmethod
    def setting(self) -> Row:
        """Return the row without number and figures: rows of one setting give one result."""

    def lacks(self, material: Any) -> str | None:
        """Say what the row would need of the files that were given, if it is not among them."""
        return None

    def threads(self, scale: Scale) -> int | None:
        """Return on how many threads a cell runs; None for all that it is given."""
        return scale.threads

    def warnings(self, scale: Scale, seed: int) -> tuple[str, ...]:
        """Say what theory forbids, before anything is run."""
        return ()


R = TypeVar("R", bound=Row, covariant=True)


@dataclass(frozen=True)
class Panel:
    """A panel of a figure: which score it shows against what."""

    title: str
    x_label: str
    score: str = "r2"
    y_label: str = "R² in percent"
    log_x: bool = False
    percent: bool = True


@dataclass(frozen=True)
class Experiment(Generic[R]):
    """A table or figure: its rows and the scores it is about, the main one first.

    A figure names its panels, and its rows are points. ``notes`` stand below its table. ``data``
    says which files it needs, if any.
    """

    name: str
    title: str
    scores: tuple[str, ...]
    rows: tuple[R, ...]
    source: str
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    data: str | None = None

    @property
    def score(self) -> str:
        """The main score."""
        return self.scores[0]


def varying(experiment: Experiment[Row]) -> list[str]:
    """Return the columns of :meth:`Row.cells` in which the rows of an experiment differ."""
    described = [row.cells() for row in experiment.rows]
    return [name for name in described[0] if len({cells[name] for cells in described}) > 1]
