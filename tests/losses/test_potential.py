"""A potential of queries and keys: the dense definition, gradients, and what it leaves alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from demix import (
    DemixError,
    Encoder,
    InfoNCE,
    Pairs,
    Real,
    Sphere,
    contrast,
)
from demix.losses.contrast import log_probabilities
from demix.losses.pairs import DynamicsInfoNCE, PotentialInfoNCE
from dense_objectives import SIMILARITIES, assert_same, dense_similarity, uniform

pytestmark = pytest.mark.usefixtures("engine")


def dense(q, k, potential, *, similarity, temperature, two_sided):
    """Cross-entropy of ``s / tau + a + b``, all pairs at once."""
    of_queries, of_keys = potential
    scores = dense_similarity(q, k, similarity) / temperature + of_queries[:, None] + of_keys
    own = torch.arange(len(q))
    loss = torch.nn.functional.cross_entropy(scores, own)
    if not two_sided:
        return loss
    return (loss + torch.nn.functional.cross_entropy(scores.T[own], own)) / 2


@pytest.mark.parametrize("similarity", SIMILARITIES)
@pytest.mark.parametrize("two_sided", [False, True])
@pytest.mark.parametrize("dim", [3, 14])  # with a potential 16, where the kernel changes its ways
def test_value_and_gradients_equal_the_dense_definition(similarity, two_sided, dim):
    inputs = [uniform(0, 40, dim), uniform(1, 40, dim)]
    inputs += [4 * uniform(2, 40, 1), 9 * uniform(3, 40, 1)]
    options = {"similarity": similarity, "temperature": 0.7, "two_sided": two_sided}
    found = []
    for loss in (
        lambda q, k, a, b: contrast(q, k, potential=(a[:, 0], b[:, 0]), **options),
        lambda q, k, a, b: dense(q, k, (a[:, 0], b[:, 0]), **options),
    ):
        given = [x.clone().requires_grad_() for x in inputs]
        value = loss(*given)
        found.append((value.detach(), *torch.autograd.grad(value, given)))
    for streamed, expected in zip(*found, strict=True):
        assert_same(streamed, expected, 1e-9)


@pytest.mark.parametrize("similarity", SIMILARITIES)
def test_a_constant_changes_nothing(similarity):
    q, k, a, b = uniform(0, 30, 4), uniform(1, 30, 4), uniform(2, 30, 1)[:, 0], torch.zeros(30)
    options = {"similarity": similarity, "two_sided": True}
    plain = contrast(q, k, **options)
    assert_same(contrast(q, k, potential=(b + 7.0, b - 3.0), **options), plain, 1e-9)
    moved = contrast(q, k, potential=(a + 7.0, a - 3.0), **options)
    assert_same(moved, contrast(q, k, potential=(a, a), **options), 1e-9)
    # Told from keys alone, a query's own potential cancels.
    one_sided = contrast(q, k, similarity=similarity, potential=(a, b))
    assert_same(one_sided, contrast(q, k, similarity=similarity), 1e-9)


@pytest.mark.parametrize("similarity", ["dot", 1, 2])
def test_the_density_of_keys_is_taken_up(similarity):
    """Keys that come three times as often, with a potential of -log 3, count once."""
    q, k = uniform(0, 5, 2), uniform(1, 5, 2)
    often = torch.cat([k, k, k])
    potential = (torch.zeros(5), torch.full((15,), -torch.log(torch.tensor(3.0)).item()))
    repeated = contrast(q, often, similarity=similarity, potential=potential)
    own_share = contrast(q, k, similarity=similarity)
    # The positive itself is one of three: its own potential stays.
    assert_same(repeated, own_share + torch.log(torch.tensor(3.0)), 1e-6)


def test_probabilities_know_the_potential():
    q, k, b = uniform(0, 6, 2), uniform(1, 6, 2), uniform(2, 6, 1)[:, 0]
    own = log_probabilities(q, k, 2.0, 0.5, b).diagonal()
    loss = contrast(q, k, similarity=2, temperature=0.5, potential=(torch.zeros(6), b))
    assert_same(-own.mean(), loss, 1e-9)


@pytest.mark.parametrize("similarity", ["dot", 1, 2.5])
def test_the_objective_is_infonce_with_a_potential_of_the_latents(similarity):
    torch.manual_seed(0)
    x = torch.randn(30, 3, dtype=torch.float64)
    pairs = Pairs(x, x, x, x + 0.1 * torch.randn(30, 3, dtype=torch.float64))
    encoder = Encoder(3, Sphere(3), hidden=(8, 8), scale=2.0).double()
    objective = PotentialInfoNCE(3, similarity=similarity).double()
    plain = InfoNCE(similarity)
    at_first = objective(encoder, pairs).detach()
    assert_same(at_first, plain(encoder, pairs).detach(), 1e-9)
    torch.nn.init.normal_(objective.network[-1].weight)
    queries, keys = encoder(pairs.x), encoder(pairs.x_tilde)
    potential = [objective.network(side.detach() / 2.0)[:, 0] for side in (queries, keys)]
    options = {"similarity": similarity, "temperature": 1.0, "two_sided": True}
    expected = dense(queries, keys, potential, **options)
    assert_same(objective(encoder, pairs).detach(), expected.detach(), 1e-9)
    # The potential learns, and the encoder as if it were given.
    found = torch.autograd.grad(objective(encoder, pairs), list(encoder.parameters()))
    given = dense(queries, keys, [p.detach() for p in potential], **options)
    for own, wanted in zip(
        found, torch.autograd.grad(given, list(encoder.parameters())), strict=True
    ):
        assert_same(own, wanted, 1e-9)
    own = objective.log_probabilities(encoder, pairs).exp()
    assert_same(own.sum(dim=1), torch.ones(30, dtype=torch.float64), 1e-9)


def test_dynamics_are_a_linear_map_of_the_anchor():
    torch.manual_seed(0)
    x = torch.randn(30, 3, dtype=torch.float64)
    pairs = Pairs(x, x, x, x + 0.1 * torch.randn(30, 3, dtype=torch.float64))
    encoder = Encoder(3, Real(3), hidden=(8, 8)).double()
    objective = DynamicsInfoNCE(3).double()
    assert_same(objective(encoder, pairs).detach(), InfoNCE(2)(encoder, pairs).detach(), 1e-9)
    torch.nn.init.normal_(objective.network[-1].weight)
    torch.nn.init.normal_(objective.matrix)
    weights = [*encoder.parameters(), objective.matrix]
    found = objective(encoder, pairs)
    queries, keys = encoder(pairs.x), encoder(pairs.x_tilde)
    potential = objective.network(queries.detach())[:, 0], objective.network(keys.detach())[:, 1]
    ahead = torch.einsum("ij,bj->bi", objective.matrix, queries)
    options = {"similarity": 2, "temperature": 1.0, "two_sided": True}
    expected = dense(ahead, keys, [p.detach() for p in potential], **options)
    assert_same(found.detach(), expected.detach(), 1e-9)
    for own, wanted in zip(
        torch.autograd.grad(found, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        assert_same(own, wanted, 1e-9)
    objective.initialise()
    assert_same(objective.matrix.detach(), torch.eye(3, dtype=torch.float64), 0)


class Scaled(nn.Module):
    """The encoder that is right for an AR(1): the latent itself, in units of its noise."""

    space = Real(1)

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = torch.tensor([scale])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * x


def test_the_potential_of_an_autoregression_is_learnt():
    r"""Of z~ = rho z + sqrt(1 - rho^2) e the log-ratio is a distance and a(z~).

    With :math:`\delta = \rho (z - z~)^2 / (2 (1 - \rho^2))` what is left of the key is
    :math:`a(z~) = \rho z~^2 / (2 (1 + \rho))`, and the same of the query.
    """
    rho, random = 0.8, torch.Generator().manual_seed(0)
    encoder = Scaled((rho / 2 / (1 - rho**2)) ** 0.5)
    objective = PotentialInfoNCE(1, similarity=2)
    objective.initialise(random)
    adam = torch.optim.Adam(objective.parameters(), lr=0.02)
    for _ in range(200):
        z, noise = torch.randn(2, 512, 1, generator=random)
        z_tilde = rho * z + (1 - rho**2) ** 0.5 * noise
        loss = objective(encoder, Pairs(z, z_tilde, z, z_tilde))
        adam.zero_grad()
        loss.backward()
        adam.step()
    z = torch.linspace(-2, 2, 41)[:, None]
    with torch.no_grad():
        learnt = objective.network(z)[:, 0]
    expected = (rho / (2 * (1 + rho)) * z**2)[:, 0]
    error = (learnt - learnt.mean()) - (expected - expected.mean())
    assert float(error.abs().max()) < 0.15
    assert float(expected.std()) > 0.25


def test_a_potential_of_another_length_is_refused():
    q, k = uniform(0, 4, 2), uniform(1, 6, 2)
    with pytest.raises(DemixError, match=r"one number for each of 6 rows, but has shape \(4,\)"):
        contrast(q, k, potential=(torch.zeros(4), torch.zeros(4)))
