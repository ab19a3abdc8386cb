"""Training on labels: prototypes are trained, too, and cross-entropy finds the latents."""

from __future__ import annotations

import time

import pytest
import torch

from demix import (
    Classification,
    Encoder,
    InstanceDiscrimination,
    LeakyMixing,
    Real,
    Recipe,
    Sphere,
    Uniform,
    VonMisesFisher,
    affine_r2,
    train,
)
from demix.papers import ClusterProcess, GeneralizedContrastive, TimeContrastive, cluster_vectors
from demix.papers.reizinger2024.prototypes import optimum_error
from small_processes import sphere_labels


def trained(steps: int = 500, optimizer: str = "muon"):
    process, objective = sphere_labels(draws=50), Classification(20, 2)
    before = objective.weight.detach().clone()
    encoder = Encoder(2, Real(2), hidden=(32,) * 3, activation="leaky_relu")
    train(encoder, process.sample, objective, Recipe(steps=steps, batch=512, optimizer=optimizer))
    return process, encoder, objective, before


@pytest.mark.parametrize("optimizer", ["muon", "adam"])
def test_prototypes_are_trained_with_the_encoder(optimizer):
    _, _, objective, before = trained(steps=2, optimizer=optimizer)
    assert not torch.equal(objective.weight, before)


def test_classification_inverts_the_process_and_reaches_its_optimum():
    process, encoder, objective, _ = trained()
    batch = process.sample(8192, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        latents = encoder(batch.x)
        loss = objective.loss(latents, batch.labels)
    assert affine_r2(latents, batch.z) > 0.99
    rows = process.vectors
    assert optimum_error(objective.weight, latents, rows, batch.z, kappa=10.0) < 0.25
    best = -process.log_posterior(batch.z, batch.labels).mean()
    assert -0.01 < float(loss - best) < 0.01


def test_small_prototypes_do_not_fold_the_latents():
    """From prototypes of their final size, seeds 0 to 4 all end between 0.74 and 0.97."""
    sphere = Sphere(3)
    process = ClusterProcess(
        cluster_vectors(Uniform(sphere), 30, seed=0),
        VonMisesFisher(sphere, 10.0),
        LeakyMixing(3, seed=0, draws=1000),
    )
    encoder = Encoder(3, Real(3), activation="leaky_relu")
    train(encoder, process.sample, Classification(30, 3), Recipe(steps=300, batch=256), seed=0)
    fresh = process.sample(4000, generator=torch.Generator().manual_seed(7))
    with torch.no_grad():
        assert affine_r2(encoder(fresh.x), fresh.z) > 0.97


@pytest.mark.parametrize(
    "make",
    [
        lambda: Classification(20, 2, bias=True),
        lambda: InstanceDiscrimination(20, 2, sampled=5),
        lambda: TimeContrastive(20, 2),
        lambda: GeneralizedContrastive(20, 2),
    ],
    ids=["classification", "sampled", "tcl", "gcl"],
)
def test_the_same_seed_gives_the_same_prototypes_to_the_bit(make):
    process, tables = trained(steps=1)[0], []
    for seed in (3, 3, 4):
        torch.manual_seed(time.time_ns())  # the global generator must not matter
        objective, encoder = make(), Encoder(2, Real(2), hidden=(8,))
        train(encoder, process.sample, objective, Recipe(steps=5, batch=32), seed=seed)
        tables.append(torch.cat([p.detach().flatten() for p in objective.parameters()]))
    assert torch.equal(tables[0], tables[1])
    assert not torch.allclose(tables[0], tables[2])
