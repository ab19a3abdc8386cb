"""What is exported gives the numbers of torch, in a runtime that knows neither torch nor demix."""

from __future__ import annotations

import copy
import itertools
import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

import demix
from demix import (
    Box,
    DemixError,
    Encoder,
    L1Ball,
    Product,
    Real,
    Sphere,
    export_onnx,
    load_encoder,
    save_encoder,
)
from demix.papers.runner.original import paper_encoder

SPACES = {
    "sphere": Sphere(3, radius=1.5),
    "box": Box(3, low=[0.0, -1.0, 2.0], high=[1.0, 1.0, 5.0]),
    "real": Real(3),
    "line": Real(1),
    "ball": L1Ball(3, radius=2.0),
    "product": Product([Product([L1Ball(2), Box(1, low=-1.0)]), Sphere(2), Real(1)]),
    "one part": Product([Sphere(3)]),
}
BODIES = {
    f"{activation} {name}": {"activation": activation, **options}
    for activation, (name, options) in itertools.product(
        ["silu", "gelu", "leaky_relu"],
        {
            "residual": {"hidden": (16, 16), "residual": True},
            "plain": {"hidden": (16, 8), "residual": False},
            "batch norm": {"hidden": (16, 8), "residual": False, "batch_norm": True},
        }.items(),
    )
}


def observations(rows: int) -> torch.Tensor:
    return torch.randn((rows, 4), generator=torch.Generator().manual_seed(rows)) * 2 + 1


def trained(space: demix.Space, **settings) -> Encoder:
    """An encoder in which nothing is zero or one that training would move."""
    encoder = Encoder(4, space, scale=1.3, **settings).eval()
    generator = torch.Generator().manual_seed(0)
    encoder.whitening.fit(observations(200))
    with torch.no_grad():
        for name, value in encoder.state_dict().items():
            if name.endswith("running_var"):
                value.uniform_(0.5, 2.0, generator=generator)
            elif value.is_floating_point() and not name.startswith("whitening"):
                value.normal_(0, 0.5, generator=generator)
    return encoder


