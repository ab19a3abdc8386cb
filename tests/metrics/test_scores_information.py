"""Information is estimated as its definition says, and tells dependence from noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif
from sklearn.metrics import mutual_info_score

from demix.metrics.factors import binned, check_factors
from demix.metrics.information import binned_information, nearest_information


def estimate(information) -> np.ndarray:
    rows = len(information.shared)
    return information.of(np.full((1, rows), 1 / rows))[0][0]


def correlated(samples: int, r: float) -> tuple[np.ndarray, np.ndarray]:
    s, noise = np.random.default_rng(0).normal(size=(2, samples, 1))
    return r * s + (1 - r**2) ** 0.5 * noise, s


@pytest.mark.parametrize(("samples", "bins"), [(8, 2), (300, 7), (2000, 20), (50_000, 20)])
def test_bins_hold_equally_many_samples(samples: int, bins: int) -> None:
    counts = np.bincount(binned(np.random.default_rng(0).normal(size=samples)))
    assert len(counts) == bins
    assert counts.max() - counts.min() <= 1


def test_equal_numbers_share_a_bin_and_few_stay_apart() -> None:
    steps = np.random.default_rng(0).integers(0, 50, size=3000).astype(float)
    codes = binned(steps)
    assert all(len(set(codes[steps == value])) == 1 for value in range(50))
    assert set(codes) == set(range(codes.max() + 1))
    few = np.random.default_rng(0).choice([-1.5, 0.25, 7.0], size=300)
    assert np.array_equal(binned(few), np.searchsorted([-1.5, 0.25, 7.0], few))


def test_bins_follow_monotone_maps() -> None:
    x = np.random.default_rng(0).normal(size=1000)
    assert np.array_equal(binned(np.exp(x)), binned(x))
    assert np.array_equal(binned(-x), binned(x).max() - binned(x))


@pytest.mark.parametrize("categorical", [True, False])
def test_counts_agree_with_the_definition(categorical: bool) -> None:
    random = np.random.default_rng(0)
    s = random.integers(0, 4, size=(3000, 2)) if categorical else random.normal(size=(3000, 2))
    z = s @ [[1.0, 0.5, 0.0], [0.0, 0.5, 0.0]] + 0.3 * random.normal(size=(3000, 3))
    _, factors, _ = check_factors(z, s)
    found = binned_information(z, factors)
    for i in range(2):
        kinds = factors.classes_of(i)
        entropy = mutual_info_score(factors.classes[:, i], factors.classes[:, i])
        assert found.entropy[:, i].mean() == pytest.approx(entropy + (kinds - 1) / 6000)
        for j in range(2):
            codes = binned(z[:, j])
            cells = len({*zip(factors.classes[:, i], codes, strict=True)})
            bias = (cells - kinds - len(set(codes)) + 1) / 6000
            plain = mutual_info_score(factors.classes[:, i], codes)
            if found.dependent[i, j]:
                assert estimate(found)[i, j] == pytest.approx(plain - bias)
    # The third latent is noise, the second factor has no part in the first.
    assert found.dependent.tolist() == [[True, True, False], [False, True, False]]
    assert (estimate(found)[:, 2] == 0).all()


@pytest.mark.parametrize(
    "estimator", [binned_information, lambda z, s: nearest_information(z, s, 0)]
)
@pytest.mark.parametrize("r", [0.5, 0.9])
def test_normal_numbers_share_what_theory_says(estimator, r: float) -> None:
    z, s = correlated(20_000, r)
    found = estimate(estimator(z, check_factors(z, s)[1]))[0, 0]
    # Bins lose a little of it.
    assert -0.5 * np.log(1 - r**2) == pytest.approx(found, abs=0.02 + 0.04 * r)


@pytest.mark.parametrize("classes", [2, 5])
def test_neighbours_agree_with_scikit_learn(classes: int) -> None:
    random = np.random.default_rng(0)
    s = random.integers(0, classes, size=(3000, 1))
    z = random.normal(size=(3000, 1)) + s
    expected = mutual_info_classif(z, s[:, 0], n_neighbors=10, random_state=0)[0]
    found = estimate(nearest_information(z, check_factors(z, s)[1], 0))
    assert found[0, 0] == pytest.approx(expected, abs=0.02)


def test_neighbours_agree_with_their_definition() -> None:
    random = np.random.default_rng(0)
    s = random.integers(0, 3, size=(200, 1))
    z = random.normal(size=(200, 1)) + 2 * s
    found = nearest_information(z, check_factors(z, s)[1], 0).shared[:, 0]
    places = np.sort(np.random.default_rng([0, 3]).uniform(size=200))
    line = places[np.argsort(np.argsort(z[:, 0]))]
    for row in range(200):
        away = np.abs(line - line[row])
        own = s[:, 0] == s[row, 0]
        reach = np.sort(away[own])[10]
        near = (away < reach * (1 - 1e-9)).sum()
        term = digamma(200) + digamma(10) - digamma(own.sum()) - digamma(near)
        assert found[row] == pytest.approx(term)


def test_latents_of_few_values_are_counted() -> None:
    random = np.random.default_rng(0)
    s = random.integers(0, 4, size=(2000, 1))
    z = (s * 1.0) ** 2
    information = nearest_information(z, check_factors(z, s)[1], 0)
    rows = np.full((1, 2000), 1 / 2000)
    shared, entropy = information.of(rows)
    assert shared[0, 0, 0] == pytest.approx(entropy[0, 0])


def test_noise_is_seldom_taken_for_dependence() -> None:
    false = 0
    for seed in range(40):
        random = np.random.default_rng(seed)
        s = np.column_stack([random.normal(size=500), random.integers(0, 3, size=500)])
        z = random.normal(size=(500, 5))
        false += binned_information(z, check_factors(z, s)[1]).dependent.any()
    assert false <= 3
