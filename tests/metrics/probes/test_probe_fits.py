"""Read-outs are what their definitions say, in the coordinates that make them cheap."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import balanced_accuracy_score, r2_score, roc_auc_score

from demix import probe
from demix.metrics.blocks import exchangeable
from demix.metrics.probes.linear import LOGISTIC, Basis, log_loss, logistic, product, ridge
from demix.metrics.probes.readouts import (
    measured_binary,
    measured_categories,
    measured_numbers,
    split_of,
)
from single_readout import read_out


def mixed(rows: int, width: int, seed: int = 0) -> np.ndarray:
    """Features that go together, one of them constant, one twice, with very different scales."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(rows, width)) @ random.normal(size=(width, width))
    features[:, 1], features[:, 2] = 3.0, features[:, 0]
    return features * np.logspace(-3, 3, width) + 100


def standardised(features: np.ndarray, train: np.ndarray) -> np.ndarray:
    spread = features[train].std(axis=0)
    return (features - features[train].mean(axis=0)) / np.where(spread > 1e-9, spread, np.inf)


@pytest.mark.parametrize(("rows", "width"), [(300, 8), (60, 90)], ids=["many rows", "few rows"])
def test_ridge_in_the_axes_is_ridge_of_standardised_features(rows, width):
    features = mixed(rows, width)
    split = split_of(exchangeable(rows, 0))
    target = (features @ np.random.default_rng(1).normal(size=(width, 2))) / 1e3
    basis = Basis.of(features[split.train])
    train, validation, test = (basis(features[part]) for part in split)
    assert train.mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert np.cov(train.T, bias=True) == pytest.approx(np.diag(basis.variances), abs=1e-7)
    parts = (target[split.train], target[split.validation])
    slopes, intercept, penalty = ridge(basis, train, validation, parts)
    inputs = standardised(features, split.train)
    other = Ridge(alpha=penalty * len(train)).fit(inputs[split.train], parts[0])
    expected = other.predict(inputs[split.test])
    assert test @ slopes + intercept == pytest.approx(expected, abs=1e-3 * expected.std())


def test_logistic_fits_reach_the_optimum_of_every_factor():
    features = mixed(500, 8)
    split = split_of(exchangeable(500, 0))
    inputs = standardised(features, split.train)
    random = np.random.default_rng(2)
    noise = random.logistic(size=(500, 3))
    signs = inputs @ random.normal(size=(8, 3)) + noise > [0, 2, 4]
    kinds = (inputs @ random.normal(size=(8, 4)) + random.gumbel(size=(500, 4))).argmax(axis=1)
    basis = Basis.of(features[split.train])
    train, validation, _ = (basis(features[part]) for part in split)
    for codes, targets in ((signs.T, signs[:, :, None]), ([kinds], np.eye(4)[kinds][:, None])):
        targets = targets.astype(float)
        weights, penalties = logistic(
            basis, train, validation, (targets[split.train], targets[split.validation])
        )
        assert set(penalties) <= set(LOGISTIC)
        logits = product(train, weights[:-1]) + weights[-1]
        ours = log_loss(logits, targets[split.train])
        ours += penalties * np.square(weights[:-1]).sum(axis=(0, 2)) / 2
        for classes, loss, penalty in zip(codes, ours, penalties, strict=True):
            strength = 1 / (penalty * len(train))
            model = LogisticRegression(C=strength, max_iter=2000, tol=1e-8)
            model.fit(inputs[split.train], classes[split.train])
            told = model.predict_log_proba(inputs[split.train])
            right = told[np.arange(len(train)), classes[split.train].astype(int)]
            best = -right.mean() + penalty * np.square(model.coef_).sum() / 2
            assert loss == pytest.approx(best, abs=1e-5)


