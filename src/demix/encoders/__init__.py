"""Encoders: whitening, body and output space, and their files."""

from demix.encoders.encoder import Encoder, paper_encoder
from demix.encoders.files import Model, load_encoder, open_model, save_encoder
from demix.encoders.images import ChannelScaling
from demix.encoders.onnx import export_onnx
from demix.encoders.whitening import Whitening

__all__ = [
    "ChannelScaling",
    "Encoder",
    "Model",
    "Whitening",
    "export_onnx",
    "load_encoder",
    "open_model",
    "paper_encoder",
    "save_encoder",
]
