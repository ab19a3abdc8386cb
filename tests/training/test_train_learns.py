"""Training finds the factors, and tells how far it is from the optimum."""

from __future__ import annotations

import pytest
import torch

from demix import (
    Box,
    Encoder,
    GeneralizedNormal,
    InfoNCE,
    LeakyMixing,
    Process,
    Recipe,
    Uniform,
    affine_r2,
    contrast,
    mean_correlation,
    train,
)
from demix.papers import AlignmentUniformity
from demix.papers.runner.original import LatentMSE, plain_adam
from demix.theory.optimum import latent_loss
from small_processes import sphere_pairs

RECIPE = Recipe(steps=150, batch=256)


def encoder_for(space, scale: float) -> Encoder:
    return Encoder(space.dim, space, hidden=(32, 32, 32), scale=scale)


def recovered(encoder, process):
    """Return latents and factors of fresh samples."""
    fresh = process.sample(4000, generator=torch.Generator().manual_seed(2**40))
    with torch.no_grad():
        return encoder(fresh.x), fresh.z


@pytest.fixture(scope="module")
def sphere_process():
    return sphere_pairs(3, seed=1, draws=100)


def test_the_loss_falls_and_a_sphere_is_recovered_up_to_an_affine_map(sphere_process):
    encoder = encoder_for(sphere_process.space, 3.0)
    training = train(encoder, sphere_process.sample, InfoNCE(), RECIPE, seed=101)
    losses = [record["loss"] for record in training.history]
    assert losses[-1] < losses[0] - 0.2
    assert affine_r2(*recovered(encoder, sphere_process)) > 0.95


def test_the_papers_kind_of_training_learns_too(sphere_process):
    encoder = encoder_for(sphere_process.space, 1.0)
    encoder.initialise(torch.Generator().manual_seed(0))
    recipe = plain_adam(steps=200, batch=256, rate=1e-2)
    train(encoder, sphere_process.sample, LatentMSE(), recipe)
    assert affine_r2(*recovered(encoder, sphere_process)) > 0.95


def test_a_box_is_recovered_up_to_order_and_sign():
    box = Box(2)
    process = Process(
        Uniform(box), GeneralizedNormal(box, 3, 0.05), LeakyMixing(2, seed=0, draws=100)
    )
    encoder = encoder_for(box, 8.0)
    train(encoder, process.sample, AlignmentUniformity(3), RECIPE)
    assert mean_correlation(*recovered(encoder, process)) > 0.95


def test_the_gap_to_the_optimum_of_a_matched_process_closes_from_above(circle):
    pairs = circle.sample(1024, generator=torch.Generator().manual_seed(2**40))
    best = latent_loss(circle, pairs, "dot")

    def evaluate(encoder):
        found = contrast(encoder(pairs.x), encoder(pairs.x_tilde), two_sided=True)
        return {"gap": float(found - best)}

    encoder = encoder_for(circle.space, 3.0)
    training = train(
        encoder, circle.sample, InfoNCE(), RECIPE, evaluate=evaluate, eval_every=RECIPE.steps // 10
    )
    gaps = [record["gap"] for record in training.history]
    assert gaps[0] > 0.05
    assert gaps[-1] < 0.03
    assert min(gaps) > -0.01


def test_without_initialise_and_whiten_the_encoder_starts_as_it_was_given(tiny):
    encoder = tiny["encoder"]
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.fill_(0.5)
    whitening = {name: value.clone() for name, value in encoder.whitening.state_dict().items()}
    recipe = Recipe(steps=1, batch=8, optimizer="adam", rate=1e-9, whiten=False, initialise=False)
    train(**tiny | {"recipe": recipe})
    for name, value in encoder.whitening.state_dict().items():
        assert torch.equal(value, whitening[name])
    for parameter in encoder.parameters():
        torch.testing.assert_close(parameter, torch.full_like(parameter, 0.5))
