"""Columns far from zero are centred in float64; nothing is lost, nothing called duplicated."""

from __future__ import annotations

import numpy as np
import pytest

from demix import (
    ContrastiveDemixer,
    DemixWarning,
    InstanceDemixer,
    Recipe,
    consensus,
    export_onnx,
    load_encoder,
    load_model,
    read_data,
)
from demix.data.checks import check_data
from demix.data.data import as_data

RECIPE = Recipe(steps=30, batch=128)


@pytest.fixture(scope="module")
def walk():
    """A walk on a circle in float64."""
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 2000))
    return np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_rows_are_not_called_duplicated(offset, walk):
    found = check_data(as_data(walk + offset))
    assert found.precise
    assert found.duplicated == 0
    np.testing.assert_allclose(found.std, walk.std(axis=0), rtol=1e-5)
    assert not check_data(as_data(walk)).precise
    # What is float32 already has lost what it has lost.
    assert not check_data(as_data((walk + 1e3).astype(np.float32))).precise


def latents(x, **more):
    return ContrastiveDemixer(2, recipe=RECIPE, **more).fit(x)


@pytest.mark.parametrize("components", [None, 2])
def test_an_offset_changes_nothing(components, walk):
    encoder = None if components is None else {"components": components}
    plain = latents(walk, encoder=encoder)
    far = latents(walk + 1e6, encoder=encoder)
    np.testing.assert_allclose(far.transform(walk + 1e6), plain.transform(walk), atol=1e-2)
    assert far.gain_.bits == pytest.approx(plain.gain_.bits, abs=0.02)


def test_rows_alone_and_other_formats_are_centred_too(walk, tmp_path):
    walk = walk[:500]
    far = walk + 1e6
    np.savetxt(tmp_path / "x.csv", far, delimiter=",", fmt="%.10f")
    np.save(tmp_path / "x.npy", np.asfortranarray(far))
    plain = InstanceDemixer(2, recipe=RECIPE).fit(walk).transform(walk)
    for name in ("x.csv", "x.npy"):
        data = read_data(tmp_path / name)
        found = InstanceDemixer(2, recipe=RECIPE).fit(data).transform(data)
        np.testing.assert_allclose(found, plain, atol=5e-3)


def test_a_model_folder_keeps_it(walk, tmp_path):
    far = walk + 1e6
    demixer = latents(far)
    demixer.save(tmp_path)
    loaded = load_model(tmp_path)
    assert np.array_equal(loaded.transform(far), demixer.transform(far))
    import torch

    with torch.no_grad():
        bare = load_encoder(tmp_path)(torch.from_numpy(far)).numpy()
    np.testing.assert_allclose(bare, demixer.transform(far), atol=1e-6)
    with pytest.warns(DemixWarning, match="float32, which the ONNX file takes, loses"):
        export_onnx(loaded.encoder_, tmp_path / "model.onnx")


def test_positives_far_from_zero_are_kept_whole(walk):
    other = walk + np.random.default_rng(1).normal(0, 0.1, walk.shape)
    plain = ContrastiveDemixer(2, recipe=RECIPE).fit(walk, positives=other)
    far = ContrastiveDemixer(2, recipe=RECIPE).fit(walk + 1e6, positives=other + 1e6)
    assert far.gain_.bits == pytest.approx(plain.gain_.bits, abs=0.05)


def test_commands_give_the_latents_of_the_model(walk, demix, tmp_path):
    np.savetxt(tmp_path / "x.csv", walk + 1e7, delimiter=",", fmt="%.10f")
    np.savetxt(tmp_path / "one.csv", walk[:1] + 1e7, delimiter=",", fmt="%.10f")
    model = tmp_path / "model"
    done = demix.run_briefly("fit", tmp_path / "x.csv", "--n-latents", 2, "--out", model)
    assert done.returncode == 0, done.stderr
    expected = load_model(model).transform(walk + 1e7)
    np.testing.assert_allclose(np.load(model / "latents.npy"), expected, atol=1e-5)
    # How many rows there are is no matter: the model knows what it was fitted to.
    for name in ("x", "one"):
        told = demix.run("transform", model, tmp_path / f"{name}.csv", "--out", tmp_path / "z.npy")
        assert told.returncode == 0, told.stderr
        z = np.load(tmp_path / "z.npy")
        np.testing.assert_allclose(z, expected[: len(z)], atol=1e-5)
        (tmp_path / "z.npy").unlink()


def test_a_consensus_is_of_what_its_models_say(walk):
    far = walk + 1e7
    found = consensus(ContrastiveDemixer(2, recipe=RECIPE), far, 2)
    aligned = [
        map_(model.transform(far)) for map_, model in zip(found.maps, found.models, strict=True)
    ]
    np.testing.assert_allclose(found.aligned(far), aligned, atol=1e-4)
    np.testing.assert_allclose(found.latents, found.transform(far), atol=1e-4)
