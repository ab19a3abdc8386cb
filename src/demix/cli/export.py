"""``demix export``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from demix._support.outputs import claim_file
from demix.encoders.files import load_encoder
from demix.encoders.onnx import MARK, export_onnx


def run_export(model: Path, file: Path, *, overwrite: bool, as_json: bool) -> None:
    """Write the encoder in the folder ``model`` to an ONNX file; say what goes in and out."""
    claim_file(file, "--onnx", suffix=".onnx", start=MARK, inputs=[model], overwrite=overwrite)
    encoder = load_encoder(model)
    export_onnx(encoder, file)
    dim_in, n = encoder.settings["dim_in"], encoder.space.dim
    if as_json:
        data = {
            "file": str(file),
            "bytes": file.stat().st_size,
            "input": {"name": "x", "type": "float32", "shape": ["batch", dim_in]},
            "output": {"name": "z", "type": "float32", "shape": ["batch", n]},
            "space": encoder.space.to_dict(),
        }
        print(json.dumps(data, indent=2))
        return
    typer.echo(
        f"Wrote {file}: x (batch, {dim_in}) to z (batch, {n}) in {encoder.space!r}, in float32, "
        "for a batch of any size."
    )
