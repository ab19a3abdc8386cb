"""Rows of the second paper's tables: labels, and an encoder under a table of rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from demix.encoders.encoder import Encoder, paper_encoder
from demix.losses.auxiliary import GeneralizedContrastive, TimeContrastive
from demix.losses.classification import Classification, InstanceDiscrimination, Sampled
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE
from demix.papers.runner.declaration import Distribution, Figure, Model, Point, Row
from demix.papers.runner.scales import Scale
from demix.processes.cluster_process import ClusterProcess
from demix.processes.clusters import cluster_vectors
from demix.processes.mixing import LeakyMixing
from demix.spaces.base import Space
from demix.spaces.real import Real
from demix.spaces.sphere import Sphere
from demix.theory.setting import Equivalence, Setting, identified
from demix.training.recipe import Recipe, paper_recipe

# Seeds of the cluster vectors, apart from those of the mixing, of training and of held-out draws.
_VECTORS = 2**41
_PAPER_BATCH = 1024
_INSTANCES = ("free", "normalised", "diet")
UNIFORM = Distribution("uniform")
VMF = Distribution("vmf", 10.0)


@dataclass(frozen=True)
class Budget:
    """How a row is trained at laptop scale; ``rate`` is Adam's, ``sampled`` that of the objective.

    The units are LeakyReLU: the inverse of the mixing is piecewise linear, and with labels the
    approximation of it decides on the score.
    """

    steps: int = 8000
    batch: int = 1024
    width: int = 64
    depth: int = 4
    rate: float = 0.02
    sampled: Sampled = None


@dataclass(frozen=True)
class LabelRow(Row):
    """Latents around cluster vectors, and classifiers of their labels.

    The models: ``"free"`` and ``"normalised"`` discriminate instances with free or unit rows,
    ``"supervised"`` tells classes, ``"corrected"`` does so knowing the label noise, and ``"gcl"``,
    ``"tcl"``, ``"infonce"``, ``"diet"`` are the methods of the genealogy. ``batch`` is given where
    it is what an experiment varies. ``paper`` holds what the paper reports of each model that the
    row runs, in percent, by score.
    """

    conditional: Distribution = VMF
    dim: int = 5
    clusters: int = 100
    instances: int = 1000
    vectors: Distribution = UNIFORM
    label_noise: float = 0.0
    batch: int | None = None
    laptop: Budget = field(default_factory=Budget)
    paper: dict[Model, dict[str, float]] = field(default_factory=dict)
    points: tuple[Point, ...] = ()

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that the row runs."""
        return tuple(self.paper)

    @property
    def main(self) -> tuple[Model, ...]:
        """All of them."""
        return self.models

    def label(self, model: Model) -> str:
        """Name the row in a few words, for a figure."""
        return (
            f"{self.conditional}, d={self.dim}, {self.clusters} clusters"
            f"{'' if self.vectors == UNIFORM else f', vectors {self.vectors}'}, {model}"
        )

    def published(self, model: Model, score: str) -> Figure | None:
        """Return the paper's figure, which comes without a spread."""
        if score == "r2_rows" and self.instances == self.clusters:
            # With one row for each cluster, a split over rows is one over clusters.
            score = "r2_rows_seen"
        figure = self.paper.get(model, {}).get(score)
        return None if figure is None else (figure, None)

    def cells(self) -> dict[str, str]:
        """Describe the process for the columns of a table."""
        return {
            "N": str(self.instances) if self._by_instance else "–",
            "d": str(self.dim),
            "clusters": str(self.clusters),
            "vectors": str(self.vectors),
            "p(z | v)": str(self.conditional),
            "label noise": f"{self.label_noise:g}",
            "batch": str(self.batch or "–"),
            "method": ", ".join(dict.fromkeys(_METHODS.get(m, m) for m in self.models)),
        }

    def setting(self) -> Row:
        """Return the row without number and figures."""
        return replace(self, number=0, paper={}, points=())

    def facts(self) -> dict[str, Any]:
        """Describe the process for a machine."""
        return {
            "instances": self.instances if self._by_instance else None,
            "dim": self.dim,
            "clusters": self.clusters,
            "vectors": str(self.vectors),
            "conditional": str(self.conditional),
            "label_noise": self.label_noise,
            "batch": self.batch,
        }

    @property
    def _by_instance(self) -> bool:
        return any(model in _INSTANCES for model in self.models)

    def at(self, scale: Scale) -> LabelRow:
        """Return the row as large as the scale allows."""
        if not scale.smoke:
            return self
        return replace(
            self,
            dim=min(self.dim, scale.dim),
            clusters=min(self.clusters, 20),
            instances=min(self.instances, 40),
            batch=self.batch and 256,
            laptop=Budget(steps=60, batch=256, width=32, depth=2),
        )

    def process(self, scale: Scale, model: Model, *, seed: int) -> ClusterProcess:
        """Build the generating process; each seed has its own mixing and vectors."""
        row = self.at(scale)
        sphere = Sphere(row.dim)
        instances = row.instances if model in _INSTANCES else None
        return ClusterProcess(
            row._vectors(seed),
            row.conditional.conditional(sphere),
            LeakyMixing(row.dim, seed=seed, layers=4, draws=scale.draws),
            instances=instances,
            label_noise=row.label_noise,
        )

    def theory(self, scale: Scale, model: Model, *, seed: int) -> Equivalence:
        """Say what Theorem 1 promises for a model, with reasons where it is less than all."""
        row = self.at(scale)
        setting = Setting(
            "labels",
            row._space(model),
            "vmf" if row.conditional.kind == "vmf" else str(row.conditional),
            unit_prototypes=model == "normalised",
            label_noise=0.0 if model == "corrected" else row.label_noise,
        )
        found = identified(setting, row._vectors(seed))
        if model != "infonce":
            return found
        return found.without(
            "Pairs of one class are no vMF around each other, and other samples of it are "
            "negatives; the theorem of InfoNCE promises nothing."
        )

    def warnings(self, scale: Scale, seed: int) -> tuple[str, ...]:
        """Say for which models theory promises nothing, before anything is run."""
        found = [self.theory(scale, model, seed=seed) for model in self.models]
        reasons = [reason for theory in found if theory.name == "none" for reason in theory.reasons]
        return tuple(dict.fromkeys(reasons))

    def plan(self, scale: Scale, model: Model) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe of a model."""
        row = self.at(scale)
        space, budget = row._space(model), row.laptop
        if scale.name == "paper":
            batch = row.batch or _PAPER_BATCH
            recipe = replace(
                paper_recipe(),
                steps=50_000 * max(1, row.instances // batch),
                batch=batch,
                rate=1e-3,
            )
            encoder = paper_encoder(row.dim, space, batch_norm=True)
            return encoder, row._objective(model, None), recipe
        encoder = Encoder(
            row.dim,
            space,
            hidden=(budget.width,) * budget.depth,
            activation="leaky_relu",
            # On a sphere the radius is the inverse temperature, which has to grow otherwise.
            scale=3.0 if isinstance(space, Sphere) else 1.0,
        )
        recipe = Recipe(steps=budget.steps, batch=row.batch or budget.batch, rate=budget.rate)
        return encoder, row._objective(model, budget.sampled), recipe

    def _vectors(self, seed: int) -> Any:
        marginal = self.vectors.marginal(Sphere(self.dim))
        return cluster_vectors(marginal, self.clusters, seed=_VECTORS + seed)

    def _space(self, model: Model) -> Space:
        return Sphere(self.dim) if model == "infonce" else Real(self.dim)

    def _objective(self, model: Model, sampled: Sampled) -> Objective[Any]:
        match model:
            case "free" | "normalised" | "diet":
                return InstanceDiscrimination(
                    self.instances,
                    self.dim,
                    unit_prototypes=model == "normalised",
                    sampled=sampled,
                )
            case "supervised":
                return Classification(self.clusters, self.dim, sampled=sampled)
            case "corrected":
                return Classification(self.clusters, self.dim, noise=self.label_noise)
            case "tcl":
                return TimeContrastive(self.clusters, self.dim)
            case "gcl":
                return GeneralizedContrastive(self.clusters, self.dim)
            case _:
                return InfoNCE()


_METHODS = {
    "free": "DIET",
    "normalised": "DIET",
    "diet": "DIET",
    "corrected": "supervised",
    "tcl": "TCL",
    "gcl": "GCL",
    "infonce": "InfoNCE",
}
