"""Rows of Tables 2, 3, 5 and Figures 4 to 6: labels, and an encoder under a classifier."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LinearRegression

from demix.encoders.encoder import Encoder
from demix.losses.classification import Classification, InstanceDiscrimination, Sampled
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.reizinger2024.clusters import ClusterProcess, cluster_vectors
from demix.papers.reizinger2024.earlier_methods import GeneralizedContrastive, TimeContrastive
from demix.papers.reizinger2024.orthogonality import orthogonality_error
from demix.papers.reizinger2024.prototypes import optimum_error, prototypes_r2
from demix.papers.runner.experiment import Published
from demix.papers.runner.original import Distribution, paper_encoder, plain_adam
from demix.papers.runner.run import EVALUATED, Run, held_out, trained_facts
from demix.papers.runner.scales import Scale
from demix.papers.runner.score_rows import ScoreRow
from demix.processes.process import LeakyMixing
from demix.spaces.base import Space
from demix.spaces.kinds import Real, Sphere
from demix.theory.setting import Equivalence, Setting, identified
from demix.training.loop import Record
from demix.training.recipe import Recipe

# Seeds of the cluster vectors, apart from those of the mixing, of training and of held-out draws.
_VECTORS = 2**41
_PAPER_BATCH = 1024
_INSTANCES = ("free", "normalised", "diet")
_METHODS = {
    **dict.fromkeys(_INSTANCES, "DIET"),
    "corrected": "supervised",
    "tcl": "TCL",
    "gcl": "GCL",
    "infonce": "InfoNCE",
}
UNIFORM = Distribution("uniform")
VMF = Distribution("vmf", 10.0)


@dataclass(frozen=True)
class Budget:
    """How a row is trained at laptop scale; ``rate`` is Adam's, ``sampled`` the objective's."""

    steps: int = 8000
    batch: int = 1024
    width: int = 64
    depth: int = 4
    rate: float = 0.02
    sampled: Sampled = None


@dataclass(frozen=True)
class LabelRow(ScoreRow):
    """Latents around cluster vectors, and classifiers of their labels.

    ``"free"`` and ``"normalised"`` discriminate instances with free or unit prototypes,
    ``"corrected"`` knows the label noise, and ``"gcl"``, ``"tcl"``, ``"infonce"``, ``"diet"`` are
    the methods of the genealogy. ``batch`` is given where it is what an experiment varies.
    """

    conditional: Distribution = VMF
    dim: int = 5
    clusters: int = 100
    instances: int = 1000
    vectors: Distribution = UNIFORM
    label_noise: float = 0.0
    batch: int | None = None
    laptop: Budget = field(default_factory=Budget)

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        return (
            f"{self.conditional}, d={self.dim}, {self.clusters} clusters"
            f"{'' if self.vectors == UNIFORM else f', vectors {self.vectors}'}, {model}"
        )

    def published(self, model: str, score: str) -> Published | None:
        """Return the paper's figure, which comes without a spread."""
        if score == "r2_rows" and self.instances == self.clusters:
            # With one prototype for each cluster, a split over them is one over clusters.
            score = "r2_rows_seen"
        figure = self.paper.get(model, {}).get(score)
        return None if figure is None else (figure, None)

    def columns(self) -> dict[str, str]:
        """Describe the process for the columns of a table."""
        return {
            "N": str(self.instances) if {*self.models} & {*_INSTANCES} else "–",
            "d": str(self.dim),
            "clusters": str(self.clusters),
            "vectors": str(self.vectors),
            "p(z | v)": str(self.conditional),
            "label noise": f"{self.label_noise:g}",
            "batch": str(self.batch or "–"),
            "method": ", ".join(dict.fromkeys(_METHODS.get(m, m) for m in self.models)),
        }

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

    def process(self, scale: Scale, model: str, *, seed: int) -> ClusterProcess:
        """Build the generating process; each seed has its own mixing and vectors."""
        row = self.at(scale)
        return ClusterProcess(
            row._vectors(seed),
            row.conditional.conditional(Sphere(row.dim)),
            LeakyMixing(row.dim, seed=seed, layers=4, draws=scale.draws),
            instances=row.instances if model in _INSTANCES else None,
            label_noise=row.label_noise,
        )

    def theory(self, scale: Scale, model: str, *, seed: int) -> Equivalence:
        """Return what Theorem 1 promises for a model, with reasons where it is less than all."""
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
        """Return why theory promises nothing for some models."""
        found = [self.theory(scale, model, seed=seed) for model in self.models]
        reasons = [reason for theory in found if theory.name == "none" for reason in theory.reasons]
        return tuple(dict.fromkeys(reasons))

    def plan(self, scale: Scale, model: str) -> tuple[Encoder, Objective[Any], Recipe]:
        """Return encoder, objective and recipe of a model."""
        row = self.at(scale)
        space, budget = row._space(model), row.laptop
        if scale.name == "paper":
            batch = row.batch or _PAPER_BATCH
            steps = 50_000 * max(1, row.instances // batch)
            recipe = plain_adam(steps=steps, batch=batch, rate=1e-3)
            encoder = paper_encoder(row.dim, space, batch_norm=True)
            return encoder, row._objective(model, None), recipe
        encoder = Encoder(
            row.dim,
            space,
            hidden=(budget.width,) * budget.depth,
            activation="leaky_relu",  # the inverse of the mixing is piecewise linear, too
            # On a sphere the radius is the inverse temperature, which has to grow otherwise.
            scale=3.0 if model == "infonce" else 1.0,
        )
        recipe = Recipe(steps=budget.steps, batch=row.batch or budget.batch, rate=budget.rate)
        return encoder, row._objective(model, budget.sampled), recipe

    def _vectors(self, seed: int) -> Any:
        marginal = self.vectors.marginal(Sphere(self.dim))
        return cluster_vectors(marginal, self.clusters, seed=_VECTORS + seed)

    def _space(self, model: str) -> Space:
        return Sphere(self.dim) if model == "infonce" else Real(self.dim)

    def _objective(self, model: str, sampled: Sampled) -> Objective[Any]:
        match model:
            case "free" | "normalised" | "diet":
                unit = model == "normalised"
                return InstanceDiscrimination(
                    self.instances, self.dim, unit_prototypes=unit, sampled=sampled
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

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model; None if Ctrl-C ended it.

        ``logit_size`` is the root mean square of the centred logits, ``bayes`` the smallest
        cross-entropy, ``theory`` what Theorem 1 says; scores that cannot be known are None.
        """
        model, scale = run.model, run.scale
        # Latents and prototypes of a classifier have an optimum; GCL and InfoNCE have another loss.
        classifies, has_prototypes = model not in ("gcl", "infonce"), model != "infonce"
        kappa = self.conditional.width if self.conditional.kind == "vmf" else None
        process = self.process(scale, model, seed=run.seed)
        objective: Any
        encoder, objective, recipe = plan = run.plan(self.plan)
        generator = held_out(run.seed)
        evaluated = process.sample(EVALUATED, generator=generator)
        bayes = None
        if process.conditional.similarity.exact:  # noise projected on the sphere has no density
            bayes = -float(process.log_posterior(evaluated.z, evaluated.labels).mean())

        def evaluate(encoder: Encoder) -> Record:
            latents = encoder(evaluated.x)
            above = None
            if classifies and bayes is not None:
                above = float(objective.exact_loss(latents, evaluated.labels)) - bayes
            score = 100 * float(affine_r2(latents, evaluated.z))
            return {"score": score, "nats_above_optimum": above}

        sample = process.sample_pairs if model == "infonce" else process.sample
        training = run.train(plan, sample, evaluate)
        if training is None:
            return None
        batch = process.sample(scale.samples, generator=generator)
        with torch.no_grad():
            latents = encoder(batch.x)
        theory = self.theory(scale, model, seed=run.seed)
        prototypes: Any = objective.prototypes() if has_prototypes else None
        classes = process.classes_of_labels
        error = None
        if classifies and kappa is not None:
            some, true = latents[:EVALUATED], batch.z[:EVALUATED]
            vectors = process.vectors[classes]
            error = optimum_error(prototypes, some, vectors, true, kappa=kappa)
        return {
            "r2": float(affine_r2(latents, batch.z)),
            "mcc": float(mean_correlation(latents, batch.z)),
            **_prototype_scores(prototypes, process),
            "orthogonality": float(orthogonality_error(latents, batch.z)),
            "optimum_error": error,
            "singular_mae": None if kappa is None else _singular_mae(latents, batch.z, kappa),
            "logit_size": None if prototypes is None else _logit_size(prototypes, latents),
            **trained_facts(training, recipe),
            "nats_above_optimum": training.history[-1]["nats_above_optimum"],
            "bayes": bayes,
            "theory": {
                "case": theory.case,
                "latents": theory.name,
                "rows": theory.prototypes,
                "reasons": list(theory.reasons),
            },
        }


def _prototype_scores(
    prototypes: torch.Tensor | None, process: ClusterProcess
) -> dict[str, float | None]:
    """Return the R² of prototypes, with clusters held out and with prototypes held out."""
    found: dict[str, float | None] = {"r2_rows": None, "r2_rows_seen": None}
    if prototypes is None:
        return found
    vectors, classes = process.vectors, process.classes_of_labels
    # Few clusters leave too little to fit on once one of them is held out.
    if len(vectors) > process.space.dim + 1:
        found["r2_rows"] = float(prototypes_r2(prototypes, vectors, classes))
    if len(prototypes) > len(vectors):
        found["r2_rows_seen"] = float(affine_r2(prototypes, vectors[classes]))
    return found


def _logit_size(prototypes: torch.Tensor, latents: torch.Tensor) -> float:
    centred = prototypes.detach() - prototypes.detach().mean(dim=0)
    square = (latents @ (centred.T @ centred / len(centred)) * latents).sum(dim=1)
    return float(square.mean().sqrt())


def _singular_mae(latents: torch.Tensor, factors: torch.Tensor, kappa: float) -> float:
    linear = LinearRegression().fit(latents.numpy(), factors.numpy()).coef_
    values = np.linalg.svd(linear, compute_uv=False)
    return float(np.abs(values - 1 / kappa).mean())
