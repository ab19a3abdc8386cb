"""Latents with causes, and positives around latents."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from demix import DemixError
from demix.papers import sample_latents, scene_named
from demix.papers.scenes.order import positive_latents

# Of a right test once in ten thousand runs; seeds are fixed.
LEAST_P = 1e-4


def test_causal_latents_follow_their_graph():
    scene = scene_named("causal3dident")
    z = scene.sample(20_000, seed=0).astype(float)
    column = {name: z[:, k] for k, name in enumerate(scene.latents)}
    children = {name: parents for name, parents, _ in scene.graph}
    for name in scene.latents:
        if name not in children:
            assert stats.kstest(column[name], stats.uniform(-1, 2).cdf).pvalue > LEAST_P
    for name, parents, sigma in scene.graph:
        mean = np.mean([column[parent] for parent in parents], axis=0)
        law = stats.truncnorm((-1 - mean) / sigma, (1 - mean) / sigma, mean, sigma)
        assert stats.kstest(law.cdf(column[name]), "uniform").pvalue > LEAST_P
        for other in scene.latents:
            if other in parents:
                assert np.corrcoef(column[name], column[other])[0, 1] > 0.3
            elif other != name and not set(parents) & {other, *children.get(other, ())}:
                assert abs(np.corrcoef(column[name], column[other])[0, 1]) < 0.04


@pytest.mark.parametrize(
    ("pairs", "law"),
    [("normal:0.3", stats.norm(0, 0.3)), ("laplace:0.2", stats.laplace(0, 0.2))],
)
def test_positives_follow_the_conditional_truncated_to_the_box(pairs, law):
    scene = scene_named("3dident")
    z = scene.sample(5000, seed=1)
    drawn = positive_latents(scene, z, pairs, seed=1).astype(float)
    low, high = law.cdf(-1.0 - z), law.cdf(1.0 - z)
    unit = (law.cdf(drawn - z) - low) / (high - low)
    for column in unit.T:
        assert stats.kstest(column, "uniform").pvalue > LEAST_P
    # Drawn by the same seed as the anchors, yet not with the same numbers.
    assert abs(np.corrcoef(unit[:, 0], z[:, 0])[0, 1]) < 0.06


def test_positives_keep_categories_and_repeat():
    scene = scene_named("shapes")
    z = sample_latents(scene, 300, seed=2)
    first, again, other = (
        positive_latents(scene, z, "normal:0.1", seed=seed) for seed in (2, 2, 3)
    )
    assert (first == again).all()
    assert (first != other).any()
    assert (first[:, 4] == z[:, 4]).all()
    assert (first[:, [0, 1, 2, 3, 5]] != z[:, [0, 1, 2, 3, 5]]).any(axis=0).all()
    assert (scene.check(first) == first).all()


@pytest.mark.parametrize("law", ["normal", "normal:", "normal:-1", "vmf:3", "laplace:nan"])
def test_laws_that_cannot_be_drawn_are_refused(law):
    scene = scene_named("sprites")
    with pytest.raises(DemixError, match=f"for example normal:0.1, but got '{law}'"):
        positive_latents(scene, scene.sample(2, seed=0), law, seed=0)
