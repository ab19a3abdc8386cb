"""Encoders: whitening, body and output space, and their files."""
