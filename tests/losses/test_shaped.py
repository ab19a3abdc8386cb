"""InfoNCE with a learnt conditional: the dense definition, its gradients, and InfoNCE inside it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from demix import DemixError, Encoder, InfoNCE, Pairs, Real, ShapedInfoNCE
from dense_objectives import dense_contrast, uniform

pytestmark = pytest.mark.usefixtures("engine")

DIM = 3
Z, NEAR = uniform(0, 40, DIM), uniform(1, 40, DIM)
PAIRS = Pairs(Z, Z + 0.3 * NEAR, Z, Z + 0.3 * NEAR)
SCALES = torch.tensor([0.4, 1.0, 2.5], dtype=torch.float64)


class Identity(Encoder):
    """Latents are the observations, which may want a gradient."""

    def forward(self, x):
        return x


ENCODER = Identity(DIM, Real(DIM), hidden=(4,))


def shaped(shape: float, *, learn_shape: bool) -> ShapedInfoNCE:
    objective = ShapedInfoNCE(DIM, shape=shape, learn_shape=learn_shape).double()
    with torch.no_grad():
        objective.log_scales.copy_(SCALES.log())
    return objective


def with_gradients(loss, objective, x) -> list[torch.Tensor]:
    return [loss, *torch.autograd.grad(loss, [x, *objective.parameters()])]


@pytest.mark.parametrize("learn_shape", [False, True])
@pytest.mark.parametrize("shape", [1.0, 2.0, 3.0])
def test_unit_scales_give_info_nce(shape, learn_shape):
    if learn_shape and shape == 1:
        shape = 1.25  # a shape that is learnt starts inside its range
    objective = ShapedInfoNCE(DIM, shape=shape, learn_shape=learn_shape).double()
    plain = InfoNCE(shape)
    torch.testing.assert_close(objective(ENCODER, PAIRS), plain(ENCODER, PAIRS))
    torch.testing.assert_close(
        objective.log_probabilities(ENCODER, PAIRS), plain.log_probabilities(ENCODER, PAIRS)
    )


@pytest.mark.parametrize("learn_shape", [False, True])
@pytest.mark.parametrize("shape", [1.3, 2.0, 3.0])
def test_it_is_the_dense_definition_with_all_gradients(shape, learn_shape):
    objective = shaped(shape, learn_shape=learn_shape)
    x = Z.clone().requires_grad_()
    pairs = Pairs(x, PAIRS.x_tilde, x, PAIRS.x_tilde)
    came = with_gradients(objective(ENCODER, pairs), objective, x)
    scales = objective.log_scales.exp()
    p = 1 + nn.functional.softplus(objective.raw_shape) if learn_shape else shape
    dense = dense_contrast(x / scales, pairs.x_tilde / scales, similarity=p, two_sided=True)
    expected = with_gradients(dense, objective, x)
    assert len(came) == (4 if learn_shape else 3)
    for one, other in zip(came, expected, strict=True):
        torch.testing.assert_close(one, other)
        assert one.abs().max() > 1e-3


def test_the_gradients_are_those_of_finite_differences():
    objective = shaped(1.7, learn_shape=True)
    names = [name for name, _ in objective.named_parameters()]

    def loss(*values):
        given = dict(zip(names, values, strict=True))
        return torch.func.functional_call(objective, given, (ENCODER, PAIRS))

    values = [value.detach().clone().requires_grad_() for value in objective.parameters()]
    assert torch.autograd.gradcheck(loss, values)


@pytest.mark.parametrize("learn_shape", [False, True])
def test_minus_the_mean_likelihood_is_the_loss_of_one_side(learn_shape):
    objective = shaped(1.6, learn_shape=learn_shape)
    likelihood = objective.log_probabilities(ENCODER, PAIRS).diagonal()
    q, k = PAIRS.x / SCALES, PAIRS.x_tilde / SCALES
    assert likelihood.shape == (40,)
    torch.testing.assert_close(-likelihood.mean(), dense_contrast(q, k, similarity=1.6))
    swapped = Pairs(PAIRS.z, PAIRS.z, PAIRS.x_tilde, PAIRS.x)
    both = (
        -(likelihood.mean() + objective.log_probabilities(ENCODER, swapped).diagonal().mean()) / 2
    )
    torch.testing.assert_close(objective(ENCODER, PAIRS), both)


def test_a_learnt_shape_contrasts_in_groups_of_256():
    z = uniform(2, 600, DIM)
    near = z + 0.3 * uniform(3, 600, DIM)
    objective = shaped(1.6, learn_shape=True)
    groups = zip((z / SCALES).split(256), (near / SCALES).split(256), strict=True)
    losses = [len(q) * dense_contrast(q, k, similarity=1.6, two_sided=True) for q, k in groups]
    torch.testing.assert_close(objective(ENCODER, Pairs(z, near, z, near)), sum(losses) / 600)


def test_equal_views_have_finite_gradients():
    objective = shaped(1.5, learn_shape=True)
    x = Z.clone().requires_grad_()
    for value in with_gradients(objective(ENCODER, Pairs(x, x, x, x)), objective, x):
        assert torch.isfinite(value).all()


def test_a_fixed_shape_has_no_parameter_and_a_learnt_one_starts_where_it_is_told():
    assert [name for name, _ in ShapedInfoNCE(2).named_parameters()] == ["log_scales"]
    assert ShapedInfoNCE(2, shape=1.0).shape == 1.0
    for shape in (1.01, 1.5, 2.0, 6.0):
        assert ShapedInfoNCE(2, shape=shape, learn_shape=True).shape == pytest.approx(shape)


@pytest.mark.parametrize(
    ("dim", "settings"),
    [
        (0, {}),
        (2, {"shape": 0.9}),
        (2, {"shape": float("inf")}),
        (2, {"shape": float("nan")}),
        (2, {"shape": 1.0, "learn_shape": True}),
    ],
    ids=str,
)
def test_what_is_no_conditional_is_refused(dim, settings):
    with pytest.raises(DemixError, match="at least 1 latent and a shape p >= 1"):
        ShapedInfoNCE(dim, **settings)
