"""Encoders: whitening, body and output space, and their files; features of photographs."""

from demix.encoders.efficientnet import (
    EfficientNetLite0,
    efficientnet_lite0_file,
    load_efficientnet_lite0,
)
from demix.encoders.encoder import Encoder, paper_encoder
from demix.encoders.extraction import Features, features, read_features, write_features
from demix.encoders.files import Model, load_encoder, open_model, save_encoder
from demix.encoders.images import ChannelScaling
from demix.encoders.independent import independent_axes
from demix.encoders.onnx import export_onnx
from demix.encoders.projection import RandomProjection
from demix.encoders.slow import slow_directions
from demix.encoders.whitening import Whitening

__all__ = [
    "ChannelScaling",
    "EfficientNetLite0",
    "Encoder",
    "Features",
    "Model",
    "RandomProjection",
    "Whitening",
    "efficientnet_lite0_file",
    "export_onnx",
    "features",
    "independent_axes",
    "load_efficientnet_lite0",
    "load_encoder",
    "open_model",
    "paper_encoder",
    "read_features",
    "save_encoder",
    "slow_directions",
    "write_features",
]
