"""From matrices of importance or information to scores, beside published and hand-made values."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from demix.metrics.dci import completeness_of, disentanglement_of
from demix.metrics.information import infocompactness_of, infomodularity_of, modularity_of

# Factors down, latents across.
DIAGONAL = 5 * np.eye(5)
EMPTY_LATENT = np.array([[1.0, 0, 0], [0, 1, 0]])
NOTHING = np.zeros((10, 10))
REDUNDANT = np.hstack([DIAGONAL, DIAGONAL])
MISSED_FACTORS = DIAGONAL[:, :2]
TWO_FACTORS_EACH = np.vstack([DIAGONAL, DIAGONAL])
# The reference values of the tests of disentanglement_lib (Locatello et al. 2019).
LOSS = 1 - log(2) / log(10)


@pytest.mark.parametrize(
    ("matrix", "modular", "disentangled"),
    [
        (DIAGONAL, 1, 1),
        (EMPTY_LATENT, 2 / 3, 1),
        (NOTHING, 0, 0),
        (REDUNDANT, 1, 1),
        (MISSED_FACTORS, 1, 1),
        (TWO_FACTORS_EACH, 1 - 1 / 9, LOSS),
    ],
)
def test_modularity_and_disentanglement(
    matrix: np.ndarray, modular: float, disentangled: float
) -> None:
    assert modularity_of(matrix).mean() == pytest.approx(modular)
    assert disentanglement_of(matrix[None])[0][0] == pytest.approx(disentangled)


@pytest.mark.parametrize(
    ("matrix", "complete"),
    [
        (DIAGONAL, 1),
        (EMPTY_LATENT, 1),
        (NOTHING, 0),
        (REDUNDANT, LOSS),
        # There, factors of which nothing is told are left out of the mean; here they count 0.
        (MISSED_FACTORS, 2 / 5),
        (TWO_FACTORS_EACH, 1),
    ],
)
def test_completeness(matrix: np.ndarray, complete: float) -> None:
    assert completeness_of(matrix[None]).mean() == pytest.approx(complete)


@pytest.mark.parametrize(
    ("matrix", "modular", "compact"),
    [
        (DIAGONAL, 1, 1),
        (EMPTY_LATENT, 1, 1),
        (NOTHING, 0, 0),
        (REDUNDANT, 1, (1 / 2 - 1 / 10) / (1 - 1 / 10)),
        (TWO_FACTORS_EACH, (1 / 2 - 1 / 10) / (1 - 1 / 10), 1),
        (np.ones((3, 4)), 0, 0),
        (np.array([[0.6, 0.2], [0.2, 0.6]]), 0.5, 0.5),
        (np.array([[0.9, 0.3, 0.0], [0.1, 0.3, 0.4]]), (0.8 + 0.0 + 1.0) / 3, None),
        (np.array([[0.7]]), 1, 1),
    ],
)
def test_infomec(matrix: np.ndarray, modular: float, compact: float | None) -> None:
    parts, active = infomodularity_of(matrix)
    assert parts.sum() / max(active.sum(), 1) == pytest.approx(modular)
    if compact is not None:
        assert infocompactness_of(matrix).mean() == pytest.approx(compact)


def test_a_weaker_latent_weighs_less_in_disentanglement() -> None:
    importance = np.array([[[3.0, 0.5], [0.0, 0.5]]])
    value, parts = disentanglement_of(importance)
    assert parts[0] == pytest.approx([1, 0])
    assert value[0] == pytest.approx(3 / 4)


def test_all_weightings_at_once() -> None:
    random = np.random.default_rng(0)
    many = random.uniform(size=(7, 3, 4))
    for function in (modularity_of, infocompactness_of, completeness_of):
        apart = np.stack([function(one[None])[0] for one in many])
        assert function(many) == pytest.approx(apart)
