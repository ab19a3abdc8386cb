"""The laws that every mixing keeps."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from coupling import CouplingMixing
from torch import Tensor

from demix import Box, DemixError, LeakyMixing, Mixing

MIXINGS = {
    **{f"leaky-{n}": lambda seed, n=n: LeakyMixing(n, seed=seed, draws=300) for n in (2, 5, 10)},
    "leaky-deep": lambda seed: LeakyMixing(4, seed=seed, draws=300, layers=6),
    **{f"coupling-{n}": lambda seed, n=n: CouplingMixing(n, seed=seed) for n in (2, 3, 10)},
    "coupling-deep": lambda seed: CouplingMixing(4, seed=seed, layers=10, hidden=8),
}

every_mixing = pytest.mark.parametrize("name", MIXINGS)


def latents(mixing: Mixing, size: int = 1000, seed: int = 0) -> Tensor:
    box = Box(mixing.dim_in, low=-1.0)
    return box.uniform(size, generator=torch.Generator().manual_seed(seed)).double()


def weights(mixing: Mixing) -> list[Tensor]:
    if isinstance(mixing, LeakyMixing):
        return mixing.matrices
    return [*mixing.rotations, *mixing.first, *mixing.second]


@every_mixing
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_inverse_undoes_the_mixing(name, seed):
    mixing = MIXINGS[name](seed)
    z = latents(mixing)
    x = mixing(z)
    assert x.shape == (len(z), mixing.dim_out)
    torch.testing.assert_close(mixing.inverse(x), z, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(mixing(mixing.inverse(z)), z, rtol=1e-9, atol=1e-9)


@every_mixing
def test_single_precision_is_kept_and_close_to_double(name):
    mixing = MIXINGS[name](0)
    z = latents(mixing)
    narrow = mixing(z.float())
    assert narrow.dtype == torch.float32
    assert mixing.inverse(narrow).dtype == torch.float32
    torch.testing.assert_close(narrow.double(), mixing(z), rtol=1e-4, atol=1e-4)


@every_mixing
def test_the_jacobian_is_nowhere_singular(name):
    mixing = MIXINGS[name](0)
    for z in latents(mixing, size=5):
        jacobian = torch.autograd.functional.jacobian(lambda row: mixing(row[None])[0], z)
        assert torch.linalg.svdvals(jacobian).min() > 1e-6


@every_mixing
def test_the_mixing_is_not_linear(name):
    mixing = MIXINGS[name](0)
    z = latents(mixing, size=4000)
    x = mixing(z).numpy()
    design = np.column_stack([x, np.ones(len(x))])
    moving = [i for i in range(mixing.dim_in) if not np.allclose(x[:, i], z[:, i])]
    target = z.numpy()[:, moving]
    fitted = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    r2 = 1 - ((target - fitted) ** 2).sum(axis=0) / ((target - target.mean(axis=0)) ** 2).sum(
        axis=0
    )
    assert moving
    assert r2.mean() < 0.95


@every_mixing
def test_a_seed_is_a_mixing(name):
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    one, same, other = (MIXINGS[name](seed) for seed in (3, 3, 4))
    assert torch.equal(before, torch.random.get_rng_state())
    z = latents(one)
    assert torch.equal(one(z), same(z))
    assert not torch.allclose(one(z), other(z))
    for weight, equal, different in zip(*map(weights, (one, same, other)), strict=True):
        assert torch.equal(weight, equal)
        assert not torch.allclose(weight, different)


@every_mixing
def test_mixings_of_one_seed_do_not_share_their_weights(name):
    one, same = MIXINGS[name](3), MIXINGS[name](3)
    z = latents(one)
    before = same(z)
    weights(one)[0].zero_()
    assert torch.equal(same(z), before)
    assert torch.equal(MIXINGS[name](3)(z), before)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LeakyMixing(3, seed=0, draws=2), "3 layers need at least 3 draws, but got 2"),
        (lambda: LeakyMixing(3, seed=0, layers=0), "layers .* at least 1, but got 0"),
        (lambda: LeakyMixing(0, seed=0, draws=5), "dim .* at least 1, but got 0"),
    ],
)
def test_a_bad_argument_is_explained(make, message):
    with pytest.raises(DemixError, match=message):
        make()
