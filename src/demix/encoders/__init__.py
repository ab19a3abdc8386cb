"""Encoders: whitening, body and output space, and their files."""

from demix.encoders.encoder import Encoder, paper_encoder
from demix.encoders.files import load_encoder, save_encoder
from demix.encoders.onnx import export_onnx
from demix.encoders.whitening import Whitening

__all__ = [
    "Encoder",
    "Whitening",
    "export_onnx",
    "load_encoder",
    "paper_encoder",
    "save_encoder",
]