def run(path, *batches: torch.Tensor) -> list[np.ndarray]:
    """Latents of each batch, by one session."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [session.run(["z"], {"x": x.numpy()})[0] for x in batches]


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("body", BODIES)
def test_another_runtime_gives_the_same_latents_for_a_batch_of_any_size(space, body, tmp_path):
    encoder = trained(SPACES[space], **BODIES[body])
    path = export_onnx(encoder, tmp_path / "model.onnx")
    batches = [observations(rows) for rows in (1, 7, 1000)]
    for x, found in zip(batches, run(path, *batches), strict=True):
        with torch.no_grad():
            expected = encoder(x).numpy()
        assert found.dtype == np.float32
        # Near the centre of a sphere the direction is rounding; elsewhere it is below 1e-6.
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-5)
        assert np.median(np.abs(found - expected) / (1 + np.abs(expected))) < 1e-6


def test_the_papers_encoder_is_exported_with_its_width(tmp_path):
    encoder = paper_encoder(4, Sphere(4), batch_norm=True).eval()
    path = export_onnx(encoder, tmp_path / "model.onnx")
    with torch.no_grad():
        expected = encoder(observations(50)).numpy()
    np.testing.assert_allclose(run(path, observations(50))[0], expected, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions_become_float32(dtype, tmp_path):
    encoder = trained(SPACES["product"]).to(dtype)
    path = export_onnx(encoder, tmp_path / "model.onnx")
    with torch.no_grad():
        expected = copy.deepcopy(encoder).float()(observations(50)).numpy()
    np.testing.assert_allclose(run(path, observations(50))[0], expected, rtol=1e-5, atol=1e-5)
    assert encoder.log_scale.dtype == dtype


def test_batch_normalisation_is_that_of_evaluation_and_the_mode_stays(tmp_path):
    encoder = trained(Real(3), **BODIES["silu batch norm"])
    evaluating = export_onnx(encoder, tmp_path / "evaluating.onnx").read_bytes()
    training = export_onnx(encoder.train(), tmp_path / "training.onnx").read_bytes()
    assert training == evaluating
    assert encoder.training


def test_a_zero_in_front_of_a_sphere_stays_zero_as_in_torch(tmp_path):
    encoder = trained(Sphere(3))
    with torch.no_grad():
        encoder.body[-1].weight.zero_()
        encoder.body[-1].bias.zero_()
    (found,) = run(export_onnx(encoder, tmp_path / "model.onnx"), observations(3))
    np.testing.assert_array_equal(found, np.zeros((3, 3)))


def test_a_batch_may_be_empty(tmp_path):
    path = export_onnx(trained(SPACES["product"]), tmp_path / "model.onnx")
    assert run(path, observations(0))[0].shape == (0, 6)


def test_the_file_says_what_it_holds(tmp_path):
    space = SPACES["product"]
    path = export_onnx(trained(space), tmp_path / "deep" / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["demix"] == demix.__version__
    assert facts["schema"] == "1"
    assert demix.Space.from_dict(json.loads(facts["space"])) == space
    (x,), (z,) = model.graph.input, model.graph.output
    assert (x.name, z.name) == ("x", "z")
    sizes = [
        [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
        for value in (x, z)
    ]
    assert sizes == [["batch", 4], ["batch", 6]]
    assert {entry.domain: entry.version for entry in model.opset_import} == {"": 17}
    assert list(path.parent.iterdir()) == [path]


def test_the_same_model_gives_the_same_bytes(tmp_path):
    encoder = trained(SPACES["product"], **BODIES["gelu residual"])
    first = export_onnx(encoder, tmp_path / "first.onnx").read_bytes()
    assert export_onnx(encoder, tmp_path / "second.onnx").read_bytes() == first
    save_encoder(encoder, tmp_path / "model")
    loaded = load_encoder(tmp_path / "model")
    assert export_onnx(loaded, tmp_path / "third.onnx").read_bytes() == first
    trained_on = trained(SPACES["product"], **BODIES["gelu residual"])
    with torch.no_grad():
        trained_on.log_scale.add_(0.1)
    assert export_onnx(trained_on, tmp_path / "first.onnx").read_bytes() != first


def test_an_encoder_is_exported_without_being_changed(tmp_path):
    encoder = trained(SPACES["box"])
    before = copy.deepcopy(encoder.state_dict())
    export_onnx(encoder, tmp_path / "model.onnx")
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name])
    assert encoder.log_scale.requires_grad


def test_a_missing_library_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(DemixError, match=r"pip install 'demix-ica\[onnx\]'"):
        export_onnx(trained(Real(2)), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


class OwnEncoder(Encoder):
    """Computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def test_what_is_computed_otherwise_is_refused(tmp_path):
    own_forward = OwnEncoder(4, Real(2))
    own_layers = Encoder(4, Real(2), activation="gelu")
    own_layers.body[1].activation = nn.GELU(approximate="tanh")
    for encoder in (own_forward, own_layers):
        with pytest.raises(DemixError, match=r"were replaced; export it with torch\.onnx"):
            export_onnx(encoder, tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_space_of_ones_own_is_refused_even_if_it_is_derived(monkeypatch, tmp_path):
    monkeypatch.setattr(demix.Space, "_kinds", dict(demix.Space._kinds))

    class Dome(Sphere):
        def squash(self, z: torch.Tensor) -> torch.Tensor:
            return super().squash(z).abs()

    for space in (Dome(3), Product([Real(1), Dome(2)])):
        with pytest.raises(DemixError, match="Dome has no ONNX form here; known are"):
            export_onnx(Encoder(4, space), tmp_path / "model.onnx")


def test_a_place_that_cannot_be_written_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DemixError, match=r"Cannot write .*choose a folder"):
        export_onnx(trained(Real(2)), tmp_path / "file" / "model.onnx")
