"""``demix report``: the page of a fit, compared with known factors if they are given."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from demix._support.errors import DemixError
from demix.cli.options import HELPS, FitFolder, Header, Overwrite, app, check_given


@app.command(epilog="Example:  demix report model --factors true.csv --out report")
def report(
    model: FitFolder,
    factors: Annotated[Path | None, typer.Option(help=HELPS["fitted_factors"])] = None,
    data: Annotated[Path | None, typer.Option(help=HELPS["fitted_images"])] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: the model folder.")] = None,
    header: Header = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Write report.html of a fit, one file that works offline."""
    check_given(model, factors, data)
    from demix._support.files import claiming
    from demix._support.outputs import PAGE, claim_file
    from demix._support.validation import check_matrix
    from demix.cli.console import print_lines
    from demix.cli.models import latents_of, open_fit, read_like, write_fit_page
    from demix.data.reading import read_data

    folder = model if out is None else out
    inputs = [place for place in (factors, data) if place is not None]
    page = folder / "report.html"
    options: dict[str, Any] = {"suffix": ".html", "start": PAGE, "inputs": inputs}
    options["overwrite"] = overwrite
    there = os.path.exists(os.path.realpath(folder))  # also behind a/.., though there is no a
    with claim_file(page, "--out", **options) if there else claiming(folder):
        fitted = open_fit(model)
        count = len(latents_of(model, fitted))
        known = None if factors is None else read_data(factors, header=header)
        if known is not None and (known.shape[0] != count or len(known.shape) != 2):
            raise DemixError(
                f"Factors must be a matrix with a row for each of the {count} fitted rows, but "
                f"{factors} has shape {known.shape}."
            )
        images = None if data is None else read_like(fitted, data, header=header)
        if images is not None and images.digest() != fitted.about["data"]:
            raise DemixError(f"{model} was fitted to other data than {data}; give the same data.")
        true = None if known is None else check_matrix(known.array(), "factors")
        names = None if known is None else known.names
        written = write_fit_page(model, folder, data=images, factors=true, factor_names=names)
    print_lines(f"Wrote {written}")
