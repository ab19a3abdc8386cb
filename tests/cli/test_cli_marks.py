"""A file of the user that only tells of demix, or is of the same kind, is never replaced."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from matplotlib.figure import Figure
from PIL import Image, PngImagePlugin
from safetensors.torch import save

from demix import DemixError, Encoder, Sphere, export_onnx, save_encoder
from demix._support.files import new_array
from demix._support.outputs import ARRAY, claim_file
from demix.cli.claims import claimed
from demix.papers.commands.render import render
from demix.report.blocks import Page, write_page
from demix.report.static import write_figure


def png(**texts: str) -> bytes:
    """A picture with notes."""
    raw, notes = io.BytesIO(), PngImagePlugin.PngInfo()
    for name, text in texts.items():
        notes.add_text(name, text)
    Image.new("RGB", (8, 8), "red").save(raw, format="PNG", pnginfo=notes)
    return raw.getvalue()


def svg(**about: str) -> bytes:
    """A figure of matplotlib, drawn by the user."""
    raw, figure = io.BytesIO(), Figure()
    figure.text(0.5, 0.5, "demix")
    figure.savefig(raw, format="svg", metadata=about)
    return raw.getvalue()


def npy(array: np.ndarray) -> bytes:
    """An array, as numpy saves it."""
    raw = io.BytesIO()
    np.save(raw, array)
    return raw.getvalue()


def network() -> bytes:
    """An ONNX file of another program, in which something is called demix."""
    x, z = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])
        for name in ("x", "demix")
    )
    node = onnx.helper.make_node("Identity", ["x"], ["demix"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "mine", [x], [z]))
    onnx.helper.set_model_props(model, {"project": "demix"})
    return model.SerializeToString()


PICTURES = {
    "title": png(Title="photo for my demix talk"),
    "other program": png(Software="demix-viewer"),
    "second note": png(Title="mine", Software="demix"),
}
OTHERS = {
    **{f"figure.png, {name}": raw for name, raw in PICTURES.items()},
    "figure.svg, text": svg(),
    "figure.svg, title": svg(Title="demix"),
    "figure.svg, creator": svg(Creator="demix and me"),
    "latents.npy": npy(np.zeros((20, 2), dtype=np.float32)),
    "model.json": json.dumps({"schema": 1, "sha256": "", "encoder": {}}, indent=2).encode(),
    "model.safetensors": save({"body.weight": torch.zeros(2), "log_scale": torch.zeros(2)}),
    "model.safetensors, note": b"precious",
    "report.html": b'<html><!-- as in <meta name="generator" content="demix"> --></html>',
}


def own(folder: Path) -> None:
    """Write all that commands write into a folder."""
    save_encoder(Encoder(3, Sphere(2)), folder)
    with new_array(folder / "latents.npy", (4, 2)) as latents:
        latents[:] = 1
    write_figure(Figure, folder)
    for name in ("report.html", "checkup.html"):
        write_page(Page("A page", "", []), folder / name)
    (folder / "fit.json").write_text(json.dumps({"provenance": {"command": "demix fit"}}))


def test_what_demix_wrote_is_known(tmp_path):
    own(tmp_path)
    assert np.load(tmp_path / "latents.npy").tolist() == [[1, 1]] * 4
    with claimed("fit", tmp_path, "fit.json", [], overwrite=True):
        pass
    options = {"suffix": ".npy", "start": ARRAY, "overwrite": True}
    with claim_file(tmp_path / "latents.npy", "--out", **options):
        pass


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_beside_a_result_stays(kind, tmp_path):
    own(tmp_path)
    name = kind.partition(",")[0]
    (tmp_path / name).write_bytes(OTHERS[kind])
    with (
        pytest.raises(DemixError, match=f"{name} holds something else"),
        claimed("fit", tmp_path, "fit.json", [], overwrite=True),
    ):
        pass
    assert (tmp_path / name).read_bytes() == OTHERS[kind]


@pytest.mark.parametrize("kind", [kind for kind in OTHERS if kind.startswith("model")])
def test_a_model_is_not_saved_over_a_file_beside_one(kind, tmp_path):
    own(tmp_path)
    (tmp_path / "fit.json").unlink()
    name = kind.partition(",")[0]
    (tmp_path / name).write_bytes(OTHERS[kind])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        save_encoder(Encoder(3, Sphere(2)), tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize("kind", PICTURES)
def test_a_picture_is_no_preview(kind, tmp_path):
    file = tmp_path / "talk.png"
    file.write_bytes(PICTURES[kind])
    with pytest.raises(DemixError, match=r"talk\.png holds something else"):
        render("sprites", preview=file, overwrite=True)
    assert file.read_bytes() == PICTURES[kind]


def test_a_network_is_no_export(tmp_path):
    file = tmp_path / "mine.onnx"
    file.write_bytes(network())
    with pytest.raises(DemixError, match=r"mine\.onnx holds something else"):
        export_onnx(Encoder(3, Sphere(2)), file)
    assert file.read_bytes() == network()
