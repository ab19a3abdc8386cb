"""Rows of Tables 1 and 2: positive pairs of a known process, and encoders that contrast them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from scipy import integrate

from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.contrast import contrast
from demix.losses.objective import Objective
from demix.losses.pairs import InfoNCE, PotentialInfoNCE
from demix.losses.similarities import SimilarityName
from demix.metrics.regression import affine_r2, mean_correlation
from demix.papers.pages.curves import concentration_curve
from demix.papers.runner.experiment import Experiment, Published, Results, Shown
from demix.papers.runner.original import Distribution, LatentMSE, paper_encoder, plain_adam
from demix.papers.runner.run import EVALUATED, UNTRAINED, Run, held_out, trained_facts
from demix.papers.runner.scales import Scale, scale_named
from demix.papers.runner.score_rows import ScoreRow
from demix.papers.zimmermann2021.alignment import AlignmentUniformity, AnchorInfoNCE, PotentialLimit
from demix.papers.zimmermann2021.log_det import LogDet
from demix.processes.process import LeakyMixing, Pairs, Process
from demix.report.blocks import Figure
from demix.spaces.kinds import Sphere, space_named
from demix.theory.optimum import is_matched, latent_loss
from demix.training.loop import Record
from demix.training.recipe import Recipe

ANY = "any-marginal"
"""The model with a learnt potential."""
SPACES = {"sphere": "Sphere", "box": "Box", "real": "Unbounded"}
_BATCHES, _CONTRAST = 4, 1024
_SCORES = {"r2": affine_r2, "mcc": mean_correlation}


@dataclass(frozen=True)
class Laptop:
    """How a row is trained at laptop scale; ``scale`` is where the size of the space starts."""

    scale: float
    steps: int = 3000
    batch: int = 1024
    within: int | None = None


@dataclass(frozen=True)
class PairRow(ScoreRow):
    """A process of pairs and a model of it: ``"unsupervised"``, ``"supervised"``, ``"identity"``.

    Pairs of ``narrow`` noise carry more information than a batch can tell apart, and InfoNCE
    saturates. The limit :class:`LogDet` takes its place, on a sphere, where it has no volume,
    :class:`AlignmentUniformity`.
    """

    space: Literal["sphere", "box", "real"]
    marginal: Distribution
    conditional: Distribution
    model_space: Literal["sphere", "box", "real"]
    similarity: SimilarityName
    laptop: Laptop
    narrow: bool = False
    matched: bool = False
    main: ClassVar[tuple[str, ...]] = ("unsupervised",)

    def label(self, model: str) -> str:
        """Name the row in a few words, for a figure."""
        return (
            f"{SPACES[self.space]}, {self.conditional} → {SPACES[self.model_space]}, "
            f"{assumed(self.similarity)}"
        )

    def published(self, model: str, score: str) -> Published | None:
        """Return the paper's figure; it gives one score."""
        return self.paper.get(model)

    def columns(self) -> dict[str, str]:
        """Describe process and model for the columns of a table."""
        process = f"{SPACES[self.space]}: {self.marginal}, {self.conditional}"
        model = model_columns(self.model_space, self.similarity, self.matched)
        names = {"InfoNCE": "InfoNCE", "AlignmentUniformity": "limit", "LogDet": "log-det"}
        return {"process": process, **model, "objective": names[type(self.objective()).__name__]}

    def objective(self) -> InfoNCE | AlignmentUniformity | LogDet:
        """Return the objective at laptop scale."""
        if not self.narrow:
            return InfoNCE(self.similarity, within=self.laptop.within)
        if self.model_space == "sphere":
            return AlignmentUniformity(self.similarity)
        return LogDet(self.similarity)

    def process(self, dim: int, *, seed: int, draws: int) -> Process:
        """Build the generating process with ``dim`` latents; each seed has its own mixing."""
        space = space_named(self.space, dim)
        return Process(
            self.marginal.marginal(space),
            self.conditional.conditional(space),
            LeakyMixing(dim, seed=seed, draws=draws),
        )

    def plan(self, scale: Scale, model: str) -> tuple[Encoder, Objective[Pairs], Recipe]:
        """Return encoder, objective and recipe of a trained model."""
        supervised, paper = model == "supervised", scale.name == "paper"
        space = space_named(self.model_space, scale.dim)
        objective: Objective[Pairs]
        if supervised:
            objective = LatentMSE()
        elif paper and model != ANY:
            objective = AnchorInfoNCE(self.similarity, itself=True)
        elif model == ANY:
            kind = PotentialLimit if self.narrow else PotentialInfoNCE
            objective = kind(scale.dim, similarity=self.similarity)
        else:
            objective = self.objective()
        if paper:
            steps = 100_000 if supervised else 300_000
            recipe = plain_adam(steps=steps, batch=6144, rate=1e-4)
            return paper_encoder(scale.dim, space), objective, recipe
        if supervised:
            # The true latents have unit size, so nothing has to grow.
            encoder, recipe = Encoder(scale.dim, space), Recipe(steps=2000)
        else:
            encoder = Encoder(scale.dim, space, scale=self.laptop.scale)
            recipe = Recipe(steps=self.laptop.steps, batch=self.laptop.batch)
        if scale.smoke:
            recipe = replace(recipe, steps=60, batch=256)
        return encoder, objective, recipe

    def run(self, run: Run) -> dict[str, Any] | None:
        """Train and score one model on fresh samples; None if Ctrl-C ended it."""
        process = self.process(run.scale.dim, seed=run.seed, draws=run.scale.draws)
        generator = held_out(run.seed)
        if run.model == "identity":
            pairs = process.sample(run.scale.samples, generator=generator)
            return latent_scores(pairs.x, pairs.z) | UNTRAINED
        encoder, objective, recipe = plan = run.plan(self.plan)
        evaluated = process.sample(EVALUATED, generator=generator)

        def evaluate(encoder: Encoder) -> Record:
            value = float(_SCORES[run.score](encoder(evaluated.x), evaluated.z))
            return {"score": 100 * value, "nats_above_optimum": above(encoder)}

        def above(encoder: Encoder) -> float | None:
            if run.model == "supervised":
                return None
            return nats_above_optimum(process, self.similarity, encoder)

        training = run.train(plan, process.sample, evaluate)
        if training is None:
            return None
        pairs = process.sample(run.scale.samples, generator=generator)
        with torch.no_grad():
            latents = encoder(pairs.x)
        return {
            **latent_scores(latents, pairs.z),
            **trained_facts(training, recipe),
            "nats_above_optimum": above(encoder),
            "objective": repr(objective),
        }


