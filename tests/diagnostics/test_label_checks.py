"""Checks of labels against tables and labels that are made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from sklearn.linear_model import LogisticRegression

from demix.diagnostics.label_checks import (
    balance,
    label_noise,
    log_linear,
    overlap,
    prototype_checks,
)


def verdicts(rows):
    rows = np.asarray(rows, dtype=float)
    return {check.name: check.verdict for check in prototype_checks(rows, "C3")}


def test_a_simplex_spans_and_one_class_fewer_does_not():
    simplex = np.concatenate([np.eye(3), -np.ones((1, 3))])
    assert verdicts(simplex)["generator system"] == "pass"
    assert verdicts(simplex[:3])["generator system"] == "fail"
    assert verdicts(np.column_stack([simplex, np.zeros(4)]))["generator system"] == "fail"


def test_diversity_takes_all_quadratic_functions():
    rows = np.random.default_rng(0).normal(size=(40, 3))
    assert verdicts(rows) == {"generator system": "pass", "diversity": "pass"}
    # Few rows tell the squares apart, but not the products.
    (few,) = [c for c in prototype_checks(rows[:7], "C3") if c.name == "diversity"]
    assert few.verdict == "fail"
    assert few.details == {"rank": 7, "asked": 9, "rank_of_squares": 6}
    # Free prototypes do not need it.
    assert [check.name for check in prototype_checks(rows[:7], "C4")] == ["generator system"]


@pytest.mark.parametrize("spread", [1.0, 3.0])
def test_classes_of_different_spread_are_not_log_linear(spread):
    random = np.random.default_rng(0)
    centres, widths = 2 * random.normal(size=(6, 2)), np.geomspace(1, spread, 6)
    labels = random.integers(6, size=4000)
    z = centres[labels] + widths[labels, None] * random.normal(size=(4000, 2))
    # What a classifier without squares makes of them.
    model = LogisticRegression(C=1e3, max_iter=1000).fit(z[:2000], labels[:2000])
    found = log_linear(model.decision_function(z[2000:]), z[2000:], labels[2000:])
    assert found.fires == (spread > 1)


@pytest.mark.parametrize("bend", [0.0, 0.5])
def test_classes_that_are_not_normal_are_not_log_quadratic(bend):
    random = np.random.default_rng(0)
    z = random.normal(size=(4000, 2))
    logits = z @ random.normal(size=(2, 6)) + z**2 @ random.normal(size=(2, 6))
    p = special.softmax(logits + bend * z**3 @ random.normal(size=(2, 6)), axis=1)
    labels = (p.cumsum(axis=1) < random.random((4000, 1))).sum(axis=1).clip(0, 5)
    found = log_linear(logits, z, labels, degree=2)
    assert (found.name, found.fires) == ("log-quadratic", bend > 0)
    assert log_linear(logits, z, labels).fires == (bend > 0)  # the logits hold squares already


def test_balance_is_that_of_the_counts():
    assert balance(np.arange(900) % 9, 9).statistic == pytest.approx(0, abs=1e-12)
    assert balance(np.arange(900) % 9, 9).verdict == "pass"
    skewed = balance(np.repeat([0, 1], [90, 10]), 2)
    assert skewed.statistic == pytest.approx(1 + (0.9 * np.log2(0.9) + 0.1 * np.log2(0.1)))
    assert skewed.verdict == "fail"


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_share_of_false_labels_is_estimated(noise):
    random = np.random.default_rng(0)
    logits = 3 * random.normal(size=(2000, 6))
    labels = (special.softmax(logits, axis=1).cumsum(axis=1) < random.random((2000, 1))).sum(axis=1)
    false = random.random(2000) < noise
    labels = np.where(false, random.integers(6, size=2000), labels.clip(0, 5))
    found = label_noise(logits, labels)
    assert found.statistic == pytest.approx(noise, abs=0.04)
    assert found.fires == (noise > 0)


def test_what_two_classes_leave_open_is_that_of_their_fisher_information():
    # One latent and the slope w: a label has the information p (1 - p) w**2.
    z = np.random.default_rng(0).normal(size=(500, 1))
    p = special.expit(3 * z[:, 0])
    expected = np.mean(1 / (1 + 100 * p * (1 - p) * 9 * z.var(ddof=1)))
    assert overlap(
        lambda z: 3 * z * np.array([0.0, 1.0]), z, 6000, sphere=False
    ).statistic == pytest.approx(expected)


@pytest.mark.parametrize("sphere", [False, True])
@pytest.mark.parametrize(("width", "fires"), [(1.0, False), (30.0, True)])
def test_classes_that_do_not_overlap_leave_latents_open(sphere, width, fires):
    random = np.random.default_rng(0)
    z = random.normal(size=(2000, 3))
    z = z / np.linalg.norm(z, axis=1, keepdims=True) if sphere else z
    prototypes = random.normal(size=(12, 3)) * (3 * width if sphere else width)
    assert overlap(lambda z: z @ prototypes.T, z, 6000, sphere=sphere).fires == fires


def test_a_turn_of_the_latents_changes_nothing():
    random = np.random.default_rng(0)
    z, prototypes = random.normal(size=(300, 3)), random.normal(size=(8, 3))
    turn = np.linalg.qr(random.normal(size=(3, 3)))[0]
    found = overlap(lambda z: z @ prototypes.T, z, 6000, sphere=False)
    turned = overlap(lambda z: z @ turn.T / 2 @ prototypes.T, z @ (2 * turn), 6000, sphere=False)
    assert found.statistic == pytest.approx(turned.statistic)
