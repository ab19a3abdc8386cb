"""Encoders of images: bodies by name, their laws, files and ONNX graphs."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch

from demix import (
    Box,
    ContrastiveDemixer,
    DemixError,
    Encoder,
    Recipe,
    Sphere,
    load_encoder,
    load_model,
    save_encoder,
)
from demix.encoders.bodies import BODIES, BasicBlock, WhatAndWhere
from demix.encoders.encoder import ChannelScaling

SHAPE = (3, 32, 40)


@cache
def drawn(body: str) -> Encoder:
    """An encoder whose every layer matters, in evaluation mode."""
    torch.manual_seed(0)
    components = {"components": 16} if body == "mlp" else {}
    encoder = Encoder(SHAPE, Box(4), body=body, scale=2.0, **components).initialise()
    for layer in encoder.modules():
        if isinstance(layer, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            layer.running_mean.normal_()
            layer.running_var.uniform_(0.5, 2)
    encoder.whitening.fit(torch.rand(64, *SHAPE).flatten(1))
    return encoder.eval()


def built(body: str) -> Encoder:
    """The same, for each who asks: to draw the eleven million weights of a ResNet takes longest."""
    return deepcopy(drawn(body))


@pytest.fixture(params=BODIES)
def encoder(request) -> Encoder:
    return built(request.param)


def test_images_become_latents_in_the_space(encoder):
    x = torch.rand(5, *SHAPE)
    z = encoder(x)
    assert z.shape == (5, 4)
    assert (z.abs() <= 2).all()
    assert z.std(dim=0).min() > 1e-4
    # Rows that were flattened on the way are the same images.
    assert torch.equal(encoder(x.flatten(1)), z)
    # No image knows of its neighbours.
    assert torch.allclose(encoder(x[2:3]), z[2:3], atol=1e-5)


@pytest.mark.parametrize("body", [*BODIES, "mlp"])
def test_images_of_another_shape_are_refused(body):
    encoder, told = built(body), r"rows of shape \[3, 32, 40\].*images as \(N, C, H, W\)"
    # Channels may lie last, or images on their side: as many numbers, but another picture.
    for shape in (32, 40, 3), (3, 40, 32), (3, 16, 80), (960, 4), (3, 32, 41):
        with pytest.raises(DemixError, match=told):
            encoder(torch.rand(5, *shape))


def test_a_perceptron_keeps_the_shape_of_its_images(tmp_path):
    x = torch.rand(5, *SHAPE)
    encoder = built("mlp")
    save_encoder(encoder, tmp_path)
    loaded = load_encoder(tmp_path)
    assert torch.equal(loaded(x), encoder(x.flatten(1)))
    with pytest.raises(DemixError, match="rows of shape"):
        loaded(x.movedim(1, 3))


def test_a_perceptron_is_exported_for_images(tmp_path):
    test_onnx_graphs_give_the_same_latents(built("mlp"), tmp_path)


def test_every_weight_is_trained(encoder):
    encoder.train()
    encoder(torch.rand(6, *SHAPE)).square().sum().backward()
    for name, weight in encoder.named_parameters():
        assert weight.grad is not None, name
        # A bias before a batch norm would have none; there is none.
        assert weight.grad.abs().max() > 0, name


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        # 512 x 32 + 32 + ... by hand: four convolutions of 4x4, 64 x 2 x 2 to 256, 256 to 4.
        ("kitti", 3 * 512 + 32 + 32 * 512 + 32 + 32 * 1024 + 64 + 64 * 1024 + 64),
        # The published count of its convolutions and norms, without the last layer.
        ("resnet18", 11_176_512),
        ("resnet18_linear", 11_176_512),
    ],
)
def test_convolutions_are_the_published_ones(body, numbers):
    layers = Encoder((3, 32, 32), Box(4), body=body).body
    inner = [
        p for layer in layers if not isinstance(layer, torch.nn.Linear) for p in layer.parameters()
    ]
    assert sum(p.numel() for p in inner) == numbers


def test_what_is_seen_does_not_depend_on_where():
    layer = WhatAndWhere(6, 4, 6)
    h = torch.zeros(2, 6, 4, 6)
    h[0, 2, 1, 1] = h[1, 2, 2, 4] = 3.0  # the same thing, elsewhere
    out = layer(h)
    assert out.shape == (2, layer.dim_out)
    what, where = out[:, :12], out[:, 12:]
    assert torch.equal(what[0], what[1])
    assert what[0, 2] == 3 / 24
    assert what[0, 8] == 3
    assert not torch.allclose(where[0], where[1])


def test_a_basic_block_is_what_he_et_al_draw():
    torch.manual_seed(0)
    block = BasicBlock(3, 5, 2).double().eval()
    h = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    conv = torch.nn.functional.conv2d
    inner = conv(h, block.main[0].weight, stride=2, padding=1)
    inner = (inner / (1 + 1e-5) ** 0.5).clamp_min(0)
    inner = conv(inner, block.main[3].weight, padding=1) / (1 + 1e-5) ** 0.5
    skip = conv(h, block.skip[0].weight, stride=2) / (1 + 1e-5) ** 0.5
    assert torch.allclose(block(h), (inner + skip).clamp_min(0), atol=1e-12)


def test_channels_are_centred_and_scaled_and_a_constant_one_goes_to_zero():
    x = (
        torch.rand(200, 3, 4, 4, dtype=torch.float64)
        * torch.tensor([1.0, 100.0, 0.0])[:, None, None]
        + torch.tensor([0.0, -50.0, 7.0])[:, None, None]
    )
    scaled = ChannelScaling((3, 4, 4)).double().fit(x)(x)
    assert scaled[:, :2].mean(dim=(0, 2, 3)).abs().max() < 1e-12
    assert torch.allclose(
        scaled[:, :2].std(dim=(0, 2, 3), correction=0), torch.ones(2, dtype=torch.float64)
    )
    assert (scaled[:, 2] == 0).all()


def test_a_model_folder_gives_the_same_bits(encoder, tmp_path):
    save_encoder(encoder, tmp_path / "model")
    x = torch.rand(3, *SHAPE)
    assert torch.equal(load_encoder(tmp_path / "model")(x), encoder(x))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"body": "resnet1000"}, "unknown body"),
        ({"body": ["compact"]}, "unknown body"),
        ({"dim_in": 12}, "shape of images"),
        ({"dim_in": [3, 2**40, 2**40]}, "shape of images"),
        ({"dim_in": [3, 8, 8]}, "at least 16 x 16 pixels"),
        ({"dim_in": [3, 64, 80]}, "checksum|bytes"),
        ({"hidden": [8]}, "unknown settings"),
    ],
)
def test_folders_that_describe_another_model_are_refused(change, words, tmp_path):
    save_encoder(built("compact"), tmp_path)
    file = tmp_path / "model.json"
    described = json.loads(file.read_text())
    described["encoder"] |= change
    file.write_text(json.dumps(described))
    with pytest.raises(DemixError, match=words):
        load_encoder(tmp_path)


def test_onnx_graphs_give_the_same_latents(encoder, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    from demix import export_onnx

    path = export_onnx(encoder, tmp_path / "model.onnx")
    x = torch.rand(3, *SHAPE)
    (z,) = runtime.InferenceSession(path).run(None, {"x": x.numpy()})
    assert np.abs(z - encoder(x).detach().numpy()).max() < 1e-4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dim_in": 12, "body": "compact"}, "takes images"),
        ({"dim_in": (3, 8, 8), "body": "kitti"}, "at least 16 x 16"),
        ({"dim_in": (3, 32, 32), "body": "vgg"}, "Unknown body 'vgg'; known are mlp, kitti"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(arguments, words):
    with pytest.raises(DemixError, match=words):
        Encoder(space=Sphere(3), **arguments)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_estimators_take_a_body_by_name(tmp_path):
    # A bright spot that walks around the picture.
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.4, 600))
    across, down = np.mgrid[-1:1:16j, -1:1:16j]
    x, y = 0.6 * np.cos(angle), 0.6 * np.sin(angle)
    spot = np.exp(-((across - x[:, None, None]) ** 2 + (down - y[:, None, None]) ** 2) / 0.1)
    images = spot[:, None].astype(np.float32)
    demixer = ContrastiveDemixer(
        2,
        encoder="kitti",
        recipe=Recipe(steps=20, batch=64, optimizer="adam", rate=1e-3),
        random_state=0,
    ).fit(images)
    assert demixer.gain_.above_zero
    assert any("Channels" in note for note in demixer.notes_)
    demixer.save(tmp_path)
    again = load_model(tmp_path)
    assert np.array_equal(again.transform(images), demixer.transform(images))
    assert again.encoder == "kitti"
    with pytest.raises(DemixError, match="takes images"):
        ContrastiveDemixer(2, encoder="kitti").fit(images.reshape(600, -1))
