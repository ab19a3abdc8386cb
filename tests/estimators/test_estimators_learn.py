"""Estimators recover latents that are known, tell when there are none, and go on learning."""

from __future__ import annotations

import math
import warnings
from functools import cache
from itertools import accumulate

import numpy as np
import pytest
import torch

from demix import (
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    DemixWarning,
    InstanceDemixer,
    LeakyMixing,
    Recipe,
    affine_r2,
)
from demix.metrics.regression import correlate
from walks import QUICK, mixed, sphere_points, sphere_walk, unexplained

Z, X = sphere_walk(2000)
NEW_Z, NEW_X = sphere_walk(1000, seed=1)
POINTS = sphere_points(1500)
NEAR = POINTS + 0.3 * np.random.default_rng(5).normal(size=POINTS.shape)
NEAR /= np.linalg.norm(NEAR, axis=1, keepdims=True)
SHUFFLED = np.random.default_rng(0).permutation(2000)


def classes(z: np.ndarray) -> np.ndarray:
    """Draw labels from a softmax over 12 directions, which is what cross-entropy assumes."""
    likely = 5 * z @ sphere_points(12, seed=7).T
    return (likely + np.random.default_rng(3).gumbel(size=likely.shape)).argmax(axis=1)


def test_classes_of_unequal_spread_take_quadratic_logits():
    random = np.random.default_rng(4)
    labels, centres = random.integers(9, size=3000), 2 * random.normal(size=(9, 2))
    turns = np.eye(2) + 0.8 * random.normal(size=(9, 2, 2))
    z = centres[labels] + np.einsum("rij,rj->ri", turns[labels], random.normal(size=(3000, 2)))
    z /= z.std()
    mixing, found = LeakyMixing(2, seed=0, draws=100), {}
    x = mixing(torch.from_numpy(z)).float().numpy()
    for logits in ("linear", "quadratic"):
        model = ClassifierDemixer(2, logits=logits, recipe=Recipe(steps=150, batch=256))
        model.fit(x[:2000], labels[:2000])
        found[logits] = affine_r2(model.transform(x[2000:]), z[2000:])
    assert found["quadratic"] > 0.9 > found["linear"]
    assert model.prototypes_.shape == (9, 5)
    with pytest.raises(DemixError, match=r'"quadratic", but got .quadratic. in Sphere'):
        ClassifierDemixer(2, logits="quadratic", space="sphere").fit(x, labels)


