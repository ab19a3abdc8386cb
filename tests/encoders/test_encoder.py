"""Encoders land in their scaled space and start alike from one generator."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from torch import nn

from demix import Box, DemixError, Encoder, L1Ball, Product, Real, Sphere
from demix.papers.runner.original import paper_encoder

SPACES = [
    Sphere(3),
    Sphere(4, radius=2.0),
    Box(3),
    Box(2, low=[-1.0, 2.0], high=[1.0, 5.0]),
    Real(3),
    L1Ball(3, radius=0.5),
    Product([Sphere(2), Box(2)]),
    Product([Product([L1Ball(2), Real(1)]), Sphere(3)]),
]
every_space = pytest.mark.parametrize("space", SPACES, ids=repr)
every_body = pytest.mark.parametrize(
    "settings",
    [
        {"hidden": (16, 16)},
        {"hidden": (16, 8), "residual": False, "activation": "silu"},
        {"hidden": (16,), "residual": True, "activation": "leaky_relu"},
    ],
)


def observations(size: int = 50, dim: int = 4) -> torch.Tensor:
    return 5 * torch.randn((size, dim), generator=torch.Generator().manual_seed(0))


@every_space
@every_body
@pytest.mark.parametrize("scale", [1.0, 0.1, 8.0])
def test_output_lies_in_the_scaled_space(space, settings, scale):
    encoder = Encoder(4, space, scale=scale, **settings)
    encoder.initialise(torch.Generator().manual_seed(0))
    latents = encoder(observations())
    assert latents.shape == (50, space.dim)
    assert space.contains(latents / scale).all()


@pytest.mark.parametrize(
    ("space", "scaled"),
    [
        (Sphere(3), Sphere(3, radius=2.5)),
        (L1Ball(3, radius=2.0), L1Ball(3, radius=5.0)),
        (Box(2, low=[-1.0, 1.0], high=[2.0, 3.0]), Box(2, low=[-2.5, 2.5], high=[5.0, 7.5])),
        (Product([Sphere(2), Box(1)]), Product([Sphere(2, radius=2.5), Box(1, high=2.5)])),
    ],
)
def test_the_scale_sizes_the_space(space, scaled):
    encoder = Encoder(4, space, hidden=(16,), scale=2.5)
    latents = encoder(100 * observations()).detach()
    assert scaled.contains(latents).all()
    assert not space.contains(latents).all()


@every_space
def test_each_learnable_size_acts_on_its_own_dimensions(space):
    encoder = Encoder(4, space, hidden=(16,))
    assert encoder.scale.shape == (space.scale_size,)
    before = encoder(observations())
    with torch.no_grad():
        encoder.log_scale.copy_(torch.arange(1.0, space.scale_size + 1).log())
    growth = space.expand_scale(torch.arange(1.0, space.scale_size + 1))
    torch.testing.assert_close(encoder(observations()), before * growth)


@every_space
def test_the_scale_stays_positive(space):
    encoder = Encoder(4, space, hidden=(16,), scale=0.5)
    torch.testing.assert_close(encoder.scale, torch.full((space.scale_size,), 0.5))
    optimiser = torch.optim.SGD(encoder.parameters(), lr=1.0)
    for _ in range(20):
        optimiser.zero_grad()
        encoder.scale.sum().backward()
        optimiser.step()
    assert (encoder.scale > 0).all()
    assert (encoder.scale < 0.5).all()


@every_body
def test_initialisation_follows_the_generator_alone(settings):
    def start(seed: int) -> list[torch.Tensor]:
        encoder = Encoder(4, Sphere(3), **settings)
        encoder.initialise(torch.Generator().manual_seed(seed))
        return [value.clone() for value in encoder.state_dict().values()]

    first, again, other = start(0), start(0), start(1)
    assert all(map(torch.equal, first, again))
    assert not all(map(torch.equal, first, other))


@every_body
def test_initialisation_leaves_whitening_and_scale(settings):
    encoder = Encoder(4, Box(3), scale=3.0, **settings)
    encoder.whitening.fit(observations())
    kept = [encoder.whitening.mean, encoder.whitening.matrix, encoder.log_scale]
    before = [value.detach().clone() for value in kept]
    assert encoder.initialise(torch.Generator().manual_seed(0)) is encoder
    assert all(map(torch.equal, kept, before))
    biases = [layer.bias for layer in encoder.modules() if isinstance(layer, nn.Linear)]
    assert all((bias == 0).all() for bias in biases)


@pytest.mark.parametrize("activation", ["gelu", "silu", "leaky_relu"])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("depth", [1, 8])
def test_whitened_inputs_keep_their_order_of_size_through_the_body(activation, residual, depth):
    encoder = Encoder(
        20, Real(20), hidden=(64,) * depth, activation=activation, residual=residual
    ).initialise(torch.Generator().manual_seed(0))
    size = encoder(observations(500, 20) / 5).square().mean().sqrt()
    assert 0.05 < size < 4


@pytest.mark.parametrize("n", [2, 10])
def test_the_paper_encoder_has_the_widths_of_the_paper(n):
    encoder = paper_encoder(7, Sphere(n))
    linear = [layer for layer in encoder.body if isinstance(layer, nn.Linear)]
    widths = [7, 10 * n, 50 * n, 50 * n, 50 * n, 50 * n, 10 * n, n]
    assert [(f.in_features, f.out_features) for f in linear] == list(itertools.pairwise(widths))
    units = [layer for layer in encoder.body if not isinstance(layer, nn.Linear)]
    assert len(units) == 6
    assert all(isinstance(u, nn.LeakyReLU) and u.negative_slope == 0.01 for u in units)
    assert paper_encoder(7, Box(2), scale=8.0).scale.tolist() == pytest.approx([8, 8])


def test_the_default_body_is_residual():
    encoder = Encoder(4, Sphere(3), hidden=(16, 16))
    with torch.no_grad():
        for layer in encoder.body[1:-1]:
            layer.linear.weight.zero_()
            layer.linear.bias.zero_()
    x = observations()
    direct = encoder.body[-1](encoder.body[0](x))
    torch.testing.assert_close(encoder(x), Sphere(3).squash(direct))


def test_whitening_comes_before_the_body():
    encoder = Encoder(4, Real(3), hidden=(16,))
    x = observations(200)
    encoder.whitening.fit(x)
    torch.testing.assert_close(encoder(x), encoder.body(encoder.whitening(x)))


def test_every_parameter_gets_a_gradient():
    encoder = Encoder(4, Product([Sphere(3), Box(2)]), hidden=(16, 16))
    encoder(observations()).pow(3).sum().backward()
    for name, parameter in encoder.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scale": 0.0}, r"scale of an encoder must be positive, but got 0\.0"),
        ({"scale": math.nan}, "scale of an encoder must be positive, but got nan"),
        ({"activation": "relu6"}, "Unknown activation 'relu6'; known are gelu, silu, leaky_relu"),
        ({"hidden": (16, 0)}, r"up to 1000 hidden layers, but got widths \(16, 0\)"),
        ({"hidden": (16, 8)}, r"Residual layers need one width, but got \(16, 8\)"),
    ],
)
def test_a_bad_argument_is_explained(settings, message):
    with pytest.raises(DemixError, match=message):
        Encoder(4, Sphere(3), **settings)
