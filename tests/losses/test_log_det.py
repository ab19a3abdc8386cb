"""The limit for narrow noise: its definition, its gradients, and what it does not take."""

from __future__ import annotations

import math

import pytest
import torch

from demix import (
    Box,
    DemixError,
    Encoder,
    LeakyMixing,
    Normal,
    Pairs,
    Process,
    Real,
    Recipe,
    Sphere,
    Uniform,
    mean_correlation,
    train,
)
from demix._support.process_group.sharding import Sharding
from demix.papers import LogDet
from demix.papers.zimmermann2021.log_det import oriented
from dense_objectives import assert_same, uniform

X = uniform(0, 12, 3)
PAIRS = Pairs(X, X, X, X + 0.1 * uniform(1, 12, 3))


def dense(encoder: Encoder, p: float) -> torch.Tensor:
    """The negative log-likelihood, row by row, up to constants; walls by numerical integrals."""
    losses, space = [], encoder.space
    grid = torch.linspace(0, 1, 4001, dtype=torch.float64)
    for x, x_tilde in zip(PAIRS.x, PAIRS.x_tilde, strict=True):
        z, z_tilde = encoder(x[None])[0], encoder(x_tilde[None])[0]
        jacobian = torch.autograd.functional.jacobian(
            lambda row: encoder(row[None])[0], x, create_graph=True
        )
        volume = jacobian.det().abs().log()
        loss = (z - z_tilde).abs().pow(p).sum() - volume
        if space.bounded:
            sides = encoder.scale.expand(space.dim)
            for place, side in zip(z, sides, strict=True):
                inside = torch.trapezoid((-(place - side * grid).abs().pow(p)).exp(), grid) * side
                loss = loss + (inside / math.gamma(1 + 1 / p)).log()
            loss = loss + sides.log().sum() - volume
        losses.append(loss)
    return torch.stack(losses).mean()


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("space", [Real(3), Box(3)], ids=repr)
def test_value_and_gradients_equal_the_dense_definition(p, space):
    torch.manual_seed(0)
    encoder = Encoder(3, space, hidden=(8, 8), scale=2.0).double().initialise()
    found, expected = LogDet(p)(encoder, PAIRS), dense(encoder, p)
    weights = list(encoder.parameters())
    assert_same(found.detach(), expected.detach(), 1e-5 if space.bounded else 1e-9)
    for own, wanted in zip(
        torch.autograd.grad(found, weights, allow_unused=True),
        torch.autograd.grad(expected, weights, allow_unused=True),
        strict=True,
    ):
        assert (own is None) == (wanted is None)
        if own is not None:
            assert_same(own, wanted, 1e-4 if space.bounded else 1e-9)


def test_a_larger_space_costs_what_its_noise_gains():
    r"""Of latents times c the loss is :math:`c^p E \delta - n \log c`, and a constant."""
    encoders = [Encoder(3, Real(3), hidden=(8, 8), scale=c).double() for c in (1.0, 2.0)]
    encoders[1].body.load_state_dict(encoders[0].body.state_dict())
    near = (encoders[0](PAIRS.x) - encoders[0](PAIRS.x_tilde)).square().sum(dim=1).mean()
    first, second = (LogDet(2)(encoder, PAIRS) for encoder in encoders)
    assert_same((second - first).detach(), (3 * near - 3 * math.log(2)).detach(), 1e-6)


def test_a_fold_is_pushed_out():
    """Of a map with another sign than most, the loss has the slope that takes it to zero."""
    slope = torch.tensor(-0.5, dtype=torch.float64, requires_grad=True)
    volume = torch.stack([torch.zeros_like(slope), torch.zeros_like(slope), slope.abs().log()])
    sign = torch.tensor([1.0, 1.0, -1.0], dtype=torch.float64)
    folded = -oriented(sign, volume, Sharding((3,))).mean()
    (pushed,) = torch.autograd.grad(folded, slope, retain_graph=True)
    (pulled,) = torch.autograd.grad(-volume.mean(), slope)
    assert pushed < 0 < pulled


def test_training_unfolds_a_start_that_folds():
    torch.manual_seed(0)
    encoder = Encoder(1, Real(1), hidden=(16, 16), scale=5.0)

    def sample(size, *, generator):
        z = 2 * torch.rand((size, 1), generator=generator) - 1
        return Pairs(z, z, z, z + 0.05 * torch.randn((size, 1), generator=generator))

    x = torch.linspace(-1, 1, 500)[:, None]
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        (encoder(x) - 5 * (x - 0.5).square()).square().mean().backward()
        optimizer.step()
    share = float((encoder(x).diff(dim=0) > 0).float().mean())
    assert 0.15 < share < 0.35  # of the line rises, the rest falls
    recipe = Recipe(steps=200, batch=128, initialise=False, whiten=False)
    train(encoder, sample, LogDet(2, jacobians=64), recipe)
    assert bool((encoder(x).diff(dim=0) < 0).all())


def test_walls_tell_the_axes():
    """Normal noise is alike in all directions; only the walls of a box have any."""
    box = Box(2)
    process = Process(Uniform(box), Normal(box, 0.05), LeakyMixing(2, seed=0, draws=100))
    encoder = Encoder(2, box, hidden=(32, 32), scale=8.0)
    train(encoder, process.sample, LogDet(2, jacobians=64), Recipe(steps=600, batch=128))
    fresh = process.sample(4000, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert mean_correlation(encoder(fresh.x), fresh.z) > 0.99


def test_it_takes_as_many_inputs_as_latents_and_no_sphere():
    for encoder in (Encoder(4, Real(3)), Encoder(3, Sphere(3))):
        x = torch.zeros(5, encoder.settings["dim_in"])
        with pytest.raises(DemixError, match="as many inputs as latents, in a box or without"):
            LogDet(2)(encoder, Pairs(x, x, x, x))
    with pytest.raises(DemixError, match="takes a distance, a number p"):
        LogDet("dot")
