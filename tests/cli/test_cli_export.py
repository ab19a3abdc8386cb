"""`demix export` writes what a runtime opens, and nothing over what is not its own."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

from demix import Box, Encoder, load_encoder, save_encoder


@pytest.fixture
def model(tmp_path) -> Path:
    """A model folder."""
    save_encoder(Encoder(4, Box(3), hidden=(8, 8)), tmp_path / "model")
    return tmp_path / "model"


def test_a_model_is_exported_and_described(demix, model, tmp_path):
    file = tmp_path / "model.onnx"
    done = demix.run("export", model, "--onnx", file)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"Wrote {file}: x (batch, 4) to z (batch, 3) in Box(")
    x = torch.randn(5, 4)
    (z,) = onnxruntime.InferenceSession(file).run(None, {"x": x.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(z, load_encoder(model)(x).numpy(), atol=1e-5)
    first = file.read_bytes()
    again = demix.run("export", model, "--onnx", file, "--json", "--overwrite")
    assert file.read_bytes() == first
    assert json.loads(again.stdout) == {
        "file": str(file),
        "bytes": len(first),
        "input": {"name": "x", "type": "float32", "shape": ["batch", 4]},
        "output": {"name": "z", "type": "float32", "shape": ["batch", 3]},
        "space": {"kind": "Box", "dim": 3, "low": 0.0, "high": 1.0},
    }


def test_a_file_of_something_else_is_left_alone(demix, model):
    before = (model / "model.json").read_bytes()
    told = demix.refusal("export", model, "--onnx", model / "model.json", "--overwrite")
    assert "--onnx must name a new .onnx file" in told
    assert (model / "model.json").read_bytes() == before
    (model.parent / "mine.onnx").write_bytes(b"precious")
    told = demix.refusal("export", model, "--onnx", model.parent / "mine.onnx", "--overwrite")
    assert "mine.onnx holds something else than demix writes" in told
    assert (model.parent / "mine.onnx").read_bytes() == b"precious"


def test_a_place_that_is_none_is_refused(demix, model, tmp_path):
    told = demix.refusal("export", model, "--onnx", tmp_path / "nowhere" / "model.onnx")
    assert "--onnx must name a new .onnx file in an existing folder" in told
    assert not (tmp_path / "nowhere").exists()
    (tmp_path / "folder.onnx").mkdir()
    told = demix.refusal("export", model, "--onnx", tmp_path / "folder.onnx")
    assert "folder.onnx to be free for a file of demix, but it is a folder" in told
