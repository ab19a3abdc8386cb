"""Encoders as ONNX files, which run without demix and torch.

Written by hand: torch's exporter does not give the same bytes for the same model.
"""

import json
import math
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from demix import __version__
from demix._support.errors import DemixError, need, warn
from demix._support.files import write_atomic
from demix._support.outputs import refuse_other
from demix.encoders.bodies import BasicBlock, ResidualLayer, ResidualMLP, WhatAndWhere
from demix.encoders.encoder import ChannelScaling, Encoder, Whitening
from demix.encoders.files import check_finite
from demix.spaces.base import Space
from demix.spaces.kinds import Box, L1Ball, Product, Real, Sphere

OPSET = 17  # old enough for runtimes on phones and in browsers; nothing needs a newer one
_IR_VERSION = 8
_SCHEMA = "1"

MARK = b"\x08\x08\x12\x05demix"
"""How an export begins: the version of the format, and its producer."""


def export_onnx(encoder: Encoder, path: str | Path) -> Path:
    """Write an encoder as one ONNX graph, from raw observations to latents.

    It takes ``x`` ``(batch, dim_in)``, or images ``(batch, C, H, W)``, to ``z`` ``(batch, n)``, all
    float32. The same encoder gives the same bytes. Needs the extra ``onnx``. A body, a space or an
    encoder class of your own has no ONNX form here.

    Parameters
    ----------
    encoder : Encoder
        The model, of any precision; batch normalisation is that of evaluation mode.
    path : path
        The file. An earlier export is replaced, any other file is refused.

    Examples
    --------
    >>> import tempfile
    >>> from demix import Encoder, Sphere, export_onnx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(Encoder(4, Sphere(3)), folder + "/model.onnx").name
    'model.onnx'
    """
    onnx = need("onnx", "Writing ONNX", "onnx")
    import_module("onnx.checker")
    refuse_other(Path(path), MARK)
    with torch.device("meta"):  # which allocates nothing
        built = Encoder(space=encoder.space, **encoder.settings)
    own, plain = (repr([f.whitening, f.body]) for f in (encoder, built))
    if own != plain or type(encoder).forward is not Encoder.forward:
        raise DemixError(
            "Only an encoder as Encoder builds it has an ONNX form here, but the layers or the "
            f"forward of this {type(encoder).__name__} were replaced; export it with torch.onnx."
        )
    check_finite(encoder.state_dict())
    if encoder.whitening.mean.dtype == torch.float64 != encoder.log_scale.dtype:
        warn(
            "The model was fitted to columns so far from zero that float32, which the ONNX file "
            "takes, loses digits of them; centre the data before the fit."
        )
    graph = _Graph(onnx)
    flatten = encoder.settings["body"] == "mlp" and len(encoder.shape) > 1
    white = graph.layer(encoder.whitening, graph.add("Flatten", "x") if flatten else "x")
    latents = graph.space(encoder.space, graph.layer(encoder.body, white))
    scale = encoder.space.expand_scale(encoder.log_scale.detach().float().exp())
    graph.add("Mul", latents, graph.constant("scale", scale), output="z")
    data = graph.model(encoder).SerializeToString(deterministic=True)
    onnx.checker.check_model(data, full_check=True)  # before it takes the place of an old file
    return write_atomic(path, data)


