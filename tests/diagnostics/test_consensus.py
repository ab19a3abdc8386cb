"""Runs of one estimator agree where there is something to find, and are told where not."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch

from demix import (
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixError,
    DemixWarning,
    InstanceDemixer,
    Recipe,
    consensus,
    orthogonal_r2,
    read_data,
)
from demix.data.data import as_data
from walks import QUICK, TINY, mixed, sphere_points, sphere_walk

Z, X = sphere_walk(3000)
# Runs agree long before they have learnt all that there is.
SHORT = QUICK | {"recipe": Recipe(steps=60, batch=256)}
LABELS = (sphere_points(6, seed=7) @ Z.T).argmax(axis=0)


@pytest.fixture(scope="module")
def agreed():
    """Three runs on a walk."""
    return consensus(ContrastiveDemixer(3, **SHORT), X, n_seeds=3)


def test_runs_on_a_walk_are_stable_up_to_a_rotation(agreed):
    assert agreed.equivalence.name == "orthogonal"
    assert agreed.stable.all()
    assert agreed.verdict.startswith("Stable up to a rotation or reflection: 3 runs agree on all 3")
    assert (agreed.low <= agreed.stability).all()
    assert (agreed.stability <= agreed.high).all()
    assert (agreed.null < agreed.low).all()
    assert agreed.seeds == (0, 1, 2)
    assert agreed.per_run.shape == (3, 3)


def test_training_makes_runs_agree_more(agreed):
    assert agreed.untrained < agreed.stability.mean()


def test_the_consensus_is_at_least_as_good_as_its_runs(agreed):
    rows = agreed.held_out
    own = [orthogonal_r2(model.transform(X[rows]), Z[rows]) for model in agreed.models]
    assert orthogonal_r2(agreed.latents[rows], Z[rows]) > np.mean(own)


def test_latents_lie_on_the_sphere_and_new_rows_get_the_same(agreed):
    assert agreed.latents.shape == (3000, 3)
    assert agreed.latents.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(agreed.latents, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(agreed.transform(X[:50]), agreed.latents[:50], atol=1e-6)
    aligned = agreed.aligned(X[:50])
    np.testing.assert_allclose(np.linalg.norm(aligned, axis=2), 1, atol=1e-5)


def test_no_run_has_seen_the_rows_that_judge(agreed):
    assert agreed.held_out.min() > 2250
    alone = ContrastiveDemixer(3, random_state=1, **SHORT).fit(X[:2250])
    assert alone.transform(X).tobytes() == agreed.models[1].transform(X).tobytes()


def test_it_is_plain_data_for_json(agreed):
    told = json.loads(json.dumps(agreed.to_dict()))
    assert told["equivalence"] == "orthogonal"
    assert told["theorem"] == "Theorem 2 of Zimmermann et al. (2021)"
    assert len(told["maps"]) == len(told["gains"]) == 3
    assert told["stability"] == agreed.stability.tolist()


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_the_same_seed_gives_the_same_consensus(tmp_path):
    demixer = ContrastiveDemixer(3, random_state=4, **TINY)
    steps = []
    first = consensus(demixer, X, 2, callback=lambda *given: steps.append(given[:3]))
    given = np.empty((len(X), 3), dtype=np.float32)
    second = consensus(demixer, as_data(X), 2, out=given, checkpoint=tmp_path)
    third = consensus(demixer, X, 2, checkpoint=tmp_path)
    assert steps == [(run, step, 15) for run in (0, 1) for step in range(1, 16)]
    assert not hasattr(demixer, "encoder_")
    assert second.latents is given
    assert first.latents.tobytes() == given.tobytes() == third.latents.tobytes()
    assert first.to_dict() == second.to_dict()


def test_shuffled_time_is_not_stable():
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    with pytest.warns(DemixWarning, match="is not above zero") as caught:
        found = consensus(ContrastiveDemixer(3, **SHORT), shuffled, n_seeds=3)
    assert found.verdict.startswith("Not stable")
    assert not found.stable.any()
    assert len(caught) == 1  # not one for each run


@pytest.mark.parametrize(
    ("demixer", "beside", "name"),
    [
        (ContrastiveDemixer(2, space="box", **TINY), {}, "permutation"),
        (ContrastiveDemixer(2, lag=(1, 3), conditional="normal", **TINY), {}, "affine"),
        (ContrastiveDemixer(2, space="box", conditional="auto", **TINY), {}, "affine"),
        (ContrastiveDemixer(2, augmentation=lambda x: x + torch.randn_like(x), **TINY), {}, None),
        (ContrastiveDemixer(2, **TINY), {"positives": mixed(Z[:800] + 0.1)}, "orthogonal"),
        (ContrastiveDemixer(2, **TINY), {"positives": np.arange(800).reshape(-1, 2)}, None),
        (ContrastiveDemixer(2, **TINY), {"equivalence": "affine"}, "affine"),
        (ClassifierDemixer(2, **TINY), {"y": LABELS[:800]}, "linear"),
        (ClassifierDemixer(2, **TINY), {"y": np.array(list("abcdef"))[LABELS[:800]]}, "linear"),
        # No theorem covers noise as views, so that runs are compared up to an affine map.
        (InstanceDemixer(2, **TINY), {}, "affine"),
        (InstanceDemixer(2, augmentation=torch.clone, **TINY), {}, "linear"),
        (ContrastiveDemixer(2, marginal="any", **TINY), {}, "orthogonal"),
    ],
)
@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_every_estimator_can_be_agreed_on(demixer, beside, name):
    found = consensus(demixer, X[:800], 2, **beside)
    assert found.equivalence.name == (name or "orthogonal")
    assert found.latents.shape == (800, 2)
    assert np.isfinite(found.latents).all()
    assert np.isfinite([found.stability, found.low, found.high, found.null]).all()


@pytest.mark.parametrize(
    ("demixer", "given", "words"),
    [
        (ContrastiveDemixer(3), {"n_seeds": 1}, "at least 2 runs, but n_seeds is 1"),
        (ContrastiveDemixer(3), {"n_seeds": 2.5}, "n_seeds is 2.5"),
        (ContrastiveDemixer(3), {"n_seeds": True}, "n_seeds is True"),
        (ContrastiveDemixer(3), {"held_out": 0}, "held_out must be a share between 0 and 1"),
        (ContrastiveDemixer(3), {"held_out": 1.0}, "held_out must be a share between 0 and 1"),
        (ContrastiveDemixer(3), {"held_out": 0.01}, "at least 48 held-out rows"),
        (ContrastiveDemixer(3), {"equivalence": "unitary"}, "An equivalence is one of"),
        (ContrastiveDemixer(0), {}, "n_latents must be"),
        (ContrastiveDemixer(3, random_state=-1), {}, "A seed must be"),
        (ContrastiveDemixer(3), {"out": np.empty((3, 3))}, "out must be an array of float32"),
        (ContrastiveDemixer(3), {"out": "z.npy"}, "but got str"),
        (ContrastiveDemixer(3), {"positives": np.zeros((5, 3))}, "positives must be row numbers"),
        (ClassifierDemixer(3), {}, "y is None"),
        (ClassifierDemixer(3), {"y": LABELS[:5]}, "one class for each of 3000 rows"),
        (ClassifierDemixer(3), {"y": LABELS, "positives": X}, "positives supervise Contrastive"),
        (object(), {}, "but got object"),
    ],
)
def test_what_cannot_be_agreed_on_is_refused(demixer, given, words):
    with pytest.raises(DemixError, match=words):
        consensus(demixer, X, **given)


# Each makes what is given and where the latents are to go, of rows that must stay.
SHARED = {
    "array": lambda x, file: ({"data": x}, x),
    "tensor": lambda x, file: ({"data": torch.from_numpy(x)}, x),
    "frame": lambda x, file: ({"data": pd.DataFrame(x, copy=False)}, x),
    "Data": lambda x, file: ({"data": as_data(x)}, x),
    "rows of Data": lambda x, file: ({"data": as_data(x).only(torch.arange(3000))}, x),
    "positives": lambda x, file: ({"data": X, "positives": torch.from_numpy(x)}, x),
    "y": lambda x, file: ({"data": X, "y": pd.Series(x[:, 0], copy=False)}, x),
    "file": lambda x, file: ({"data": read_data(file)}, np.load(file, mmap_mode="r+")),
    "map": lambda x, file: (
        {"data": np.load(file, mmap_mode="r")[:, ::-1]},
        np.load(file, mmap_mode="r+"),
    ),
    "second name": lambda x, file: (
        {"data": read_data(file)},
        np.load(file.with_name("second.npy"), mmap_mode="r+"),
    ),
}


@pytest.mark.parametrize("kind", SHARED)
def test_latents_do_not_replace_what_is_read(kind, tmp_path):
    x, file = X.astype(np.float32), tmp_path / "x.npy"
    np.save(file, x)
    (tmp_path / "second.npy").hardlink_to(file)
    given, out = SHARED[kind](x, file)
    with pytest.raises(DemixError, match="it holds the data"):
        consensus(ContrastiveDemixer(3, **TINY), n_seeds=2, out=out, **given)
    assert np.array_equal(np.load(file), X.astype(np.float32))
    assert np.array_equal(x, X.astype(np.float32))


def test_latents_that_cannot_be_written_are_refused_before_training():
    out = np.zeros((3000, 3), dtype=np.float32)
    out.flags.writeable = False

    def callback(*_):
        raise AssertionError("it was trained")

    with pytest.raises(DemixError, match="read-only; give another"):
        consensus(ContrastiveDemixer(3, **TINY), X, 2, out=out, callback=callback)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_latents_go_into_a_map_of_another_file(tmp_path):
    np.save(tmp_path / "x.npy", X.astype(np.float32))
    np.save(tmp_path / "z.npy", np.zeros((3000, 3), dtype=np.float32))
    out = np.load(tmp_path / "z.npy", mmap_mode="r+")
    found = consensus(ContrastiveDemixer(3, **TINY), read_data(tmp_path / "x.npy"), 2, out=out)
    assert found.latents is out
    assert np.abs(np.load(tmp_path / "z.npy")).max() > 0


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_file_in_the_place_of_a_folder_of_checkpoints_is_told(tmp_path):
    (tmp_path / "notes").write_text("precious")
    with pytest.raises(DemixError, match=r"Cannot write .*seed-0\.safetensors: .*choose a folder"):
        consensus(ContrastiveDemixer(3, **TINY), X, 2, checkpoint=tmp_path / "notes")


def test_bad_rows_are_refused_wherever_they_are(agreed):
    broken = X.copy()
    broken[-1, 0] = np.nan
    with pytest.raises(DemixError, match="1 of 3000 rows"):
        consensus(ContrastiveDemixer(3), broken)
    with pytest.raises(ValueError, match="X has 2 features, but ContrastiveDemixer is expecting 3"):
        agreed.transform(X[:, :2])