def veiled(z: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return observations of latents, with three columns of noise, and these columns."""
    veil = np.random.default_rng(seed).normal(size=z.shape)
    return np.concatenate([mixed(z), veil], axis=1).astype(np.float32), veil


def unveiled(x: torch.Tensor) -> torch.Tensor:
    """Make a view: what says nothing is drawn anew, and the rest is changed a little."""
    return torch.cat([x[:, :3] + 0.1 * torch.randn(len(x), 3), torch.randn(len(x), 3)], dim=1)


@cache
def from_time():
    return ContrastiveDemixer(3, **QUICK).fit(X)


def from_a_range_of_lags():
    return ContrastiveDemixer(3, lag=(1, 3), **QUICK).fit(sphere_walk(2000, step=0.25)[1])


def from_row_numbers():
    pairs = np.stack([np.arange(1500), np.arange(1500, 3000)], axis=1)
    both = mixed(np.concatenate([POINTS, NEAR]))
    return ContrastiveDemixer(3, **QUICK).fit(both, positives=pairs)


def from_positives():
    return ContrastiveDemixer(3, **QUICK).fit(mixed(POINTS), positives=mixed(NEAR))


def from_labels():
    return ClassifierDemixer(3, space="sphere", **QUICK).fit(X, classes(Z))


@pytest.mark.parametrize(
    "fit",
    [
        from_time,
        from_a_range_of_lags,
        from_row_numbers,
        from_positives,
        from_labels,
    ],
)
def test_latents_of_new_rows_are_recovered(fit):
    fitted = fit()  # warnings are errors here
    assert fitted.gain_.above_zero
    assert fitted.gain_.loss < fitted.gain_.ceiling * math.log(2)
    assert fitted.gain_.p_value <= 0.05
    assert unexplained(fitted.transform(NEW_X), NEW_X, NEW_Z) < 0.7


@pytest.mark.parametrize("kind", [ContrastiveDemixer, InstanceDemixer])
def test_what_views_leave_unchanged_is_recovered_and_nothing_else(kind):
    longer = QUICK | {"recipe": Recipe(steps=400, batch=256)}
    fitted = kind(3, space="sphere", augmentation=unveiled, **longer).fit(veiled(POINTS, 8)[0])
    assert fitted.gain_.above_zero
    z = sphere_points(1000, seed=2)
    x, veil = veiled(z, 9)
    latents = fitted.transform(x)
    assert affine_r2(latents, z) > 0.5
    assert affine_r2(latents, veil) < 0.1


def test_the_best_weights_are_kept():
    fitted = from_time()
    evaluated = [(record["validation"], record["step"]) for record in fitted.history_]
    assert fitted.best_step_ == min(evaluated)[1]
    assert fitted.n_steps_ == evaluated[-1][1]
    guess = fitted.gain_.ceiling * math.log(2)
    assert all(record["validation"] < guess for record in fitted.history_[5:])


def test_training_that_only_gets_worse_ends_early():
    # 60 rows are learnt by heart long before 500 steps are over.
    quick = QUICK | {"recipe": Recipe(steps=500, batch=32)}
    fitted = ContrastiveDemixer(3, **quick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemixWarning)
        fitted.fit(X[:60])
    assert fitted.n_steps_ < 500
    assert fitted.n_steps_ - fitted.best_step_ == 8 * 25


def test_shuffled_time_is_warned_of():
    with pytest.warns(DemixWarning, match=r"held-out positives, which is not above zero"):
        fitted = ContrastiveDemixer(3, **QUICK).fit(X[SHUFFLED])
    assert fitted.gain_.low <= 0 <= fitted.gain_.high


def test_shuffled_labels_are_warned_of():
    with pytest.warns(DemixWarning, match=r"held-out labels, which is not above zero"):
        fitted = ClassifierDemixer(3, **QUICK).fit(X, classes(Z)[SHUFFLED])
    assert fitted.gain_.low <= 0 <= fitted.gain_.high


def test_shuffled_pairs_are_warned_of():
    with pytest.warns(DemixWarning, match="is not above zero"):
        fitted = ContrastiveDemixer(3, **QUICK).fit(
            mixed(POINTS), positives=mixed(NEAR[SHUFFLED[SHUFFLED < 1500]])
        )
    assert fitted.gain_.low <= 0 <= fitted.gain_.high


def test_positives_that_are_almost_alike_are_warned_of():
    # Among few others, so that a short training is enough to tell all of them apart.
    quick = QUICK | {"recipe": Recipe(steps=300, batch=8)}
    with pytest.warns(DemixWarning, match="distinguished from all others almost surely"):
        ContrastiveDemixer(3, **quick).fit(mixed(POINTS), positives=mixed(POINTS + 0.001))


def test_odd_data_are_warned_of_and_noted():
    odd = np.concatenate([X, 1e6 * X[:, :1], np.ones((2000, 1))], axis=1)
    with pytest.warns(DemixWarning) as caught:
        fitted = ContrastiveDemixer(3, **QUICK).fit(odd)
    told = [str(warning.message) for warning in caught]
    assert len(told) == 2
    assert "never change" in told[0]
    assert "differ in scale by a factor" in told[1]
    assert fitted.notes_[:2] == told
    # The scales are taken out: a column that is there twice changes little else.
    assert unexplained(fitted.transform(odd), X, Z) < 0.5


def test_new_data_are_learnt_from():
    """Latents of the new data are observed in another way, which the first fit cannot know."""
    quick = QUICK | {"recipe": Recipe(steps=60, batch=256)}
    turned = X[:, [1, 2, 0]] * np.float32(-1)
    fresh = NEW_X[:, [1, 2, 0]] * np.float32(-1)
    fitted = ContrastiveDemixer(3, **quick).fit(X)
    before = fitted.score(fresh)
    steps = fitted.transform(X)
    fitted.partial_fit(turned)
    assert fitted.score(fresh) > before + 0.5
    assert not np.array_equal(fitted.transform(X), steps)


def test_new_labels_are_learnt():
    quick = QUICK | {"recipe": Recipe(steps=60, batch=256)}
    labels = classes(Z)
    moved = (labels + 1) % 12
    fitted = ClassifierDemixer(3, **quick).fit(X, labels)
    before = fitted.score(X, moved)
    for _ in range(2):
        fitted.partial_fit(X, moved)
    assert fitted.score(X, moved) > before + 0.1


@pytest.mark.parametrize("kind", [ContrastiveDemixer, ClassifierDemixer, InstanceDemixer])
@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_the_first_part_is_a_fit(kind):
    settings = QUICK | {"recipe": Recipe(steps=5, batch=64)}
    given = (X[:300], classes(Z)[:300]) if kind is ClassifierDemixer else (X[:300],)
    whole = kind(3, **settings).fit(*given).transform(X)
    assert kind(3, **settings).partial_fit(*given).transform(X).tobytes() == whole.tobytes()


def box_pairs(noise: np.ndarray) -> tuple[np.ndarray, dict]:
    """Return points of a square and their positives, reflected at its sides."""
    points = np.random.default_rng(0).uniform(-1, 1, noise.shape)
    near = points + noise
    return points, {"positives": np.where(np.abs(near) > 1, 2 * np.sign(near) - near, near)}


def learnt(conditional: str, steps: int) -> ContrastiveDemixer:
    recipe = Recipe(steps=steps, batch=256)
    settings = {"encoder": {"hidden": (32, 32)}, "recipe": recipe}
    return ContrastiveDemixer(2, space="box", conditional=conditional, **settings)


@pytest.mark.slow
def test_the_shape_of_laplace_noise_is_found():
    points, targets = box_pairs(0.1 * np.random.default_rng(1).laplace(size=(4000, 2)))
    fitted = learnt("auto", 200).fit(points, **targets)
    assert 1 <= fitted.shape_ < 1.8  # it starts at 2, the truth is 1


@pytest.mark.slow
def test_scales_are_found_for_each_latent():
    noise = np.random.default_rng(1).normal(size=(4000, 2)) * [0.05, 0.3]
    points, targets = box_pairs(noise)
    fitted = learnt("anisotropic", 200).fit(points, **targets)
    # The latent that follows the second coordinate, which moves more between positives.
    likeness = np.abs(correlate(fitted.transform(points), points))
    wide = int(likeness[:, 1].argmax())
    assert likeness[wide, 1] > 0.9
    assert fitted.scales_[wide] > 1.4 * fitted.scales_[1 - wide]


def test_only_a_learnt_conditional_has_a_shape():
    for conditional in ("vmf", None, 2.0):
        with pytest.raises(AttributeError, match="learns its shape"):
            _ = ContrastiveDemixer(conditional=conditional).shape_


def test_time_constants_of_an_autoregression_are_learnt():
    random, rates = np.random.default_rng(0), np.array([0.7, 0.95])
    steps = random.normal(size=(4000, 2)) * np.sqrt(1 - rates**2)
    z = np.array(list(accumulate(steps, lambda now, step: rates * now + step)))
    x = (np.column_stack([z, np.tanh(z)]) @ random.normal(size=(4, 4))).astype(np.float32)
    fitted = ContrastiveDemixer(2, space="real", conditional="dynamics", **QUICK).fit(x[:3000])
    assert affine_r2(fitted.transform(x[3000:]), z[3000:]) > 0.95
    found = np.sort(np.abs(np.linalg.eigvals(fitted.dynamics_)))
    assert np.abs(found - rates).max() < 0.15
    with pytest.raises(AttributeError, match="dynamics"):
        _ = from_time().dynamics_
