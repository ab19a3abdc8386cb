"""A fit starts at the best linear map, is tried from several starts, and averages its weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from demix import ContrastiveDemixer, Encoder, InfoNCE, Real, Recipe, train
from demix.estimators.assumptions import encoder_settings
from demix.estimators.sources import DrawnLabels
from small_processes import sphere_pairs

RANDOM = np.random.default_rng(0)


def slow_and_fast(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return two slow columns, and them mixed with four that are noise."""
    slow = np.zeros((rows, 2))
    for row in range(1, rows):
        slow[row] = 0.95 * slow[row - 1] + RANDOM.normal(size=2)
    both = np.column_stack([slow, 5 * RANDOM.normal(size=(rows, 4))])
    return slow, (both @ RANDOM.normal(size=(6, 6))).astype(np.float32)


def explained(latents: np.ndarray, factors: np.ndarray) -> float:
    design = np.column_stack([latents, np.ones(len(latents))])
    left = factors - design @ np.linalg.lstsq(design, factors, rcond=None)[0]
    return 1 - left.var() / factors.var()


@pytest.mark.parametrize("hidden", [(16, 16), (3, 3)])
def test_the_linear_start_is_the_slowest_directions(hidden):
    slow, x = slow_and_fast(6000)
    encoder = Encoder(6, Real(2), hidden=hidden).initialise(torch.Generator().manual_seed(0))
    rows = torch.from_numpy(x)
    encoder.whitening.fit(rows)
    before = explained(encoder(rows).detach().numpy(), slow)
    encoder.start_linear(rows[:-1], rows[1:])
    assert explained(encoder(rows).detach().numpy(), slow) > 0.99 > before + 0.1


@pytest.mark.parametrize("body", [{}, {"residual": False, "batch_norm": True}])
def test_nothing_of_a_training_is_left_after_another_start(body):
    encoder = Encoder(2, Real(2), hidden=(16, 16), **body)

    def started() -> list[torch.Tensor]:
        encoder.initialise(torch.Generator().manual_seed(0))
        return [value.clone() for value in encoder.state_dict().values()]

    first = started()
    train(encoder, sphere_pairs().sample, InfoNCE(), Recipe(steps=5, batch=32, whiten=False))
    assert all(map(torch.equal, started(), first))


def test_partners_of_labels_share_their_class_and_differ():
    labels = torch.tensor([0, 1, 0, 2, 1, 0])
    first, second = DrawnLabels(torch.arange(6.0)[:, None], labels).partners()
    pairs = [(int(a), int(b)) for a, b in zip(first, second, strict=True)]
    assert pairs == [(0, 2), (2, 5), (1, 4)]


def test_a_start_that_leads_nowhere_is_left():
    """Of three starts the one with the smallest loss is kept, and the callback counts them all."""
    _, x = slow_and_fast(1000)
    seen = []
    model = ContrastiveDemixer(2, space="real", recipe=Recipe(steps=160, batch=64))
    model.fit(x, callback=lambda step, steps, record: seen.append((step, steps)))
    # Three starts of 40 steps, and a linear map for half of the 160.
    assert {steps for _, steps in seen} == {120 + 160 + 80}
    assert seen[-1][0] >= 120 + model.n_steps_
    assert [step for step, _ in seen] == list(range(1, len(seen) + 1))


def test_a_short_fit_starts_once():
    _, x = slow_and_fast(1000)
    seen = []
    model = ContrastiveDemixer(2, space="real", recipe=Recipe(steps=10, batch=64))
    model.fit(x, callback=lambda step, steps, record: seen.append(steps))
    assert seen == [15] * 15  # with five of a linear map


def test_what_is_evaluated_and_returned_is_the_average_of_the_weights():
    process, weights, evaluated = sphere_pairs(), [], []
    encoder = Encoder(2, Real(2), hidden=(16, 16))

    def weight() -> torch.Tensor:
        return encoder.body[0].weight.detach().clone()

    train(
        encoder,
        process.sample,
        InfoNCE(),
        Recipe(steps=6, batch=32, average=0.5),
        evaluate=lambda f: evaluated.append(weight()) or {},
        eval_every=6,
        callback=lambda step, record: weights.append(weight()),
    )
    mean = weights[0]
    # The first weight is that of the first step alone: its past is the start.
    for step, now in enumerate(weights[1:], start=2):
        past = min(0.5, step / (step + 10))
        mean = past * mean + (1 - past) * now
    assert torch.equal(weight(), evaluated[-1])
    assert not torch.allclose(weight(), weights[-1], atol=1e-4)
    # The start has a weight of 1/11 in the first average, and of little later.
    assert torch.allclose(weight(), mean, atol=1e-2)


def test_large_images_have_a_convolutional_body():
    assert encoder_settings(None, Real(2), (1, 16, 16))["body"] == "compact"
    assert "body" not in encoder_settings(None, Real(2), (1, 8, 16))
    assert "body" not in encoder_settings({"components": 4}, Real(2), (1, 16, 16))
    assert "body" not in encoder_settings(None, Real(2), (6,))
