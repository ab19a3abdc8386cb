"""Maps of an equivalence are found exactly, and no map outside of it."""

from __future__ import annotations

import numpy as np
import pytest
from turns import EQUIVALENCES, NAMES, SPHERE, element, latents

from demix import DemixError
from demix.diagnostics.maps import align, common_maps, mean_of
from demix.theory.setting import Equivalence

equivalences = pytest.mark.parametrize("equivalence", EQUIVALENCES, ids=NAMES)
dims = pytest.mark.parametrize("dim", [1, 2, 3, 7])


@equivalences
@dims
@pytest.mark.parametrize("seed", range(3))
def test_an_element_of_the_equivalence_is_recovered_exactly(equivalence, dim, seed):
    z = latents(dim=dim, seed=seed, sphere=equivalence.sphere)
    matrix, shift = element(equivalence, dim, seed)
    found = align(z, z @ matrix + shift, equivalence)
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-10)
    np.testing.assert_allclose(found.shift, shift, atol=1e-10)


@pytest.mark.parametrize(
    ("allowed", "made"),
    [(0, 3), (1, 3), (2, 3), (2, 1), (0, 2), (1, 2)],
    ids=lambda i: NAMES[i],
)
def test_a_map_outside_the_equivalence_leaves_an_error(allowed, made):
    z = latents()
    matrix, shift = element(EQUIVALENCES[made], 3, 1)
    y = z @ matrix + shift
    assert np.square(align(z, y, EQUIVALENCES[allowed])(z) - y).mean() > 0.05 * y.var()
    assert np.allclose(align(z, y, EQUIVALENCES[made])(z), y)


@equivalences
def test_maps_can_be_chained(equivalence):
    z = latents(sphere=equivalence.sphere)
    y, x = (z @ m + s for m, s in (element(equivalence, 3, 1), element(equivalence, 3, 2)))
    chained = align(z, y, equivalence).then(align(y, x, equivalence))
    np.testing.assert_allclose(chained(z), x, atol=1e-9)


@equivalences
@dims
def test_runs_that_differ_by_the_equivalence_become_one(equivalence, dim):
    z = latents(dim=dim, sphere=equivalence.sphere)
    runs = [z @ m + s for m, s in (element(equivalence, dim, seed) for seed in range(4))]
    maps = common_maps(runs, equivalence)
    mapped = [map_(run) for map_, run in zip(maps, runs, strict=True)]
    for other in mapped[1:]:
        np.testing.assert_allclose(other, mapped[0], atol=1e-5)
    mean = mean_of(maps, runs, equivalence)
    np.testing.assert_allclose(mean, mapped[0], atol=1e-5)
    if equivalence.sphere:
        np.testing.assert_allclose(np.linalg.norm(mean, axis=1), 1)
    elif equivalence.name != "orthogonal":
        np.testing.assert_allclose(mean.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(mean.std(axis=0), 1, atol=1e-6)


@equivalences
def test_common_coordinates_are_made_by_the_equivalence_alone(equivalence):
    z = latents(sphere=equivalence.sphere)
    noise = np.random.default_rng(5).normal(size=(3, *z.shape))
    maps = common_maps([z + 0.1 * n for n in noise], equivalence)
    for map_ in maps:
        m = map_.matrix
        if equivalence.name == "orthogonal":
            np.testing.assert_allclose(m @ m.T, np.eye(3) * (m @ m.T)[0, 0], atol=1e-9)
        elif equivalence.name == "permutation":
            assert ((m != 0).sum(axis=0) == 1).all()
            assert ((m != 0).sum(axis=1) == 1).all()
        if equivalence.sphere:
            assert not map_.shift.any()


@pytest.mark.parametrize(
    "equivalence",
    [EQUIVALENCES[0], EQUIVALENCES[1], EQUIVALENCES[3]],
    ids=[NAMES[i] for i in (0, 1, 3)],
)
def test_what_runs_agree_on_most_comes_first(equivalence):
    z = latents(rows=2000)
    if equivalence.sphere:
        z = np.random.default_rng(0).normal(size=z.shape)
    z = z / z.std(axis=0)
    noise = np.random.default_rng(5).normal(size=(4, *z.shape)) * [0.5, 0.01, 0.1]
    maps = common_maps([z + n for n in noise], equivalence)
    mean = mean_of(maps, [z + n for n in noise], Equivalence(equivalence.name))
    likeness = np.abs(np.corrcoef(mean.T, z.T)[:3, 3:])
    assert likeness.argmax(axis=1).tolist() == [1, 2, 0]


@equivalences
def test_a_dimension_that_never_changes_breaks_nothing(equivalence):
    runs = [latents(seed=0), latents(seed=0)]
    runs[0][:, 1] = 2.5
    maps = common_maps(runs, equivalence)
    assert np.isfinite(mean_of(maps, runs, equivalence)).all()


def test_what_cannot_be_aligned_is_refused():
    with pytest.raises(DemixError, match="of the same rows, not"):
        align(np.zeros((20, 2)), np.ones((30, 2)), SPHERE)
    with pytest.raises(DemixError, match="An equivalence is one of"):
        Equivalence("unitary")
