"""Pairs over a finite set are those of a search through all of it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from demix import Box, DemixError, Normal, Sphere, Uniform, VonMisesFisher
from demix.papers import NearestPairs
from demix.papers.datasets import rendered


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def nearest_others(drawn: np.ndarray, latents: np.ndarray, index: np.ndarray) -> np.ndarray:
    """For each drawn latent the nearest of all but the anchor, one at a time."""
    found = []
    for z, anchor in zip(drawn.astype(float), index, strict=True):
        distance = ((latents.astype(float) - z) ** 2).sum(axis=1)
        distance[anchor] = np.inf
        found.append(int(distance.argmin()))
    return np.array(found)


CONDITIONALS = {
    # The first goes far beyond the spacing of the set, the second stays below it.
    "wide": Normal(Box(3), sigma=0.2),
    "narrow": Normal(Box(3), sigma=1e-3),
    "sphere": VonMisesFisher(Sphere(4), kappa=20.0),
}


@pytest.mark.parametrize("conditional", CONDITIONALS.values(), ids=CONDITIONALS)
def test_positives_are_the_nearest_others(conditional):
    latents = Uniform(conditional.space).sample(1000, generator=seeded())
    pairs = NearestPairs(latents, conditional)
    index, positive = pairs.sample(300, generator=seeded(1))
    # The same draws, made by hand.
    generator = seeded(1)
    anchors = torch.randint(1000, (300,), generator=generator)
    drawn = conditional.sample(latents[anchors], generator=generator)
    assert torch.equal(index, anchors)
    expected = nearest_others(drawn.numpy(), latents.numpy(), index.numpy())
    assert positive.tolist() == expected.tolist()
    assert positive.dtype == torch.int64
    assert not bool((index == positive).any())


def test_the_anchor_itself_is_never_taken_even_without_noise_to_speak_of():
    latents = Uniform(Box(2)).sample(50, generator=seeded())
    index, positive = NearestPairs(latents, Normal(Box(2), sigma=1e-6)).sample(
        2000, generator=seeded(1)
    )
    distance = torch.cdist(latents, latents).fill_diagonal_(torch.inf)
    assert torch.equal(positive, distance.argmin(dim=1)[index])
    assert len(index.unique()) == 50


def test_cells_find_what_an_exact_search_finds(monkeypatch):
    latents = Uniform(Box(5)).sample(41_000, generator=seeded())
    conditional = Normal(Box(5), sigma=0.05)
    cells = NearestPairs(latents, conditional)
    monkeypatch.setattr(rendered, "_EXACT", 10**6)
    exact = NearestPairs(latents, conditional)
    assert type(cells._index) is not type(exact._index)
    found, expected = (pairs.sample(500, generator=seeded(1)) for pairs in (cells, exact))
    assert torch.equal(found[0], expected[0])
    # 2 % are far more than were ever missed.
    assert float((found[1] == expected[1]).float().mean()) >= 0.98
    far, near = (pairs.realised(500, generator=seeded(1)).matched for pairs in (cells, exact))
    assert float(far.mean()) <= 1.01 * float(near.mean())


def test_the_realised_distances_show_when_the_set_is_too_coarse():
    box = Box(10, low=-1.0, high=1.0)
    latents = Uniform(box).sample(5000, generator=seeded())
    pairs = NearestPairs(latents, Normal(box, sigma=0.1))
    drawn, matched = pairs.realised(1000, generator=seeded(1))
    # The noise is 0.1 sqrt(10) long, a little less because the box cuts it.
    assert 0.27 < float(drawn.mean()) < 0.32
    distance = torch.cdist(latents, latents).fill_diagonal_(torch.inf).min(dim=1).values
    assert float(matched.mean()) > 0.95 * float(distance.mean()) > 2 * float(drawn.mean())
    index, positive = pairs.sample(1000, generator=seeded(1))
    torch.testing.assert_close(matched, (latents[index] - latents[positive]).norm(dim=1))


def test_arrays_are_taken_and_the_same_generator_draws_the_same():
    latents = np.random.default_rng(0).random((100, 2))
    pairs = NearestPairs(latents, Normal(Box(2), sigma=0.1))
    assert len(pairs) == 100
    first, again, other = (torch.stack(pairs.sample(50, generator=seeded(s))) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize(
    ("latents", "words"),
    [
        (np.zeros((5, 3)), r"at least 2 latents of .*\(N, 2\), but got an array of shape \(5, 3\)"),
        (np.zeros((1, 2)), "at least 2 latents"),
        (np.array([[0.5, 0.5], [0.5, 1.5], [2, 2]]), "2 of 3 lie outside, the first .* in row 1"),
        (np.array([[0.5, 0.5], [np.nan, 0]]), "must be finite"),
        (np.zeros(4), "must be a matrix"),
    ],
    ids=["columns", "alone", "outside", "nan", "vector"],
)
def test_latents_that_are_none_are_refused(latents, words):
    with pytest.raises(DemixError, match=words):
        NearestPairs(latents, Normal(Box(2), sigma=0.1))


def test_a_missing_faiss_is_named_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(DemixError, match=r"needs faiss.*pip install 'demix-ica\[papers\]'"):
        NearestPairs(np.zeros((5, 2)), Normal(Box(2), sigma=0.1))
