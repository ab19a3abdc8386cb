"""``demix export``."""

from __future__ import annotations

import json
from pathlib import Path

import typer

from demix.encoders import export_onnx, load_encoder
from demix.errors import DemixError


def run_export(model: Path, file: Path, *, as_json: bool) -> None:
    """Write the encoder in the folder ``model`` to an ONNX file; say what goes in and out."""
    _check_place(file)
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


def _check_place(file: Path) -> None:
    """Refuse a place without a folder, and one that holds something of the user's."""
    if not file.parent.is_dir():
        raise DemixError(
            f"Expected an existing folder for the output, but there is no {file.parent}; make it "
            "or choose another."
        )
    try:
        with file.open("rb") as old:
            start = old.read(32)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DemixError(
            f"--onnx must name a file that can be written, but got {file}: {error.strerror}."
        ) from error
    # The second entry of an ONNX file is its producer: a mark, the length, the name.
    if b"\x12\x05demix" not in start:
        raise DemixError(f"{file} holds something else (no export of demix); choose a new file.")
