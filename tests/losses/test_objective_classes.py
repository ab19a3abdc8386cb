"""Objectives over pairs: defaults, groups, values and refusals."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
import torch

from demix import (
    Box,
    DemixError,
    Encoder,
    InfoNCE,
    Laplace,
    LeakyMixing,
    Pairs,
    Process,
    Uniform,
)
from demix.papers import AlignmentUniformity
from demix.papers.runner.original import LatentMSE
from dense_objectives import dense_contrast

BOX = Box(3)
PROCESS = Process(Uniform(BOX), Laplace(BOX, 0.1), LeakyMixing(3, seed=0, draws=10))


@pytest.fixture
def encoder() -> Encoder:
    generator = torch.Generator().manual_seed(0)
    return Encoder(3, BOX, hidden=(8, 8), scale=2.0).initialise(generator)


@pytest.fixture
def pairs() -> Pairs:
    return PROCESS.sample(24, generator=torch.Generator().manual_seed(1))


def gradients(loss: torch.Tensor, encoder: Encoder) -> torch.Tensor:
    return torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(encoder.parameters()))])


def test_info_nce_is_two_sided_with_the_dot_product_unless_told(
    encoder: Encoder, pairs: Pairs
) -> None:
    expected = dense_contrast(encoder(pairs.x), encoder(pairs.x_tilde), two_sided=True)
    torch.testing.assert_close(InfoNCE()(encoder, pairs), expected)


def test_groups_give_the_mean_of_their_losses(encoder: Encoder, pairs: Pairs) -> None:
    grouped = InfoNCE(1, within=8)(encoder, pairs)
    parts = [Pairs(*(side[start : start + 8] for side in pairs)) for start in (0, 8, 16)]
    losses = torch.stack([InfoNCE(1)(encoder, part) for part in parts])
    torch.testing.assert_close(grouped, losses.mean())
    torch.testing.assert_close(
        gradients(grouped, encoder), gradients(losses.mean(), encoder), rtol=1e-4, atol=1e-6
    )


@pytest.mark.parametrize("within", [24, 100, None])
def test_a_group_as_large_as_the_batch_is_no_group(
    encoder: Encoder, pairs: Pairs, within: int | None
) -> None:
    found = InfoNCE(2, within=within)(encoder, pairs)
    torch.testing.assert_close(found, InfoNCE(2)(encoder, pairs))


@pytest.mark.parametrize(
    "objective", [InfoNCE(1), InfoNCE(1, within=8), AlignmentUniformity(1), LatentMSE()], ids=repr
)
def test_a_few_steps_lower_every_objective(encoder: Encoder, objective: Any) -> None:
    pairs = PROCESS.sample(64, generator=torch.Generator().manual_seed(2))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    before = float(objective(encoder, pairs).detach())
    for _ in range(20):
        optimizer.zero_grad()
        objective(encoder, pairs).backward()
        optimizer.step()
    assert float(objective(encoder, pairs).detach()) < before - 0.01


@pytest.mark.parametrize("objective", [InfoNCE(), AlignmentUniformity(), LatentMSE()], ids=repr)
def test_objectives_are_values(objective: Any) -> None:
    assert objective == type(objective)()
    assert hash(objective) == hash(type(objective)())
    with pytest.raises((FrozenInstanceError, TypeError)):
        objective.group = None


def test_settings_that_no_loss_has_are_refused(encoder: Encoder, pairs: Pairs) -> None:
    for objective in (InfoNCE, AlignmentUniformity):
        with pytest.raises(DemixError, match="similarity must be"):
            objective(similarity="cosine")(encoder, pairs)
    with pytest.raises(DemixError, match="temperature must be positive"):
        InfoNCE(temperature=0.0)(encoder, pairs)
