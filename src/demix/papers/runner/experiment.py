"""What an experiment is: a table or figure of a paper, declared as rows that run themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

from demix._support.resources import table
from demix.papers.datasets.factor_images import Progress
from demix.papers.runner.run import Run
from demix.papers.runner.scales import Scale
from demix.report.blocks import Figure, Picture

Published = tuple[float, float | None]
"""A published mean and, if there is one, standard deviation, in percent."""
Records = Sequence[dict[str, Any]]
R = TypeVar("R")
Results = Sequence[tuple[R, Mapping[str, Records]]]
"""Rows that have records, each with its records by model, none for a model that was not run."""
Lines = tuple[list[str], list[list[str]]]
"""Header and lines of a table."""
Shown = Figure | Picture | None
"""What stands above a table."""

_WORDS = table("papers/experiments.toml")


@dataclass(frozen=True)
class InputFiles:
    """Files or folders of an experiment; ``verify`` compares rendered ones with checksums."""

    paths: Sequence[str | Path]
    scale: Scale
    reading: Progress = lambda done, total, what: None
    verify: bool = False


@dataclass(frozen=True)
class Row(ABC):
    """One row of a table, or point of a figure; it opens its inputs, runs, tabulates and draws.

    Fields with ``repr=False`` hold published figures; the others are the setting.
    """

    number: int = field(repr=False)
    work: ClassVar[str] = "training in all on"
    """What the minutes below a table were spent on."""

    @property
    @abstractmethod
    def models(self) -> tuple[str, ...]:
        """The models that the row runs."""

    @property
    def main(self) -> tuple[str, ...]:
        """The models that the row is about; the others are baselines."""
        return self.models

    def published(self, model: str, score: str) -> Published | None:
        """Return the paper's figure for a score of a model, in percent."""
        return None

    @abstractmethod
    def columns(self) -> dict[str, str]:
        """Describe process and model for the columns of a table."""

    def facts(self) -> dict[str, Any]:
        """Describe process and model for a machine: the fields of the setting, as plain data."""
        found = {part.name: getattr(self, part.name) for part in fields(self) if part.repr}
        plain = (bool, int, float, str, type(None))
        return {k: v if isinstance(v, plain) else str(v) for k, v in found.items()}

    def setting(self) -> str:
        """Describe the row without number and figures: rows of one setting give one result."""
        return repr(self)

    def threads(self, scale: Scale) -> int | None:
        """Return the number of threads of a job; None for all that it is given."""
        return scale.threads

    def warnings(self, scale: Scale, seed: int) -> tuple[str, ...]:
        """Return what theory forbids, before anything is run."""
        return ()

    @classmethod
    def inputs(cls, experiment: Experiment, files: InputFiles) -> Any:
        """Open what rows of this kind need besides themselves; None if that is nothing."""
        return None

    @classmethod
    def prepare(
        cls, inputs: Any, data: tuple[Path, ...], folder: Path, reading: Progress
    ) -> tuple[Any, tuple[Path, ...]]:
        """Return the inputs of jobs, and the files to open them from in another process."""
        return inputs, data

    def lacks(self, inputs: Any) -> str | None:
        """Return what the row needs if the inputs do not hold it."""
        return None

    def digest(self, inputs: Any) -> str | None:
        """Return a checksum of what the row reads of the inputs; None if that is nothing."""
        return getattr(inputs, "digest", None)

    def available(self, inputs: Any) -> tuple[str, ...]:
        """Return the models that can run on the inputs."""
        return self.models

    @abstractmethod
    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model; None if Ctrl-C ended it, or if this rank has no part in it."""

    @classmethod
    @abstractmethod
    def table(cls, experiment: Experiment, results: Results[Self]) -> Lines:
        """Return header and lines of the table."""

    @classmethod
    @abstractmethod
    def figure(cls, experiment: Experiment, results: Results[Self], folder: Path) -> Shown:
        """Return the figure above the table; a figure of a paper is also written to files."""

    @classmethod
    def notes(cls, results: Results[Self]) -> tuple[str, ...]:
        """Return notes on the results, below those of the experiment."""
        return ()


class Point(NamedTuple):
    """Where a row lies in a figure: in which panel, on which line, how far to the right."""

    panel: str
    line: str
    x: float


@dataclass(frozen=True)
class Panel:
    """A panel of a paper's figure: which score it shows against what."""

    title: str
    x_label: str
    score: str = "r2"
    y_label: str = "R² in percent"
    log_x: bool = False


@dataclass(frozen=True)
class Experiment:
    """A table or figure: rows of one kind, scores, the main one first, and notes below the table.

    A figure names its panels, and its rows are points. ``data`` says which files it needs, if any.
    """

    name: str
    title: str
    scores: tuple[str, ...]
    rows: tuple[Row, ...]
    source: str
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    data: str | None = None

    @classmethod
    def of(cls, name: str, *rows: Row) -> Self:
        """Return the experiment of a name, with its words in ``papers/experiments.toml``."""
        own = dict(_WORDS[name])
        panels = tuple(Panel(**panel) for panel in own.pop("panels", ()))
        notes = tuple(note.format(**_WORDS["notes"]) for note in own.pop("notes"))
        source, scores = own.pop("source").format(**_WORDS["papers"]), tuple(own.pop("scores"))
        return cls(name, rows=rows, source=source, scores=scores, panels=panels, notes=notes, **own)

    @property
    def score(self) -> str:
        """The main score."""
        return self.scores[0]

    @property
    def kind(self) -> type[Row]:
        """The kind of its rows."""
        return type(self.rows[0])

    def listing(self) -> dict[str, Any]:
        """Describe the experiment and its rows as plain data, for ``demix list``."""
        shown, rows = self.varying(), []
        for row in self.rows:
            figures = {model: row.published(model, self.score) for model in row.main}
            paper = [
                f"{figure[0]:.2f} {model if len(row.main) > 1 else ''}".strip()
                for model, figure in figures.items()
                if figure is not None
            ]
            described = row.columns()
            own = {"columns": {name: described[name] for name in shown}, "paper": paper}
            rows.append({"row": row.number, **row.facts(), "models": list(row.models), **own})
        facts = {name: getattr(self, name) for name in ("name", "title", "source", "score")}
        return {**facts, "rows": rows}

    def varying(self) -> list[str]:
        """Return the columns in which the rows differ."""
        described = [row.columns() for row in self.rows]
        return [name for name in described[0] if len({each[name] for each in described}) > 1]

    def results(self, records: Records) -> Results[Row]:
        """Return the rows that have records, and their records by model."""
        by_row: dict[int, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
        for record in records:
            by_row[record["row"]][record["model"]].append(record)
        return [(row, by_row[row.number]) for row in self.rows if row.number in by_row]
