"""Noise and imbalance bend the features of a plain loss; corrections keep them straight.

All trainings are of case C1 (unit features, unit prototypes), where prototypes cannot give way in
place of the features; what is not linear is measured on fresh samples of all classes alike.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from demix import Classification, Encoder, Recipe, Sphere, affine_r2, train
from demix.papers import ClusterProcess
from demix.papers.reizinger2024.prototypes import optimum_error
from small_processes import sphere_labels

SEED, KAPPA, SPHERE = 100, 10.0, Sphere(3)
CLEAN = sphere_labels(3, seed=SEED, layers=2, draws=100)
NOISY, UNBALANCED = replace(CLEAN, label_noise=0.6), replace(CLEAN, imbalance=30.0)


def pull_on_the_truth(process: ClusterProcess, objective: Classification) -> float:
    """Return the largest expected gradient by features where they are the true latents.

    The expectation over the labels is exact: each label counts as often as the process shows it.
    """
    objective = objective.double()
    objective.weight.data = process.vectors.double()
    if objective.bias is not None:
        objective.bias.data = process.prior.log()
    z = CLEAN.sample(200, generator=torch.Generator().manual_seed(SEED)).z.double()
    features, pull = (KAPPA * z).requires_grad_(), torch.zeros_like(z)
    for label in range(len(process.vectors)):
        labels = torch.full((len(z),), label)
        chance = process.log_posterior(z, labels).exp()
        gradient = torch.autograd.grad(len(z) * objective.loss(features, labels), features)[0]
        pull += chance[:, None] * gradient
    return float(pull.norm(dim=1).max())


@pytest.mark.parametrize(
    ("process", "options"),
    [
        (CLEAN, {}),
        (NOISY, {"noise": 0.6}),
        (UNBALANCED, {"bias": True}),
    ],
    ids=["clean", "noise", "bias"],
)
def test_a_corrected_loss_leaves_the_truth_where_it_is(process: Any, options: Any) -> None:
    assert pull_on_the_truth(process, Classification(20, 3, unit_prototypes=True, **options)) < 1e-6


@pytest.mark.parametrize(
    ("process", "options"),
    [(NOISY, {}), (UNBALANCED, {})],
    ids=["noise", "imbalance"],
)
def test_any_other_loss_pulls_at_it(process: Any, options: Any) -> None:
    assert pull_on_the_truth(process, Classification(20, 3, unit_prototypes=True, **options)) > 0.1


@cache
def trained(process: ClusterProcess, correction: str = "none") -> tuple[float, float]:
    """Return the share of the latents that is not linear, and the distance to the optimum."""
    options: dict[str, Any] = {
        "none": {},
        "noise": {"noise": process.label_noise},
        "bias": {"bias": True},
    }[correction]
    torch.manual_seed(SEED)
    objective = Classification(20, 3, unit_prototypes=True, **options)
    encoder = Encoder(3, SPHERE, hidden=(32,) * 3)
    # What an imbalance does takes longer to be undone.
    steps = 400 if process is UNBALANCED else 200
    train(encoder, process.sample, objective, Recipe(steps=steps, batch=512), seed=SEED)
    fresh = CLEAN.sample(8192, generator=torch.Generator().manual_seed(2**40))
    with torch.no_grad():
        features: Tensor = encoder(fresh.x)
    error = optimum_error(objective.prototypes(), features, CLEAN.vectors, fresh.z, kappa=KAPPA)
    return 1 - affine_r2(features, fresh.z), error


def assert_straighter(found: tuple[float, float], bent: tuple[float, float]) -> None:
    # After 600 steps, four seeds left 1 to 16 percent of the first, and 6 to 44 of the second.
    assert found[0] < bent[0] / 3, "share that is not linear"
    assert found[1] < 2 * bent[1] / 3, "distance to the optimum"


@pytest.mark.slow
def test_forward_correction_undoes_known_label_noise() -> None:
    assert_straighter(trained(NOISY, "noise"), trained(NOISY))


@pytest.mark.slow
def test_a_bias_absorbs_an_imbalance() -> None:
    assert_straighter(trained(UNBALANCED, "bias"), trained(UNBALANCED))
