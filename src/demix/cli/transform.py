"""``demix transform``: latents of a file, by a model folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import typer

from demix._support.errors import DemixError
from demix._support.files import new_array
from demix._support.memory import check_memory
from demix._support.outputs import claim_file
from demix.cli.bars import counting_bar
from demix.cli.console import console
from demix.cli.fitted import read_like
from demix.encoders.files import open_model
from demix.estimators.encoding import block_rows, encode
from demix.estimators.facts import check_facts
from demix.training.memory import encoding_bytes


def run_transform(
    model: Path,
    file: Path,
    out: Path,
    *,
    key: str | None,
    columns: list[str] | None,
    header: str,
    overwrite: bool,
) -> None:
    """Write the latents of every row, block by block."""
    claim_file(
        out,
        "--out",
        suffix=".npy",
        start=b"\x93NUMPY",
        inputs=[model, file],
        overwrite=overwrite,
    )
    opened = open_model(model)
    check_facts(opened.about, model, complete=False)
    encoder = opened.encoder
    data = read_like(opened, file, key=key, columns=columns, header=header)
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
        counting_bar(console(errors=True)) as count,
    ):
        encode(encoder, data, latents, callback=lambda done: count(done, len(data), "transform"))
    typer.echo(f"Wrote {out}: {len(data)} rows of {encoder.space.dim} latents.")
