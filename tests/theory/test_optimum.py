"""Theorems 1 and 3 in numbers: what a matched loss tends to, and what minimises it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from demix import (
    Box,
    DemixError,
    GeneralizedNormal,
    Laplace,
    LeakyMixing,
    Normal,
    Process,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
    contrast,
)
from demix.papers import cluster_vectors
from demix.papers.reizinger2024.prototypes import optimum_error
from demix.theory.optimum import (
    is_matched,
    latent_loss,
)


def asymptotic_loss(process: Process, negatives: int) -> float:
    return process.conditional.mean_entropy() + math.log(negatives) - process.space.log_volume


def process_of(conditional: Any, marginal: Any = None) -> Process:
    space = conditional.space
    mixing = LeakyMixing(space.dim, seed=0, draws=10)
    return Process(marginal or Uniform(space), conditional, mixing)


MATCHED = [
    (VonMisesFisher(Sphere(2), 4.0), "dot"),
    (VonMisesFisher(Sphere(3), 5.0), "dot"),
    (Laplace(Box(1), 0.1), 1),
    (Laplace(Box(2, low=[-1, 0], high=[1, 0.5]), 0.2), 1),
    (Normal(Box(1), 0.1), 2),
    (GeneralizedNormal(Box(2), 3, 0.3), 3),
]
matched = pytest.mark.parametrize(("conditional", "similarity"), MATCHED, ids=repr)


@matched
def test_the_optimum_is_the_entropy_of_the_conditional(conditional: Any, similarity: Any) -> None:
    process = process_of(conditional)
    pairs = process.sample(200_000, generator=torch.Generator().manual_seed(0))
    log_prob = conditional.log_prob(pairs.z_tilde.double(), pairs.z.double())
    error = float(log_prob.std()) / math.sqrt(len(log_prob))
    assert process.conditional.mean_entropy() == pytest.approx(
        float(-log_prob.mean()), abs=4 * error
    )


@matched
def test_the_loss_of_the_true_latents_tends_to_the_optimum(
    conditional: Any, similarity: Any
) -> None:
    process = process_of(conditional)
    generator = torch.Generator().manual_seed(1)
    pairs = process.sample(8192, generator=generator)
    temperature = 1 / conditional.similarity.rate
    # The same pairs every time. What they happen to cost beyond their mean is known: leave it out.
    luck = -conditional.log_prob(pairs.z_tilde, pairs.z).mean() - process.conditional.mean_entropy()
    errors = []
    for queries, negatives in [(8, 8), (16, 240), (32, 4064)]:
        losses = []
        for z, z_tilde in zip(pairs.z.split(queries), pairs.z_tilde.split(queries), strict=True):
            # Eqs. 1 and 6: the negatives are draws from p(z). Other positives, which on a box
            # keep away from its edges, become few among them.
            others = process.marginal.sample(negatives, generator=generator)
            keys = torch.cat([z_tilde, others])
            losses.append(contrast(z, keys, similarity=similarity, temperature=temperature))
        normalised = float(torch.stack(losses).mean()) - math.log(queries + negatives - 1)
        normalised += process.space.log_volume - float(luck)
        errors.append(abs(normalised - process.conditional.mean_entropy()))
    assert errors[0] > 2 * errors[1] > 2 * errors[2], errors
    assert errors[2] < 0.02


@matched
def test_asymptotic_loss_undoes_the_normalisation(conditional: Any, similarity: Any) -> None:
    process = process_of(conditional)
    loss = asymptotic_loss(process, 511)
    normalised = loss - math.log(511) + process.space.log_volume
    assert normalised == pytest.approx(process.conditional.mean_entropy())


@pytest.mark.parametrize("dim", [2, 3])
def test_on_a_sphere_latent_loss_itself_tends_to_the_asymptotic_loss(dim: int) -> None:
    process = process_of(VonMisesFisher(Sphere(dim), 5.0))
    generator = torch.Generator().manual_seed(0)
    batches = [process.sample(2048, generator=generator) for _ in range(8)]
    loss = torch.stack([latent_loss(process, pairs, "dot") for pairs in batches]).mean()
    assert float(loss) == pytest.approx(asymptotic_loss(process, 2047), abs=0.02)


PERTURBATIONS = {
    "smaller": lambda z, noise: 0.7 * z,
    "larger": lambda z, noise: 1.4 * z,
    "stretched": lambda z, noise: z * torch.linspace(1.0, 2.0, z.shape[1]),
    "noisy": lambda z, noise: z + 0.05 * noise,
    "warped": lambda z, noise: z + 0.5 * (z + 0.5).square(),
    "collapsed": lambda z, noise: 0 * z,
    "fewer": lambda z, noise: z[:, :-1],
}


@pytest.mark.parametrize("perturb", PERTURBATIONS.values(), ids=PERTURBATIONS.keys())
@pytest.mark.parametrize(
    ("conditional", "similarity"),
    [(VonMisesFisher(Sphere(3), 5.0), "dot"), (Laplace(Box(2), 0.1), 1), (Normal(Box(2), 0.1), 2)],
    ids=repr,
)
def test_no_other_representation_has_a_smaller_loss_than_the_true_latents(
    conditional: Any, similarity: Any, perturb: Any
) -> None:
    process = process_of(conditional)
    generator = torch.Generator().manual_seed(0)
    pairs = process.sample(2048, generator=generator)
    noise = torch.randn((2, *pairs.z.shape), generator=generator)
    other = pairs._replace(z=perturb(pairs.z, noise[0]), z_tilde=perturb(pairs.z_tilde, noise[1]))
    least = latent_loss(process, pairs, similarity)
    assert latent_loss(process, other, similarity) > least + 0.01


def test_latent_loss_does_not_see_what_the_theorem_leaves_open() -> None:
    generator = torch.Generator().manual_seed(0)
    sphere = process_of(VonMisesFisher(Sphere(3), 5.0))
    pairs = sphere.sample(512, generator=generator)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    turned = pairs._replace(z=pairs.z @ turn, z_tilde=pairs.z_tilde @ turn)
    assert torch.allclose(latent_loss(sphere, turned, "dot"), latent_loss(sphere, pairs, "dot"))
    box = process_of(Laplace(Box(2), 0.1))
    pairs = box.sample(512, generator=generator)
    flipped = pairs._replace(z=1 - pairs.z.flip(1), z_tilde=1 - pairs.z_tilde.flip(1))
    assert torch.allclose(latent_loss(box, flipped, 1), latent_loss(box, pairs, 1))


BOX, SPHERE = Box(2), Sphere(3)
TRUTH = [
    (process_of(VonMisesFisher(SPHERE, 5.0)), {"dot"}),
    (process_of(Laplace(BOX, 0.1)), {1}),
    (process_of(Normal(BOX, 0.1)), {2}),
    (process_of(GeneralizedNormal(BOX, 3, 0.1)), {3}),
    # Noise projected on the sphere only resembles a von Mises-Fisher density.
    (process_of(Normal(SPHERE, 0.1)), set()),
    (process_of(Laplace(SPHERE, 0.1)), set()),
    # Marginals that are not uniform.
    (process_of(VonMisesFisher(SPHERE, 5.0), VonMisesFisher(SPHERE, 1.0).at()), set()),
    (process_of(Laplace(BOX, 0.1), Normal(BOX, 1.0).at()), set()),
    (process_of(Laplace(Real(2), 0.1), Normal(Real(2), 1.0).at()), set()),
]


@pytest.mark.parametrize(
    ("process", "kinds"), TRUTH, ids=[f"{p.marginal} {p.conditional}" for p, _ in TRUTH]
)
def test_a_process_is_matched_by_its_own_similarity_only(process: Process, kinds: set[Any]) -> None:
    assert {kind for kind in ["dot", 1, 1.5, 2, 3, 4.2] if is_matched(process, kind)} == kinds


def test_where_no_optimum_is_known_none_is_given() -> None:
    box = process_of(Laplace(BOX, 0.1))
    with pytest.raises(DemixError, match=r"No optimum is known for .*Laplace.* similarity 2"):
        latent_loss(box, box.sample(8), 2)
    with pytest.raises(DemixError, match="entropy is not known"):
        Normal(SPHERE, 0.1).mean_entropy()


def vectors(count: int) -> torch.Tensor:
    return cluster_vectors(Uniform(Sphere(5)), count, seed=0)


def test_the_identity_holds_for_every_linear_map_and_shift() -> None:
    generator = torch.Generator().manual_seed(0)
    v = vectors(9).double()
    z, a, shift = (
        2 * torch.rand(shape, dtype=torch.float64, generator=generator) - 1
        for shape in ((50, 5), (5, 5), (5,))
    )
    prototypes = v @ torch.linalg.inv(a) + shift
    assert optimum_error(prototypes, 7 * z @ a.T, v, z, kappa=7.0) < 1e-10
    assert optimum_error(prototypes, 6 * z @ a.T, v, z, kappa=7.0) == pytest.approx(1 / 7)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DemixError, match="cluster vector each"):
        optimum_error(vectors(9), vectors(9), vectors(8), vectors(9), kappa=1.0)
