"""Features come from modules, ONNX files and arrays, each row with its file name."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from demix import DemixError, DemixWarning
from demix._support import memory
from demix.papers import RandomProjection, features, open_images
from demix.papers.reizinger2024 import extraction
from demix.papers.reizinger2024.extraction import read_features, write_features
from pictures import averages, endless, picture, write_tar

pytest.importorskip("onnx", reason="the extra `onnx` is not installed")
pytest.importorskip("onnxruntime", reason="the extra `papers` is not installed")

SHADES = [(10 * i, 200 - 10 * i, 90) for i in range(7)]


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    files = {f"{i}.JPEG": picture(shade) for i, shade in enumerate(SHADES)}
    return open_images(write_tar(tmp_path_factory.mktemp("images") / "i.tar", files), side=8)


class Mean(nn.Module):
    """Averages each channel in evaluation mode only."""

    def forward(self, x):
        return x.mean(dim=(2, 3)) if not self.training else x


def test_module_function_and_onnx_agree_whatever_the_batch(images, tmp_path):
    net = Mean().train()
    counted = []
    found = features(images, net, batch=3, callback=lambda *count: counted.append(count))
    assert counted == [(3, 7), (6, 7), (7, 7)]
    assert net.training
    assert found.names == images.names
    assert found.values.dtype == np.float32
    assert np.abs(255 * found.values - np.array(SHADES)).max() < 4
    models = [lambda x: x.mean(dim=(2, 3)), averages(tmp_path / "any.onnx", "batch")]
    models += [str(averages(tmp_path / f"{size}.onnx", size)) for size in (1, 3)]
    for model in models:
        for batch in (2, 32):
            again = features(images, model, batch=batch)
            assert again.names == found.names
            assert np.allclose(again.values, found.values, atol=1e-6)


def test_features_are_kept_and_read_again(images, tmp_path):
    found = features(images, Mean())
    write_features(found, tmp_path / "new" / "trained.npy")
    again = features(None, tmp_path / "new" / "trained.npy")
    assert again.names == found.names
    assert np.array_equal(again.values, found.values)


def test_damaged_images_are_left_out_and_named(tmp_path):
    good = {f"{i:03d}.JPEG": picture((i, i, i)) for i in range(100)}
    path = write_tar(tmp_path / "i.tar", good | {"cut.JPEG": good["001.JPEG"][:300]})
    with pytest.warns(DemixWarning, match=r"1 of 101 images in .*: cut\.JPEG"):
        found = features(open_images(path, side=8), Mean(), batch=40)
    assert found.names == tuple(good)
    assert found.values.shape == (100, 3)
    assert np.abs(255 * found.values[:, 0] - np.arange(100)).max() < 5


def test_what_is_no_model_is_refused(images, tmp_path):
    def refusal(model, pictures=images):
        with pytest.raises(DemixError) as caught:
            features(pictures, model)
        return str(caught.value)

    assert "but it gives (7,)" in refusal(lambda x: x.mean(dim=(1, 2, 3)))
    assert "but it gives (1, 7)" in refusal(lambda x: x.mean(dim=(1, 2, 3))[None])
    assert "but it gives list" in refusal(lambda x: [x])
    assert "needs images" in refusal(Mean(), None)
    assert f"but got {tmp_path / 'net.pt'}" in refusal(tmp_path / "net.pt")
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"not a graph")
    assert f"Expected an ONNX model, but {broken}" in refusal(broken)
    other = open_images(images.source, side=9)
    assert "to take images (B, 3, 9, 9)" in refusal(averages(tmp_path / "a.onnx", "b"), other)
    with pytest.raises(DemixError, match="at least 1 image"):
        features(images, Mean(), batch=0)


def test_a_model_that_never_ends_is_stopped(images, tmp_path, monkeypatch):
    monkeypatch.setattr(extraction, "_LONGEST_RUN", 0.5)
    with pytest.raises(DemixError, match="terminate"):
        features(images, endless(tmp_path / "loop.onnx"))


@pytest.mark.parametrize(
    ("array", "names", "words"),
    [
        (np.zeros((2, 3)), "a\n", "has 2 rows and {} 1 names"),
        (np.zeros((2, 3)), "a\n\nb\n", "line of {}, but line 2 is empty"),
        (np.zeros((2, 3)), None, "in {}, one in a line"),
        (np.zeros(2), "a\nb\n", "has shape (2,)"),
        (np.zeros((1, 2**14 + 1)), "a\n", "at most 16384 features"),
        (np.array([["x"]]), "a\n", "of numbers"),
    ],
)
def test_features_that_do_not_line_up_are_refused(tmp_path, array, names, words):
    np.save(tmp_path / "x.npy", array)
    if names is not None:
        (tmp_path / "names.txt").write_text(names, encoding="utf-8")
    with pytest.raises(DemixError) as caught:
        read_features(tmp_path / "x.npy")
    assert words.replace("{}", str(tmp_path / "names.txt")) in str(caught.value)


def test_features_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.zeros((1, 1000)))
    (tmp_path / "names.txt").write_text("a", encoding="utf-8")
    room = memory._BASE + 3000.0  # enough for the names
    monkeypatch.setattr(memory, "_limits", lambda: iter([(room, "for this test")]))
    with pytest.raises(DemixError, match=r"x\.npy needs about .* of memory, but"):
        read_features(tmp_path / "x.npy")


def test_names_may_be_paths(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(2))
    (tmp_path / "names.txt").write_text("val/a.JPEG\nb.JPEG\n\n", encoding="utf-8")
    assert read_features(tmp_path / "x.npy").names == ("a.JPEG", "b.JPEG")


def test_a_projection_is_linear_fixed_and_keeps_distances():
    shape, generator = (3, 16, 16), torch.Generator().manual_seed(0)
    project, x = RandomProjection(shape, 600), torch.rand(6, *shape, generator=generator)
    assert torch.equal(project(x), RandomProjection(shape, 600)(x))
    assert not torch.equal(project(x), RandomProjection(shape, 600, seed=1)(x))
    assert torch.allclose(
        project(2 * x[:3] + x[3:]), 2 * project(x)[:3] + project(x)[3:], atol=1e-4
    )
    ratio = torch.pdist(project(x)) / torch.pdist(x.flatten(1))
    # Each has a deviation of sqrt(1 / (2 * 600)), about 3 %, and more for its zeros.
    assert (ratio - 1).abs().max() < 0.15
    with pytest.raises(DemixError, match=r"Expected images \(3, 16, 16\), but got \(3, 8, 8\)"):
        project(x[..., ::2, ::2])
    with pytest.raises(DemixError, match="needs sizes"):
        RandomProjection(shape, 0)
