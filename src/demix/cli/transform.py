"""``demix transform``: latents of a file, by a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from demix.cli.options import Columns, Header, Key, Overwrite, app, check_given


@app.command(epilog="Example:  demix transform model new.npy --out Z.npy")
def transform(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    data: Annotated[Path, typer.Argument(help="Rows of the kind that it was fitted to.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write.")],
    key: Key = None,
    columns: Columns = None,
    header: Header = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Write the latents of new rows; data may be larger than memory."""
    check_given(model, data)
    from demix._support.files import new_array
    from demix._support.memory import check_memory
    from demix._support.outputs import ARRAY, claim_file
    from demix.cli.console import console, print_lines
    from demix.cli.models import read_like
    from demix.cli.progress import counting_bar
    from demix.encoders.files import open_model
    from demix.estimators.encoding import block_rows, encode
    from demix.estimators.models import check_facts
    from demix.training.memory import encoding_bytes

    opened = open_model(model)
    check_facts(opened.about, model, complete=False)
    encoder = opened.encoder
    rows = read_like(opened, data, key=key, columns=columns, header=header)
    block = min(len(rows), block_rows(rows))
    what, advice = f"Encoding {block} rows at a time", "take a machine with more"
    check_memory(encoding_bytes(encoder, block), what, advice)
    # Last: what came while rows were read stays.
    inputs = [model, data]
    with (
        claim_file(out, "--out", suffix=".npy", start=ARRAY, inputs=inputs, overwrite=overwrite),
        new_array(out, (len(rows), encoder.space.dim)) as latents,
        counting_bar(console(errors=True)) as count,
    ):
        encode(encoder, rows, latents, callback=lambda done: count(done, len(rows), "transform"))
    print_lines(f"Wrote {out}: {len(rows)} rows of {encoder.space.dim} latents.")