@dataclass(frozen=True)
class AnyMarginalRow(PairRow):
    """A row whose marginal is not uniform, and a model that assumes nothing of it."""

    main = (ANY,)

    def columns(self) -> dict[str, str]:
        """Describe process and model for the columns of a table."""
        found = super().columns()
        return found | {"objective": f"{found['objective']} with a potential"}


@dataclass(frozen=True)
class ConcentrationRow(PairRow):
    """A point of the marginal figure: a vMF marginal, more and more concentrated."""

    main = ("unsupervised", ANY)

    @classmethod
    def figure(cls, experiment: Experiment, results: Results[Self], folder: Path) -> Shown:
        """Draw score and distance from uniform against the concentration of the marginal."""
        points = []
        for row, by_model in results:
            (first, *_), kappa = (r for r in by_model.values() if r), row.marginal.width
            sphere = Sphere(scale_named(first[0]["scale"]).dim)
            means = {
                name: 100 * np.mean([record["r2"] for record in by_model[model]])
                for name, model in zip(("score", "any"), row.main, strict=True)
                if by_model[model]
            }
            apart = mass_difference(VonMisesFisher(sphere, kappa)) if kappa else 0.0
            points.append({"kappa": kappa, "difference": apart, **means})
        return Figure(
            concentration_curve(points, results[-1][0].conditional.width),
            "Score against the concentration of the marginal, for a model that assumes a uniform "
            "one and for one that assumes nothing of it, and the probability mass by which the "
            "marginal differs from uniform. Dotted: the concentration of the conditional.",
            alt="Score and mass difference against the concentration of the marginal.",
        )


@torch.no_grad()
def nats_above_optimum(
    process: Process, similarity: SimilarityName, encoder: Encoder
) -> float | None:
    """Return the InfoNCE of ``encoder`` less that of the latents; None if that is no optimum."""
    if not is_matched(process, similarity):
        return None
    generator = held_out(0, part=2)
    gaps = []
    for _ in range(_BATCHES):
        pairs = process.sample(_CONTRAST, generator=generator)
        found = contrast(
            encoder(pairs.x), encoder(pairs.x_tilde), similarity=similarity, two_sided=True
        )
        gaps.append(float(found - latent_loss(process, pairs, similarity)))
    return float(np.mean(gaps))


def mass_difference(vmf: VonMisesFisher) -> float:
    r"""Return :math:`\frac12 \int |p(z) - |Z|^{-1}| dz`, the mass that differs from uniform."""
    dim, kappa, volume = vmf.space.dim, vmf.kappa, vmf.space.log_volume
    offset = vmf.log_normaliser - volume
    ring = math.exp(Sphere(dim - 1).log_volume - volume) if dim > 2 else 1 / math.pi

    def excess(angle: float) -> float:
        relative = math.exp(kappa * math.cos(angle) - offset)
        return max(relative - 1, 0.0) * ring * math.sin(angle) ** (dim - 2)

    # The density passes the uniform one at a single angle; all excess lies before it.
    last = math.acos(max(-1.0, offset / kappa))
    return float(integrate.quad(excess, 0, last, epsabs=1e-10)[0])


def assumed(similarity: SimilarityName) -> str:
    """Return the conditional that a similarity assumes, in the paper's words."""
    if similarity == "dot":
        return "vMF"
    return {1: "Laplace", 2: "Normal"}.get(int(similarity), f"GenNorm(β={similarity:g})")


def model_columns(space: str, similarity: SimilarityName, matched: bool) -> dict[str, str]:
    """Describe a contrastive model for the columns of a table."""
    model = f"{SPACES[space]}: {assumed(similarity)}"
    return {"model": model, "matched": "yes" if matched else "no"}


def latent_scores(latents: Any, factors: Any) -> dict[str, float]:
    """Return all scores of latents."""
    return {name: float(measure(latents, factors)) for name, measure in _SCORES.items()}
