"""``demix transform``: latents of a file, by a model folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

from demix.data import read_data
from demix.encoders import load_encoder
from demix.errors import DemixError
from demix.estimators import encode
from demix.estimators.encoding import block_rows
from demix.files import new_array
from demix.memory import check_memory
from demix.training.memory import encoding_bytes


def run_transform(
    model: Path, file: Path, out: Path, *, key: str | None, columns: list[str] | None
) -> None:
    """Write the latents of every row, block by block."""
    if out.suffix != ".npy" or not out.parent.is_dir():
        raise DemixError(f"--out must name an .npy file in an existing folder, but got {out}.")
    encoder = load_encoder(model)
    data = read_data(file, key=key, columns=columns)
    features, expected = int(np.prod(data.shape[1:])), int(np.prod(encoder.settings["dim_in"]))
    if features != expected:
        raise DemixError(
            f"{file} has {features} numbers in a row, but the model in {model} was fitted to "
            f"{expected}; give data of the same kind."
        )
    rows = min(len(data), block_rows(data))
    check_memory(
        encoding_bytes(encoder, rows),
        f"Encoding {rows} rows at a time",
        "take a machine with more",
    )
    with (
        new_array(out, (len(data), encoder.space.dim)) as latents,
        Progress(console=Console(stderr=True), transient=True) as progress,
    ):
        task = progress.add_task("transform", total=len(data))
        encode(encoder, data, latents, report=lambda done: progress.update(task, completed=done))
    typer.echo(f"Wrote {out}: {len(data)} rows of {encoder.space.dim} latents.")
