"""On latents that are known exactly every check passes, and the broken assumption is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from demix import Box, DemixError, GeneralizedNormal, Real, Sphere, checkup_pairs
from demix._support.resources import table
from demix.diagnostics.check import MARGINS, Check, conclude, judge
from demix.diagnostics.pair_checks import pair_checks
from demix.diagnostics.paired import paired, uniform
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.theory.setting import Setting

SPHERE = GeneralizedVonMisesFisher(Sphere(3), 2.0, 0.3)
BOX = GeneralizedNormal(Box(3), 1.0, 0.1)
NORMAL = GeneralizedNormal(Box(3), 2.0, 0.15)


def positives(model, z, random):
    return model.sample(torch.from_numpy(z), generator=random).numpy()


def drawn(model, count=600, seed=0):
    random = np.random.default_rng(seed)
    z = uniform(model.space, count, random).numpy()
    return z, positives(model, z, random), random


def turned(z, z_tilde):
    """Latents are known up to the equivalence of the theorem only."""
    matrix, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    return z @ matrix, z_tilde @ matrix


def test_a_sphere_supports_a_rotation():
    z, z_tilde, _ = drawn(SPHERE)
    found = checkup_pairs(*turned(7 * z, 7 * z_tilde), x=z)
    assert found.fired == []
    assert found.supported == "orthogonal"
    assert "Theorem 2" in found.sentence
    about = found["shape"].details
    assert about["p_low"] < 2 < about["p_high"]
    assert about["kappa_low"] < 2 / 0.3**2 < about["kappa_high"]
    told = found.to_dict()
    assert set(told) == {"supported", "relied_on", "theorem", "sentence", "grade", "checks"}
    for check in told["checks"]:
        assert check["verdict"] in ("pass", "warn", "fail", "skipped")
        assert len(check["null"]) in (0, 20, 40, 100)


def test_a_box_supports_order_and_signs():
    z, z_tilde, _ = drawn(BOX)
    found = checkup_pairs(3 - 2 * z[:, ::-1], 3 - 2 * z_tilde[:, ::-1], space="box", x=z)
    assert found.fired == []
    assert found.supported == "permutation"


def test_normal_noise_in_a_box_supports_an_affine_map():
    z, z_tilde, _ = drawn(NORMAL)
    found = checkup_pairs(z, z_tilde, space="box", conditional="normal")
    assert (found.fired, found.supported) == ([], "affine")
    assert "Theorem 5" in found.theorem


def test_in_an_unbounded_space_no_theorem_is_relied_on():
    z, z_tilde, _ = drawn(NORMAL)
    found = checkup_pairs(z, z_tilde, space="real", conditional="normal")
    assert found.supported == found.relied_on == "none"
    assert found["marginal"].verdict == "skipped"


def concentrated():
    random = np.random.default_rng(0)
    pole = np.eye(3)[[0]].repeat(600, axis=0)
    z = positives(SPHERE.with_noise(2.0, 0.8), pole, random)
    return z, positives(SPHERE, z, random)


def anisotropic():
    z, _, random = drawn(SPHERE)
    moved = z + random.normal(size=z.shape) * [0.3, 0.15, 0.1]
    return z, moved / np.linalg.norm(moved, axis=1, keepdims=True)


def restricted():
    z, z_tilde, random = drawn(SPHERE)
    for _ in range(60):
        sizes = SPHERE.quantiles(torch.from_numpy(z_tilde), torch.from_numpy(z))
        far = sizes[:, 0].numpy() > 0.5
        z_tilde[far] = positives(SPHERE, z[far], random)
    return z, z_tilde


def heavy_tails():
    return drawn(SPHERE.with_noise(0.9, 0.15))[:2]


def uneven():
    z, z_tilde, random = drawn(SPHERE)
    wide = z[:, 0] > 0
    z_tilde[wide] = positives(SPHERE.with_noise(2.0, 0.8), z[wide], random)
    return z, z_tilde


def shuffled():
    z, z_tilde, random = drawn(SPHERE)
    return z, random.permutation(z_tilde)


@pytest.mark.parametrize(
    ("broken", "name"),
    [
        (concentrated, "marginal"),
        (anisotropic, "isotropy"),
        (restricted, "support"),
        (heavy_tails, "shape"),
        (uneven, "position"),
        (shuffled, "positives informative"),
    ],
)
def test_the_broken_assumption_is_named(broken, name):
    found = checkup_pairs(*broken())
    assert found[name].verdict == "fail"
    assert found.supported == "none"
    assert "no claim" in found.sentence


def test_a_fold_of_a_box_leaves_a_step():
    z, z_tilde, _ = drawn(BOX, 800)
    folded = [np.column_stack([np.abs(side[:, 0] - 0.35), side[:, 1:]]) for side in (z, z_tilde)]
    found = checkup_pairs(*folded, space="box")
    assert found["steps"].verdict == "fail"
    # Values of 0 to 0.35 come twice: at 0.35 of 0.65, 0.7 of them have come.
    assert found["steps"].statistic == pytest.approx(0.7 - 0.35 / 0.65, abs=0.04)
    assert found.supported == "none"


def test_latents_that_lose_something_do_not_keep_observations_apart():
    z, z_tilde, _ = drawn(SPHERE)
    lost = np.random.default_rng(0).normal(size=(600, 2))
    found = checkup_pairs(z, z_tilde, x=np.concatenate([z, lost], axis=1))
    assert found["injectivity"].verdict == "fail"
    assert found.supported == "none"


def walk(kappa: float, rows: int, lags: tuple[int, int], seed: int = 0):
    """Return pairs of a vMF walk at its lags, and its places."""
    random = np.random.default_rng(seed)
    step, pole = SPHERE.with_noise(2.0, math.sqrt(2 / kappa)), np.array([1.0, 0, 0])
    places = [pole]
    # All steps are drawn at once from the pole; the mirror between it and a place takes them there.
    for moved in positives(step, np.tile(pole, (rows + lags[1], 1)), random):
        mirror = pole - places[-1]
        size = mirror @ mirror
        places.append(moved - 2 * (mirror @ moved) / size * mirror if size else moved)
    z = np.array(places)
    first = np.arange(rows)
    return z[first], z[first + random.integers(lags[0], lags[1] + 1, size=rows)], z


def test_a_slow_walk_at_several_lags_is_no_violation():
    z, z_tilde, every = walk(100, 2000, (1, 5))
    told = {"walk": every[::4], "blocks": np.arange(2000) // 100, "lags": (1, 5)}
    pairs = paired(z, z_tilde, Sphere(3), p=2.0, **told)
    checks = {check.name: check for check in pair_checks(pairs, np.random.default_rng(0))}
    assert [name for name, check in checks.items() if check.fires and name != "visits"] == []
    # Taken for independent, the same rows look as if some places were preferred.
    alone = paired(z, z_tilde, Sphere(3), p=2.0)
    (marginal, *_) = pair_checks(alone, np.random.default_rng(0))
    assert np.quantile(marginal.null, 0.95) < np.quantile(checks["marginal"].null, 0.95) / 3


def test_a_series_that_hardly_moves_is_left_undecided():
    z, z_tilde, every = walk(5000, 500, (1, 1))
    pairs = paired(z, z_tilde, Sphere(3), p=2.0, walk=every[::2])
    checks = pair_checks(pairs, np.random.default_rng(0))
    found = conclude(checks, Setting("pairs", Sphere(3), "vmf"), {})
    assert found["visits"].fires
    assert found.supported == "undecided"
    assert "too few times" in found.sentence


def test_a_check_passes_up_to_its_margin_and_fails_from_another_one_on():
    found = [judge("steps", s, np.zeros(9)) for s in (0.02, 0.06, 0.1)]
    assert [check.verdict for check in found] == ["pass", "warn", "fail"]


def judged(**verdicts) -> list[Check]:
    return [
        Check(name.replace("_", " "), verdict, 1.0, np.zeros(3), 0.1, "", f"{name}.")
        for name, verdict in verdicts.items()
    ]


@pytest.mark.parametrize(
    ("verdicts", "supported"),
    [
        ({"marginal": "pass", "stability": "pass"}, "orthogonal"),
        ({"marginal": "warn", "stability": "pass"}, "orthogonal"),
        ({"marginal": "warn", "isotropy": "warn", "stability": "pass"}, "none"),
        ({"marginal": "fail", "stability": "pass"}, "none"),
        ({"marginal": "fail", "stability": "fail"}, "undecided"),
        ({"marginal": "pass", "stability": "warn"}, "undecided"),
        ({"marginal": "pass", "too_many_latents": "fail"}, "orthogonal"),
        ({"positives_informative": "fail", "stability": "fail"}, "none"),
    ],
)
def test_there_are_three_outcomes(verdicts, supported):
    found = conclude(judged(**verdicts), Setting("pairs", Sphere(3), "vmf"), {})
    assert found.supported == supported
    assert found.relied_on == "orthogonal"
    for check in found.checks:
        assert bool(check.advice) == check.fires


def test_labels_that_leave_latents_open_are_left_undecided():
    checks = judged(balance="pass", too_many_latents="warn")
    found = conclude(checks, Setting("labels", Real(3)), {})
    assert found.supported == "undecided"
    assert "say nothing about some" in found.sentence


def test_every_check_has_a_margin_and_advice():
    checks = table("diagnostics/checks.toml")
    assert all(checks[name]["advice"] for name in MARGINS)


@pytest.mark.parametrize(
    ("z", "z_tilde", "options", "words"),
    [
        (np.zeros((200, 3)), np.zeros((200, 2)), {}, "two arrays"),
        (np.zeros((50, 3)), np.zeros((50, 3)), {}, "at least 100 pairs"),
        (np.full((200, 3), np.nan), np.zeros((200, 3)), {}, "must be finite"),
        (np.ones((200, 3)), np.ones((200, 3)), {"space": Sphere(4)}, "4 dimensions"),
        (np.ones((200, 3)), np.ones((200, 3)), {"space": "l1_ball"}, "spheres, boxes"),
    ],
)
def test_what_cannot_be_checked_is_refused(z, z_tilde, options, words):
    with pytest.raises(DemixError, match=words):
        checkup_pairs(z, z_tilde, **options)