def test_measures_are_those_of_the_definitions_for_any_order_of_the_truth():
    random = np.random.default_rng(3)
    prediction, logits = random.normal(size=200), random.normal(size=(200, 3))
    number = prediction + random.normal(size=200)
    binary, kinds = number > 1, logits.argmax(axis=1) * (random.uniform(size=200) > 0.3)
    orders = np.stack([np.arange(200), random.permutation(200)])
    numbers = measured_numbers(prediction[:, None], number[:, None])
    pairs = measured_binary(prediction, binary, 0.5)
    several = measured_categories(logits, kinds, np.full(3, 1 / 3), np.arange(3))
    for order, r, area, recall in zip(
        orders, *(one.shuffled(orders) for one in (numbers, pairs, several)), strict=True
    ):
        assert r == pytest.approx(np.corrcoef(prediction, number[order])[0, 1])
        assert area == pytest.approx(roc_auc_score(binary[order], prediction))
        given = logits.argmax(axis=1)
        assert recall == pytest.approx(balanced_accuracy_score(kinds[order], given))
    r2 = r2_score(number, prediction)
    [both], [three], [two] = (
        one.of_weights(np.full((1, 200), 1 / 200))[1] for one in (numbers, pairs, several)
    )
    assert both == pytest.approx([numbers.shuffled(orders)[0], r2])
    accuracy = [
        balanced_accuracy_score(binary, prediction > 0),
        (binary == (prediction > 0)).mean(),
    ]
    assert three == pytest.approx([pairs.shuffled(orders)[0], *accuracy])
    assert two[1] == pytest.approx((kinds == logits.argmax(axis=1)).mean())


def test_each_value_counts_the_same_however_rare_it_is():
    random = np.random.default_rng(4)
    features = random.normal(size=(4000, 1))
    rare = features[:, 0] + random.logistic(size=4000) > 4
    found = read_out(features, rare, "binary").scores
    assert rare.mean() < 0.05
    assert found["accuracy"].value > 0.95
    # The best threshold for a value that counts as much as the other, not that for few errors.
    assert 0.6 < found["balanced_accuracy"].value < found["auc"].value < 0.85


@pytest.mark.parametrize("kind", ["continuous", "ordinal", "periodic", "categorical", "binary"])
def test_read_outs_do_not_depend_on_scales_shifts_and_order_of_features(kind):
    random = np.random.default_rng(5)
    features = random.normal(size=(300, 4))
    number = features @ [1, -1, 0.5, 0] + random.normal(size=300)
    factor = {"categorical": np.round(number), "ordinal": np.round(number), "binary": number > 0}
    period = 6.0 if kind == "periodic" else None
    both = [
        read_out(x, factor.get(kind, number), kind, period=period)
        for x in (features, features[:, ::-1] * [1e-3, 1, 50, 2] + [0, 9, 9, -2])
    ]
    for name, score in both[0].scores.items():
        assert both[1].scores[name] == pytest.approx(score, abs=1e-4)
        assert score.low <= score.value <= score.high
    assert both[0].p == both[1].p < 0.05


def test_a_period_is_read_as_sine_and_cosine():
    random = np.random.default_rng(6)
    angle = random.uniform(0, 360, 400)
    circle = np.stack([np.cos(np.radians(angle)), np.sin(np.radians(angle))], axis=1)
    circle = circle @ random.normal(size=(2, 5)) + 0.1 * random.normal(size=(400, 5))
    found = read_out(circle, angle, "periodic", period=360)
    turned = read_out(circle, angle + 360 * random.integers(-3, 4, 400), "periodic", period=360)
    assert found.scores["r"].value > 0.97
    assert turned.scores["r"] == pytest.approx(found.scores["r"])
    # The angle itself jumps where the circle does not.
    assert read_out(circle, angle, "continuous").scores["r"].value < 0.9
    assert read_out(circle, angle, "periodic", period=90).p > 0.01


def test_levels_in_order_are_numbered():
    features = np.random.default_rng(7).normal(size=(400, 2))
    level = np.clip(np.round(features[:, 0]), -2, 2)
    uneven = read_out(features, np.exp(3 * level), "ordinal")
    assert uneven.scores == read_out(features, level, "ordinal").scores
    assert (
        uneven.scores["r"].value
        > 0.9
        > read_out(features, np.exp(3 * level), "continuous").scores["r"].value
    )


def test_single_precision_and_more_features_than_rows():
    random = np.random.default_rng(8)
    latents = random.normal(size=(150, 3))
    features = latents @ random.normal(size=(3, 400)) + 0.5 * random.normal(size=(150, 400))
    exact = read_out(features, latents[:, 0], "continuous").scores["r"]
    assert exact.value > 0.9
    single = read_out(features.astype(np.float32), latents[:, 0], "continuous").scores["r"]
    assert single == pytest.approx(exact, abs=1e-4)


def test_rows_of_each_part_can_be_chosen():
    features = np.random.default_rng(9).normal(size=(300, 2))
    features[200:] *= -1  # where the sign of what is read out is another
    factor = (
        np.abs(features[:, 0]) * np.sign(features[:, 0]) * np.where(np.arange(300) < 200, 1, -1)
    )
    split = np.split(np.arange(300), [100, 200])
    found = probe(features, {"sign": factor}, split=split)["sign"].read_out
    assert found.scores["r"].value < -0.9
