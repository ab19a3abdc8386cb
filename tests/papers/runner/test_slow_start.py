"""Slow directions and independent axes are what their definitions say."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch.nn import functional

from demix import Box, DemixError, Encoder, Normal, Real, Uniform
from demix.papers.runner.slow_start import independent_axes, slow_directions, take_over


def pairs(samples=20_000, seed=0):
    """Latents, one slower than the other, with their second harmonics, and six mixtures of them."""
    generator, reach = torch.Generator().manual_seed(seed), [1.0, 1.4]
    box = Box(2, low=[-1.0, -1.4], high=reach)
    z = Uniform(box).sample(samples, generator=generator).double()
    z_tilde = Normal(box, 0.2).sample(z, generator=generator)
    ends = torch.tensor(reach, dtype=z.dtype)
    mix = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    sides = [torch.cat([side, torch.cos(torch.pi * side / ends)], dim=1) for side in (z, z_tilde)]
    return z, *(side @ mix.T + 5 for side in sides)


def test_agrees_with_the_generalised_eigenproblem():
    _, y, y_tilde = pairs()
    y, y_tilde = y[:, :4], y_tilde[:, :4]
    mean, found = slow_directions(y, y_tilde, 4)
    one, other = (side.numpy() - mean.numpy() for side in (y, y_tilde))
    both, across = one.T @ one + other.T @ other, one.T @ other + other.T @ one
    values, vectors = scipy.linalg.eigh(across, both)
    assert np.all(np.diff(values) > 0.01)
    vectors = vectors[:, ::-1] * np.sqrt(2 * len(y))
    cosines = found.numpy() @ (both / (2 * len(y))) @ vectors
    np.testing.assert_allclose(np.abs(cosines), np.eye(4), atol=1e-3)


def test_latents_come_before_their_harmonics():
    z, y, y_tilde = pairs()
    mean, found = slow_directions(y, y_tilde, 2)
    slow = (y - mean) @ found.T
    seen = torch.linalg.lstsq(slow, z).solution
    assert ((slow @ seen - z) ** 2).mean() / z.var() < 0.02


def test_outputs_are_uncorrelated_and_of_unit_variance():
    _, y, y_tilde = pairs()
    mean, found = slow_directions(y, y_tilde, 3)
    slow = (torch.cat([y, y_tilde]) - mean) @ found.T
    torch.testing.assert_close(
        slow.T @ slow / len(slow), torch.eye(3, dtype=slow.dtype), atol=1e-2, rtol=0
    )


@pytest.mark.parametrize("sort", ["any", "with outputs that repeat"])
def test_a_linear_map_of_the_outputs_changes_nothing_but_signs(sort):
    _, y, y_tilde = pairs()
    y, y_tilde = y[:, :4], y_tilde[:, :4]
    inputs = 4 if sort == "any" else 7
    more = torch.randn(inputs, 4, generator=torch.Generator().manual_seed(1), dtype=y.dtype)
    slow = []
    for one, other in ((y, y_tilde), (y @ more.T - 3, y_tilde @ more.T - 3)):
        mean, found = slow_directions(one, other, 3)
        slow.append((one - mean) @ found.T)
    alike = functional.cosine_similarity(*slow, dim=0).abs()
    torch.testing.assert_close(alike, torch.ones_like(alike), atol=1e-3, rtol=0)


@pytest.mark.parametrize("count", [0, 5, -1])
def test_no_more_directions_than_outputs(count):
    with pytest.raises(DemixError, match=f"between 1 and the 4 outputs, but got {count}"):
        slow_directions(torch.randn(9, 4), torch.randn(9, 4), count)


def test_axes_are_a_rotation_and_turn_with_the_outputs():
    generator = torch.Generator().manual_seed(0)
    z = 12**0.5 * (torch.rand(20_000, 3, generator=generator, dtype=torch.float64) - 0.5)
    white = torch.linalg.qr(z - z.mean(0)).Q * len(z) ** 0.5
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator, dtype=torch.float64)).Q
    eye = torch.eye(3, dtype=torch.float64)
    axes = independent_axes(white @ turn.T)
    torch.testing.assert_close(axes @ axes.T, eye)
    found = (axes @ turn).abs()
    torch.testing.assert_close(found[found.argmax(0)], eye, atol=0.03, rtol=0)


def test_outputs_without_variance_stay_and_the_others_turn():
    z = 12**0.5 * (torch.rand(5000, 2, generator=torch.Generator().manual_seed(0)) - 0.5)
    turn = torch.tensor([[0.8, 0.6], [-0.6, 0.8]])
    made = torch.stack([(z @ turn.T)[:, 0], torch.zeros(5000), (z @ turn.T)[:, 1]], dim=1)
    axes = independent_axes(made)
    assert axes[1].tolist() == axes[:, 1].tolist() == [0.0, 1.0, 0.0]
    found = (axes[[0, 2]][:, [0, 2]] @ turn).abs().sort(dim=0).values
    torch.testing.assert_close(found, torch.tensor([[0.0, 0.0], [1.0, 1.0]]), atol=0.05, rtol=0)


def test_axes_that_nothing_tells_are_a_rotation_all_the_same():
    white = torch.randn(500, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    axes = independent_axes(torch.linalg.qr(white - white.mean(0)).Q * 500**0.5)
    torch.testing.assert_close(axes @ axes.T, torch.eye(8, dtype=axes.dtype))


def test_layers_are_taken_over_and_the_last_one_becomes_the_slowest_outputs():
    generator = torch.Generator().manual_seed(0)
    first = Encoder(3, Real(5), hidden=(8, 8), scale=2.0).initialise(generator)
    x = torch.randn(3000, 3, generator=generator)
    x_tilde = x + torch.tensor([0.1, 0.5, 2.0]) * torch.randn(3000, 3, generator=generator)
    first.whitening.fit(x)
    second = Encoder(3, Real(2), hidden=(8, 8), scale=3.0)
    assert take_over(second, first, x, x_tilde) is second
    for name, value in first.state_dict().items():
        if name not in ("body.3.weight", "body.3.bias", "log_scale"):
            assert torch.equal(value, second.state_dict()[name]), name
    assert second.scale.tolist() == pytest.approx([3.0])
    with torch.no_grad():
        outputs, made = (
            [encoder.body(encoder.whitening(side)) for side in (x, x_tilde)]
            for encoder in (first, second)
        )
    mean, directions = slow_directions(*outputs, 2)
    for side, wanted in zip(made, outputs, strict=True):
        torch.testing.assert_close(side, (wanted - mean) @ directions.T, rtol=1e-3, atol=1e-4)
    # A change of one is none of the other.
    first.body[0].weight.data.zero_()
    assert bool(second.body[0].weight.any())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            Encoder(3, Real(2), hidden=(16,)),
            r"with the body .*8.*, but got .*16",
        ),
        (Encoder(3, Real(1), hidden=(8,)), "between 1 and the 1 outputs, but got 2"),
    ],
)
def test_what_cannot_be_taken_over_is_explained(other, message):
    with pytest.raises(DemixError, match=message):
        take_over(Encoder(3, Real(2), hidden=(8,)), other, torch.randn(9, 3), torch.randn(9, 3))
