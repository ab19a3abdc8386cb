"""Processes: pairs of latents and of observations."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from coupling import CouplingMixing
from scipy import stats

from demix import (
    Box,
    DemixError,
    Laplace,
    LeakyMixing,
    Mixing,
    Normal,
    Process,
    Real,
    Sphere,
    Uniform,
    VonMisesFisher,
)


class Padded(Mixing):
    """A mixing into a larger space."""

    dim_in, dim_out = 3, 5

    def __call__(self, z):
        return torch.nn.functional.pad(z, (0, 2))

    def inverse(self, x):
        return x[:, :3]


def leaky(dim: int) -> Mixing:
    return LeakyMixing(dim, seed=0, draws=50)


PROCESSES = [
    Process(Uniform(Sphere(4)), VonMisesFisher(Sphere(4), 10.0), leaky(4)),
    Process(VonMisesFisher(Sphere(4), 5.0).at(), Normal(Sphere(4), 0.1), leaky(4)),
    Process(Uniform(Box(3)), Laplace(Box(3), 0.05), CouplingMixing(3, seed=0)),
    Process(Normal(Real(2), 1.0).at(), Laplace(Real(2), 1.0), leaky(2)),
    Process(Uniform(Box(3)), Normal(Box(3), 0.05), Padded()),
]
every_process = pytest.mark.parametrize("process", PROCESSES)


def draw(process: Process, seed: int, size: int = 50):
    return process.sample(size, generator=torch.Generator().manual_seed(seed))


@every_process
@pytest.mark.parametrize("size", [0, 1, 50])
def test_pairs_have_the_shapes_of_latents_and_observations(process, size):
    pairs = draw(process, 0, size)
    n, m = process.space.dim, process.mixing.dim_out
    assert [tuple(part.shape) for part in pairs] == [(size, n), (size, n), (size, m), (size, m)]
    assert all(part.dtype == torch.float32 for part in pairs)


@every_process
def test_latents_lie_in_the_space_and_observations_are_mixed_latents(process):
    z, z_tilde, x, x_tilde = draw(process, 0)
    assert process.space.contains(z).all()
    assert process.space.contains(z_tilde).all()
    assert torch.equal(x, process.mixing(z))
    assert torch.equal(x_tilde, process.mixing(z_tilde))
    torch.testing.assert_close(process.mixing.inverse(x), z, rtol=1e-3, atol=1e-3)


@every_process
def test_the_generator_alone_decides(process):
    before = torch.random.get_rng_state()
    first, again, other = (draw(process, seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    for one, same, different in zip(first, again, other, strict=True):
        assert torch.equal(one, same)
        assert not torch.equal(one, different)
    assert process.sample(3).z.shape == (3, process.space.dim)


def test_uniform_anchors_make_uniform_positives_on_the_sphere():
    z_tilde = draw(PROCESSES[0], 0, size=10_000).z_tilde.double().numpy()
    law = stats.beta(1.5, 1.5, loc=-1, scale=2)
    for i in range(4):
        assert stats.kstest(z_tilde[:, i], law.cdf).pvalue > 1e-4


def test_positives_lie_around_their_own_anchors():
    pairs = draw(PROCESSES[0], 0, size=10_000)
    own = float((pairs.z * pairs.z_tilde).sum(dim=1).mean())
    others = float((pairs.z * pairs.z_tilde.roll(1, 0)).sum(dim=1).mean())
    assert own == pytest.approx(PROCESSES[0].conditional.mean_resultant_length, abs=0.01)
    assert others == pytest.approx(0, abs=0.03)


def test_a_process_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        PROCESSES[0].mixing = leaky(4)


@pytest.mark.parametrize(
    ("marginal", "conditional", "mixing", "message"),
    [
        (
            Uniform(Sphere(3)),
            Normal(Box(3), 0.1),
            leaky(3),
            r"one space, but got Sphere\(dim=3, .*Box\(dim=3",
        ),
        (
            Uniform(Box(3)),
            Normal(Box(3, high=2.0), 0.1),
            leaky(3),
            r"one space, but got .*high=1\.0.*high=2\.0",
        ),
        (Uniform(Box(3)), Normal(Box(3), 0.1), leaky(4), "takes 4 latents, but .* 3 dimensions"),
    ],
)
def test_parts_that_do_not_fit_are_refused(marginal, conditional, mixing, message):
    with pytest.raises(DemixError, match=message):
        Process(marginal, conditional, mixing)