class _Graph:
    """Nodes and constants in the order they were added; every value has a name."""

    def __init__(self, onnx: ModuleType) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, name: str, value: Tensor | float | list[int]) -> str:
        """Store a number or a tensor as float32, or a list as int64, and return its name."""
        if isinstance(value, list):
            array = np.array(value, dtype=np.int64)
        else:
            tensor = torch.as_tensor(value).detach()
            array = tensor.to(device="cpu", dtype=torch.float32).contiguous().numpy()
            if np.isnan(array).any() or (name != "deviation" and np.isinf(array).any()):
                raise DemixError(
                    f"Expected a model whose numbers fit into float32, but its {name} does not; "
                    "train it again on data of a common scale."
                )
        name = f"{len(self.constants)}.{name}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output and return the name of that."""
        output = output or f"{len(self.nodes)}.{kind}"
        node = self.onnx.helper.make_node(kind, list(inputs), [output], output, **attributes)
        self.nodes.append(node)
        return output

    def model(self, encoder: Encoder) -> Any:
        """Return the finished model, with version and space in its metadata."""
        helper, number = self.onnx.helper, self.onnx.TensorProto.FLOAT
        x = helper.make_tensor_value_info("x", number, ["batch", *encoder.shape])
        z = helper.make_tensor_value_info("z", number, ["batch", encoder.space.dim])
        model = helper.make_model(
            helper.make_graph(self.nodes, "encoder", [x], [z], initializer=self.constants),
            ir_version=_IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
            producer_name="demix",
            producer_version=__version__,
        )
        space = json.dumps(encoder.space.to_dict(), sort_keys=True)
        helper.set_model_props(model, {"demix": __version__, "schema": _SCHEMA, "space": space})
        return model

    def layer(self, layer: nn.Module, h: str) -> str:
        return _LAYERS[type(layer)](self, layer, h)

    def space(self, space: Space, z: str) -> str:
        if type(space) not in _SPACES:  # a class derived from it may compute something else
            known = ", ".join(kind.__name__ for kind in _SPACES)
            raise DemixError(f"{type(space).__name__} has no ONNX form here; known are {known}.")
        return _SPACES[type(space)](self, space, z)

    def tensors(self, layer: nn.Module, *names: str) -> list[str]:
        """Store the tensors of a layer, without a bias that it does not have."""
        values = {name: getattr(layer, name) for name in names}
        return [self.constant(name, value) for name, value in values.items() if value is not None]

    def whitening(self, layer: Any, x: str) -> str:
        mean, matrix = self.tensors(layer, "mean", "matrix")
        return self.add("MatMul", self.add("Sub", x, mean), matrix)

    def channel_scaling(self, layer: Any, x: str) -> str:
        mean, deviation = self.tensors(layer, "mean", "deviation")
        return self.add("Div", self.add("Sub", x, mean), deviation)

    def sequential(self, layers: Any, h: str) -> str:
        for layer in layers:
            h = self.layer(layer, h)
        return h

    def linear(self, layer: Any, h: str) -> str:
        return self.add("Gemm", h, *self.tensors(layer, "weight", "bias"), transB=1)

    def residual(self, layer: Any, h: str) -> str:
        return self.add("Add", h, self.layer(layer.activation, self.linear(layer.linear, h)))

    def conv(self, layer: Any, h: str) -> str:
        tensors = self.tensors(layer, "weight", "bias")
        pads = [*layer.padding, *layer.padding]
        return self.add("Conv", h, *tensors, strides=list(layer.stride), pads=pads)

    def what_and_where(self, layer: Any, h: str) -> str:
        where = self.add("Flatten", self.add("Relu", self.conv(layer.where, h)))
        pooled = [self.add(f"Global{kind}Pool", h) for kind in ("Average", "Max")]
        return self.add("Concat", *(self.add("Flatten", part) for part in pooled), where, axis=1)

    def basic_block(self, layer: Any, h: str) -> str:
        both = self.add("Add", self.layer(layer.main, h), self.layer(layer.skip, h))
        return self.add("Relu", both)

    def max_pool(self, layer: Any, h: str) -> str:
        size, stride, pad = layer.kernel_size, layer.stride, layer.padding
        return self.add("MaxPool", h, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def batch_norm(self, layer: Any, h: str) -> str:
        tensors = self.tensors(layer, "weight", "bias", "running_mean", "running_var")
        return self.add("BatchNormalization", h, *tensors, epsilon=layer.eps)

    def gelu(self, layer: Any, h: str) -> str:
        # h/2 (1 + erf(h / sqrt 2)), since a node of its own came later than this opset.
        erf = self.add("Erf", self.add("Mul", h, self.constant("inner", math.sqrt(0.5))))
        twice = self.add("Mul", h, self.add("Add", erf, self.constant("one", 1.0)))
        return self.add("Mul", twice, self.constant("half", 0.5))

    def sphere(self, space: Any, z: str) -> str:
        norm = self.add("ReduceL2", z, axes=[-1], keepdims=1)
        # As in torch's normalize, so that a zero stays a zero.
        unit = self.add("Div", z, self.add("Max", norm, self.constant("least", 1e-12)))
        return self.add("Mul", unit, self.constant("radius", space.radius))

    def box(self, space: Any, z: str) -> str:
        side, low = self.constant("side", space.high - space.low), self.constant("low", space.low)
        return self.add("Add", self.add("Mul", self.add("Sigmoid", z), side), low)

    def l1_ball(self, space: Any, z: str) -> str:
        norm = self.add("ReduceL1", z, axes=[-1], keepdims=1)
        ball = self.add("Div", z, self.add("Add", norm, self.constant("one", 1.0)))
        return self.add("Mul", ball, self.constant("radius", space.radius))

    def product(self, space: Any, z: str) -> str:
        name = f"{len(self.nodes)}.Split"
        pieces = [f"{name}.{i}" for i in range(len(space.parts))]
        inputs = [z, self.constant("sizes", [part.dim for part in space.parts])]
        self.nodes.append(self.onnx.helper.make_node("Split", inputs, pieces, name, axis=-1))
        pairs = zip(space.parts, pieces, strict=True)
        return self.add("Concat", *[self.space(part, piece) for part, piece in pairs], axis=-1)


Form = Callable[[_Graph, Any, str], str]
"""Adds the nodes of a layer or a space to a graph: from the name of its input to its output's."""


def _node(kind: str) -> Form:
    return lambda graph, layer, h: graph.add(kind, h)


_LAYERS: dict[type[nn.Module], Form] = {
    Whitening: _Graph.whitening,
    ChannelScaling: _Graph.channel_scaling,
    nn.Sequential: _Graph.sequential,
    ResidualMLP: _Graph.sequential,
    nn.Linear: _Graph.linear,
    ResidualLayer: _Graph.residual,
    nn.BatchNorm1d: _Graph.batch_norm,
    nn.BatchNorm2d: _Graph.batch_norm,
    nn.SiLU: lambda graph, layer, h: graph.add("Mul", h, graph.add("Sigmoid", h)),
    nn.GELU: _Graph.gelu,
    nn.LeakyReLU: lambda graph, layer, h: graph.add("LeakyRelu", h, alpha=layer.negative_slope),
    nn.ReLU: _node("Relu"),
    nn.Conv2d: _Graph.conv,
    nn.MaxPool2d: _Graph.max_pool,
    nn.AdaptiveAvgPool2d: _node("GlobalAveragePool"),
    nn.Flatten: _node("Flatten"),
    WhatAndWhere: _Graph.what_and_where,
    BasicBlock: _Graph.basic_block,
}
_SPACES: dict[type[Space], Form] = {
    Sphere: _Graph.sphere,
    Box: _Graph.box,
    Real: lambda graph, space, z: z,
    L1Ball: _Graph.l1_ball,
    Product: _Graph.product,
}
