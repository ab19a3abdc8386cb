"""Scores of representations whose values can be worked out by hand."""

from __future__ import annotations

import warnings
from math import log
from typing import Any

import numpy as np
import pytest

from demix import DemixWarning, all_scores
from score_maps import turn

SAMPLES = 3000
NAMES = (
    "mutual_information_gap",
    "separated_predictability",
    "modularity",
    "explicitness",
    "infomec_modularity",
    "infomec_compactness",
    "infomec_explicitness",
    "dci_disentanglement",
    "dci_completeness",
    "dci_informativeness",
    "beta_vae_score",
    "factor_vae_score",
)


def normal() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(SAMPLES, 2))


def with_column(s: np.ndarray, column: np.ndarray) -> np.ndarray:
    return np.column_stack([s, column])


# What each score is, in the order of NAMES; None where it follows from no simple argument.
CASES: dict[str, tuple[Any, list[float | None]]] = {
    "permuted": (lambda s: -3 * s[:, ::-1] + 1, [1] * 12),
    "monotone": (
        lambda s: -np.arctan(2 * s[:, ::-1]),
        [1, None, 1, 1, 1, 1, None, 1, 1, 1, 1, 1],
    ),
    # Both latents tell the same of both factors, and together everything.
    "rotated by 45 degrees": (
        lambda s: s @ turn(),
        [0, 0, 0, 1, 0, 0, 1, 0, 0, 0.99, 0.5, 0.5],
    ),
    # A factor in two of four latents: half the certainty; (1/2 - 1/4) / (1 - 1/4).
    "redundant": (
        lambda s: np.hstack([s, s]),
        [0, 0, 1, 1, 1, 1 / 3, 1, 1, 1 - log(2) / log(4), 1, 1, 1],
    ),
    # An empty latent counts 0 in the modularity of Ridgeway and Mozer, and nowhere else.
    "constant latent": (
        lambda s: with_column(s, np.full(len(s), 0.1)),
        [1, 1, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ),
    "latent of noise": (
        lambda s: with_column(s, np.random.default_rng(1).normal(size=len(s))),
        [1, 1, 2 / 3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ),
    # Only one factor is there: half of everything that is a mean over factors. The beta-VAE score
    # still tells which factor was fixed, by whether the one latent moves.
    "lost factor": (
        lambda s: s[:, :1],
        [0.5, 0.5, 1, 0.75, 1, 0.5, 0.5, 1, 0.5, 0.5, 1, 0.5],
    ),
    "collapsed": (
        lambda s: np.full_like(s, 0.1),
        [0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0, 0, 0],
    ),
}


def looseness(name: str, value: float) -> float:
    """How far 3000 samples may be from the truth."""
    if value == 1:
        return 0.03
    # Differences of two noisy numbers that are equal; votes are few, 39 a factor.
    noisy = {"separated_predictability": 0.06, "modularity": 0.15}
    noisy |= {"infomec_modularity": 0.07, "infomec_compactness": 0.07}
    return noisy.get(name, 0.12 if "vae" in name else 0.03)


@pytest.fixture(scope="module", params=CASES)
def case(request: Any) -> tuple[dict[str, Any], list[float | None]]:
    represent, expected = CASES[request.param]
    s = normal()
    with warnings.catch_warnings():
        # A lost factor is none that completeness can be trusted for.
        warnings.simplefilter("ignore", DemixWarning)
        return all_scores(represent(s), s, only=NAMES), expected


def test_what_follows_by_hand(case: Any) -> None:
    scores, expected = case
    for name, value in zip(NAMES, expected, strict=True):
        if value is not None:
            assert scores[name] == pytest.approx(value, abs=looseness(name, value)), name


def test_exact_ones_are_exact(case: Any) -> None:
    scores, expected = case
    exact = {"mutual_information_gap", "modularity", "infomec_modularity", "beta_vae_score"}
    for name, value in zip(NAMES, expected, strict=True):
        if name in exact and value == 1:
            assert scores[name] == pytest.approx(1, abs=1e-9), name


def test_intervals_hold_their_value_and_are_narrow(case: Any) -> None:
    scores, expected = case
    for name, value in zip(NAMES, expected, strict=True):
        score = scores[name]
        assert score.low <= score <= score.high, name
        if value is not None:
            assert score.high - score.low < 2 * looseness(name, value), name


def test_chance_is_the_same_whatever_the_representation(case: Any) -> None:
    chance = dict.fromkeys(NAMES, 0.0) | {
        "explicitness": 0.5,
        "beta_vae_score": 0.5,
        "factor_vae_score": 0.5,
    }
    scores, _ = case
    for name, score in scores.items():
        if score == 0 and "vae" in name:  # collapsed: no latent has a vote
            continue
        # Held out, trees that are fitted to noise are worse than the mean.
        wide = 0.15 if "vae" in name or "informativeness" in name else 0.06
        assert score.baseline == pytest.approx(chance[name], abs=wide), name


def test_two_factors_in_one_latent_each_take_half_of_its_certainty() -> None:
    # The first latent is a code of both factors, of which either can be read.
    random = np.random.default_rng(0)
    s = random.integers(0, 4, size=(SAMPLES, 2))
    z = np.column_stack([4 * s[:, 0] + s[:, 1], random.normal(size=SAMPLES)]).astype(float)
    scores = all_scores(z, s, only=NAMES)
    assert scores["mutual_information_gap"] == pytest.approx(1, abs=1e-9)
    # It tells all of both, and the other latent nothing: both count 0.
    assert scores["modularity"] == pytest.approx(0, abs=0.02)
    assert scores["infomec_modularity"] == pytest.approx(0, abs=0.02)
    assert scores["infomec_compactness"] == pytest.approx(1, abs=1e-9)
    assert scores["dci_disentanglement"] == pytest.approx(0, abs=0.02)
    assert scores["dci_completeness"] == pytest.approx(1, abs=0.02)
    assert scores["dci_informativeness"] == pytest.approx(1, abs=1e-9)
