"""The check-up of fitted estimators, from Python and from the command line."""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from browser import dump_dom
from demix import (
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    InstanceDemixer,
    LeakyMixing,
    Product,
    Recipe,
    Sphere,
    checkup,
    load_model,
)
from demix.diagnostics.checkup import _in_units_of_noise
from demix.diagnostics.model_checks import refit
from demix.diagnostics.paired import uniform
from demix.distributions.von_mises_fisher import GeneralizedVonMisesFisher
from demix.estimators.sources import Source

QUICK = {"recipe": Recipe(steps=150, batch=256), "encoder": {"hidden": (32, 32)}}
NOISE = GeneralizedVonMisesFisher(Sphere(3), 2.0, 0.4)
MIXING = LeakyMixing(3, seed=0)


def mixed(z: np.ndarray) -> np.ndarray:
    return MIXING(torch.from_numpy(z).float()).numpy()


def noisy(x):
    return x + 0.1 * torch.randn(x.shape)


@pytest.fixture(scope="module")
def pairs():
    """Points of a sphere and their positives, mixed, and the points."""
    random = np.random.default_rng(0)
    z = uniform(NOISE.space, 3000, random)
    return mixed(z.numpy()), mixed(NOISE.sample(z, generator=random).numpy()), z.numpy()


@pytest.fixture(scope="module")
def fitted(pairs):
    x, positives, _ = pairs
    return ContrastiveDemixer(3, **QUICK).fit(x, positives=positives)


@pytest.mark.slow
def test_a_model_whose_assumptions_hold_is_believed(fitted, pairs):
    x, positives, _ = pairs
    said = []
    found = checkup(fitted, x, positives=positives, callback=said.append)
    assert said == ["held-out data", "half of the rows", "one latent fewer", "one latent more"]
    assert found.supported == "orthogonal"
    assert {check.name for check in found.checks if not check.fires} >= {
        "positives informative",
        "marginal",
        "isotropy",
        "support",
        "injectivity",
        "too few latents",
        "too many latents",
        "stability",
    }
    assert found["too many latents"].details["bits"] > 0.3
    assert set(found.grade) == {"information", "ceiling", "linear", "stability"}
    assert found.grade["stability"] == 1 - found["stability"].statistic > 0.9
    assert 0 < found.grade["information"] < found.grade["ceiling"]


@pytest.mark.slow
def test_held_out_rows_only_are_looked_at(fitted, pairs, monkeypatch):
    """With the data of the fit a fifth of the rows, with new data all."""
    x, positives, _ = pairs
    seen = []
    take = Source.held_out
    monkeypatch.setattr(
        Source,
        "held_out",
        lambda self, part, most, **k: seen.append(part) or take(self, part, most, **k),
    )
    checkup(fitted, x, positives=positives, refits=False)
    assert "train" not in seen
    checkup(fitted, x[:600], positives=positives[:600], refits=False)
    assert "train" in seen


def test_shuffled_pairs_are_not_believed(fitted, pairs):
    x, positives = (side[:800] for side in pairs[:2])
    found = checkup(fitted, x, positives=positives[::-1].copy(), refits=False)
    assert found["positives informative"].verdict == "fail"
    assert found.supported == "none"


