"""``demix export``: an encoder as an ONNX file."""

from pathlib import Path
from typing import Annotated

import typer

from demix.cli.options import AsJson, Overwrite, app, check_given


@app.command(epilog="Example:  demix export demo-output/model --onnx model.onnx")
def export(
    model: Annotated[Path, typer.Argument(help="Model folder, such as demo-output/model.")],
    onnx: Annotated[Path, typer.Option(help="ONNX file to write.")],
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as one ONNX file, which runs without demix and torch.

    It includes whitening and the projection to the latent space; the batch may have any size.
    """
    check_given(model)
    from demix._support.outputs import claim_file
    from demix.cli.console import print_json, print_lines
    from demix.encoders.files import load_encoder
    from demix.encoders.onnx import MARK, export_onnx

    with claim_file(
        onnx, "--onnx", suffix=".onnx", start=MARK, inputs=[model], overwrite=overwrite
    ):
        encoder = load_encoder(model)
        export_onnx(encoder, onnx)
    dim_in, n = encoder.settings["dim_in"], encoder.space.dim
    about = {
        "file": str(onnx),
        "bytes": onnx.stat().st_size,
        "input": {"name": "x", "type": "float32", "shape": ["batch", dim_in]},
        "output": {"name": "z", "type": "float32", "shape": ["batch", n]},
        "space": encoder.space.to_dict(),
    }
    if as_json:
        print_json(about)
        return
    print_lines(
        f"Wrote {onnx}: x (batch, {dim_in}) to z (batch, {n}) in {encoder.space!r}, in float32, "
        "for a batch of any size."
    )
