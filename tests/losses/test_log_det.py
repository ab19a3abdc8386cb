"""The limit for narrow noise: its definition, its gradients, and what it does not take."""

from __future__ import annotations

import math

import pytest
import torch

from demix import Box, DemixError, Encoder, Pairs, Real, Sphere
from demix.papers import LogDet
from dense_objectives import assert_same, uniform

X = uniform(0, 12, 3)
PAIRS = Pairs(X, X, X, X + 0.1 * uniform(1, 12, 3))


def dense(encoder: Encoder, p: float) -> torch.Tensor:
    """Theorem 3's limit, row by row."""
    losses = []
    for x, x_tilde in zip(PAIRS.x, PAIRS.x_tilde, strict=True):
        near = (encoder(x[None]) - encoder(x_tilde[None])).abs().pow(p).sum()
        jacobian = torch.autograd.functional.jacobian(
            lambda row: encoder(row[None])[0], x, create_graph=True
        )
        losses.append(near - jacobian.det().abs().log())
    return torch.stack(losses).mean()


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("space", [Real(3), Box(3)], ids=repr)
def test_value_and_gradients_equal_the_dense_definition(p, space):
    torch.manual_seed(0)
    encoder = Encoder(3, space, hidden=(8, 8), scale=2.0).double().initialise()
    found, expected = LogDet(p)(encoder, PAIRS), dense(encoder, p)
    weights = list(encoder.parameters())
    assert_same(found.detach(), expected.detach(), 1e-9)
    for own, wanted in zip(
        torch.autograd.grad(found, weights, allow_unused=True),
        torch.autograd.grad(expected, weights, allow_unused=True),
        strict=True,
    ):
        assert (own is None) == (wanted is None)
        if own is not None:
            assert_same(own, wanted, 1e-9)


def test_a_larger_space_costs_what_its_noise_gains():
    r"""Of latents times c the loss is :math:`c^p E \delta - n \log c`, and a constant."""
    encoders = [Encoder(3, Real(3), hidden=(8, 8), scale=c).double() for c in (1.0, 2.0)]
    encoders[1].body.load_state_dict(encoders[0].body.state_dict())
    near = (encoders[0](PAIRS.x) - encoders[0](PAIRS.x_tilde)).square().sum(dim=1).mean()
    first, second = (LogDet(2)(encoder, PAIRS) for encoder in encoders)
    assert_same((second - first).detach(), (3 * near - 3 * math.log(2)).detach(), 1e-6)


def test_it_takes_as_many_inputs_as_latents_and_no_sphere():
    for encoder in (Encoder(4, Real(3)), Encoder(3, Sphere(3))):
        x = torch.zeros(5, encoder.settings["dim_in"])
        with pytest.raises(DemixError, match="as many inputs as latents, and no sphere"):
            LogDet(2)(encoder, Pairs(x, x, x, x))
    with pytest.raises(DemixError, match="takes a distance, a number p"):
        LogDet("dot")