@pytest.mark.slow
def test_labels_have_checks_of_their_own(pairs):
    x, _, z = pairs
    random = np.random.default_rng(1)
    vectors = uniform(NOISE.space, 12, random).numpy()
    labels = (8 * z @ vectors.T + random.gumbel(size=(3000, 12))).argmax(axis=1)
    model = ClassifierDemixer(3, space="sphere", **QUICK).fit(x, labels)
    found = checkup(model, x, y=labels, refits=False)
    names = ["labels informative", "generator system", "log-linear", "overlap", "balance"]
    assert {check.name for check in found.checks} == {*names, "label noise", "injectivity"}
    assert found["generator system"].verdict == "pass"
    assert found.relied_on == "orthogonal"
    assert "case C2" in found.theorem
    false = np.where(random.random(3000) < 0.4, random.integers(12, size=3000), labels)
    assert checkup(model, x, y=false, refits=False)["label noise"].verdict == "fail"


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_instances_are_checked_too(pairs, tmp_path):
    x = pairs[0][:400]
    model = InstanceDemixer(3, recipe=Recipe(steps=5, batch=64)).fit(x)
    found = checkup(model, x, refits=False)
    assert found.relied_on == found.supported == "none"
    assert "noise in the observations is not vMF" in found.sentence
    assert (
        checkup(model.set_params(augmentation=torch.clone), x, refits=False).relied_on == "linear"
    )
    names = {"views informative", "views", "generator system", "log-linear", "injectivity"}
    assert {check.name for check in found.checks} == names
    assert found["generator system"].details["classes"] == 400  # each row has a prototype
    model.set_params(augmentation=None)
    # A folder keeps no prototypes of instances, which the number of latents is compared by.
    model.save(tmp_path)
    found = checkup(load_model(tmp_path), x)
    verdicts = {check.name: check.verdict for check in found.checks}
    assert verdicts["too few latents"] == verdicts["too many latents"] == "skipped"
    assert verdicts["stability"] != "skipped"


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_any_marginal_is_no_assumption(pairs):
    """Latents that crowd together contradict a uniform marginal, and nothing else."""
    x = pairs[0][pairs[0][:, 0] > 0][:800]
    tiny, found = Recipe(steps=20, batch=64), {}
    for marginal in ("uniform", "any"):
        model = ContrastiveDemixer(3, marginal=marginal, augmentation=noisy, recipe=tiny).fit(x)
        found[marginal] = checkup(model, x, refits=False)
    assert found["uniform"]["marginal"].verdict == "fail"
    assert found["any"]["marginal"].verdict == "skipped"
    assert found["any"].theorem.endswith("with a potential for any marginal")
    with pytest.raises(DemixError, match="takes a conditional of a known shape, but got 'auto'"):
        ContrastiveDemixer(3, conditional="auto", marginal="any").fit(x)
    with pytest.raises(DemixError, match='marginal must be "uniform" or "any", but'):
        ContrastiveDemixer(3, marginal="all").fit(x)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_lost_augmentation_is_not_replaced_by_lags(pairs, tmp_path):
    """A folder holds the name of an augmentation only; neighbouring rows are no positives."""
    x = pairs[0][:800]
    tiny = Recipe(steps=5, batch=64)
    model = ContrastiveDemixer(3, augmentation=noisy, recipe=tiny).fit(x)
    model.save(tmp_path)
    with pytest.raises(DemixError, match="with the augmentation noisy, but its folder"):
        checkup(load_model(tmp_path), x, refits=False)
    again = load_model(tmp_path).set_params(augmentation=noisy)
    found, own = (checkup(m, x, refits=False).to_dict() for m in (again, model))
    assert found == own


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_product_is_checked_part_by_part():
    random = np.random.default_rng(0)
    angles = np.cumsum(random.normal(0, 0.4, size=(1500, 2)), axis=0)
    x = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)[:, [0, 2, 1, 3]]
    circles = Product([Sphere(2), Sphere(2)])
    model = ContrastiveDemixer(4, space=circles, conditional="normal", **QUICK).fit(x)
    found = checkup(model, x, refits=False)
    assert found.supported == found.relied_on == "none"  # no theorem speaks of products
    for name in ("marginal", "shape", "isotropy", "position", "support", "visits", "steps"):
        assert found[name].sentence.startswith(("Part 1 of 2", "Part 2 of 2"))


def test_only_estimators_are_checked():
    with pytest.raises(DemixError, match="use checkup_pairs"):
        checkup("a name", np.zeros((3, 3)))


@pytest.fixture(scope="module")
def written(demix, tmp_path_factory):
    """A model folder, the file it was fitted to, and the folder of its check-up."""
    folder = tmp_path_factory.mktemp("checkup")
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 1500))
    x = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)
    np.save(folder / "x.npy", x.astype(np.float32))
    model = ContrastiveDemixer(2, **QUICK).fit(np.load(folder / "x.npy"))
    model.save(folder / "model")
    done = demix.run(
        "checkup", folder / "model", folder / "x.npy", "--no-refits", "--out", folder / "out"
    )
    assert done.returncode == 0, done.stderr
    return folder, done


def test_the_command_writes_what_it_found(written):
    folder, done = written
    told = json.loads((folder / "out" / "checkup.json").read_text(encoding="utf-8"))
    assert told["supported"] in ("orthogonal", "none", "undecided")
    assert f"Supported: {told['supported']}." in done.stdout
    order = ["fail", "warn", "pass", "skipped"]
    assert [check["verdict"] for check in told["checks"]] == sorted(
        (check["verdict"] for check in told["checks"]), key=order.index
    )
    for check in told["checks"]:
        assert bool(check["advice"]) == (check["verdict"] in ("warn", "fail"))
    assert told["provenance"]["data file"] == "x.npy"


@pytest.mark.browser
def test_its_page_shows_every_check_in_a_browser(written):
    folder, _ = written
    told = json.loads((folder / "out" / "checkup.json").read_text(encoding="utf-8"))
    dom = dump_dom(folder / "out" / "checkup.html")
    for check in told["checks"]:
        assert check["name"] in dom
    drawn = [check for check in told["checks"] if check["statistic"] is not None]
    assert dom.count('<div class="plot js-plotly-plot"') == len(drawn)


def test_labels_and_pairs_must_suit_the_model(demix, written, tmp_path):
    folder, _ = written
    np.save(tmp_path / "y.npy", np.zeros(1500, dtype=int))
    told = demix.refusal(
        "checkup",
        folder / "model",
        folder / "x.npy",
        "--labels",
        tmp_path / "y.npy",
        "--out",
        tmp_path / "out",
    )
    assert "was not fitted to labels" in told
    assert not (tmp_path / "out").exists()


def test_fits_again_do_not_take_as_many_steps_as_a_stranger_says(fitted):
    recipe = replace(fitted.recipe, steps=10**15)
    asked = []
    refit(
        copy(fitted).set_params(recipe=recipe),
        lambda demixer, half: asked.append(demixer.recipe),
        lambda stage: None,
    )
    assert len(asked) == 3
    assert max(own.steps for own in asked) <= 50_000
    assert {own.batch for own in asked} == {recipe.batch}


@pytest.mark.parametrize("sides", [np.zeros((200, 2)), np.outer(np.arange(200.0), [1, 2])])
def test_noise_that_is_not_there_has_units_too(sides):
    both = _in_units_of_noise(sides, sides + np.array([0, 1]))
    assert all(np.isfinite(side).all() for side in both)
