"""Encoders: whitening, body and output space, and their files."""

from demix.encoders.encoder import Encoder, paper_encoder
from demix.encoders.files import load_encoder, save_encoder
from demix.encoders.whitening import Whitening

__all__ = ["Encoder", "Whitening", "load_encoder", "paper_encoder", "save_encoder"]
