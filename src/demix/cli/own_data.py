"""Commands about data of one's own; each hands over to a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demix.cli.app import AsJson, Overwrite, app
from demix.cli.given import check_given
from demix.cli.options import Options

if TYPE_CHECKING:
    from demix.data.data import Data

# What ``fit`` and ``consensus`` are told.
DataFile = Annotated[
    Path, typer.Argument(help="Rows: .npy, .npz, .csv, .parquet, .zarr or a folder of images.")
]
PairsFile = Annotated[
    Path | None, typer.Option(help="Row numbers of positive pairs, (P, 2), .npy or .csv.")
]
Lag = Annotated[
    str | None, typer.Option(help="Rows are in time order; lag or range, e.g. 1:5. Default: 1.")
]
LabelsFile = Annotated[Path | None, typer.Option(help="The class of each row, .npy or .csv.")]
Instances = Annotated[
    bool, typer.Option("--instances", help="Tell noisy views of each row from all others.")
]
TimeFile = Annotated[
    Path | None, typer.Option(help="The time of each row, .npy or .csv, to check the order.")
]
SpaceName = Annotated[
    str | None, typer.Option(help="sphere (default for pairs), box, l1_ball or real.")
]
Conditional = Annotated[
    str | None, typer.Option(help="vmf, normal, laplace, a shape p, anisotropic or auto.")
]
Latents = Annotated[int, typer.Option(help="Number of latents.")]
Key = Annotated[str | None, typer.Option(help="Which array of an .npz or .zarr file.")]
Header = Annotated[
    str, typer.Option(help="Whether the first line of a csv file is a header: auto, yes or no.")
]
Columns = Annotated[str | None, typer.Option(help="Which columns of a table, e.g. speed,height.")]


@app.command(epilog="Example:  demix fit series.csv --lag 1:5 --n-latents 3 --out model")
def fit(
    data: DataFile,
    out: Annotated[Path, typer.Option(help="Folder for model, latents and report.")],
    pairs: PairsFile = None,
    lag: Lag = None,
    labels: LabelsFile = None,
    instances: Instances = False,
    time: TimeFile = None,
    space: SpaceName = None,
    conditional: Conditional = None,
    n_latents: Latents = 3,
    seed: Annotated[int, typer.Option(help="Seed of weights, batches and held-out parts.")] = 0,
    key: Key = None,
    columns: Columns = None,
    header: Header = "auto",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Recover latents from your own data: from pairs, time order, labels or rows alone.

    Part of the data is held out; the model is compared with permuted pairs or labels. Writes a
    model folder with latents.npy and report.html. A killed run goes on where it stopped.
    """
    options = Options.of(locals())
    rows = _rows(options)
    from demix.cli.fit import run_fit

    run_fit(options, rows, out, overwrite=overwrite, as_json=as_json)


@app.command(epilog="Example:  demix consensus series.csv --lag 1:5 --seeds 5 --out agreed")
def consensus(
    data: DataFile,
    out: Annotated[Path, typer.Option(help="Folder for runs, latents and report.")],
    seeds: Annotated[int, typer.Option(help="How many runs, each with another seed.")] = 5,
    held_out: Annotated[
        float, typer.Option(help="Share of the rows that no run is fitted to.")
    ] = 0.25,
    group: Annotated[
        str | None,
        typer.Option(
            help="What runs may differ by: orthogonal, permutation, linear or affine. Default: "
            "what theory leaves open."
        ),
    ] = None,
    pairs: PairsFile = None,
    lag: Lag = None,
    labels: LabelsFile = None,
    instances: Instances = False,
    time: TimeFile = None,
    space: SpaceName = None,
    conditional: Conditional = None,
    n_latents: Latents = 3,
    seed: Annotated[int, typer.Option(help="Seed of the first run.")] = 0,
    key: Key = None,
    columns: Columns = None,
    header: Header = "auto",
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fit with several seeds, and keep the latents that the runs agree on.

    No factors need to be known: on held-out rows each run is compared with the consensus of the
    others. Writes consensus.json, latents.npy, report.html and a model folder for each run. A
    killed command goes on where it stopped.
    """
    options = Options.of(locals())
    rows = _rows(options)
    from demix.cli.consensus import run_consensus

    run_consensus(
        options,
        rows,
        out,
        seeds=seeds,
        held_out=held_out,
        group=group,
        overwrite=overwrite,
        as_json=as_json,
    )


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
    from demix.cli.transform import run_transform

    chosen = None if columns is None else columns.split(",")
    run_transform(model, data, out, key=key, columns=chosen, header=header, overwrite=overwrite)


@app.command(epilog="Example:  demix report model --factors true.csv --out report")
def report(
    model: Annotated[Path, typer.Argument(help="A folder that 'demix fit' wrote.")],
    factors: Annotated[
        Path | None, typer.Option(help="Known factors of the fitted rows, to compare with.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The fitted images, to show examples along each latent.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: the model folder.")] = None,
    header: Header = "auto",
    overwrite: Overwrite = False,
) -> None:
    """Write report.html of a fit, one file that works offline."""
    check_given(model, factors, data)
    from demix.cli.reports import run_report

    run_report(model, factors, data, out, header=header, overwrite=overwrite)


@app.command(epilog="Example:  demix checkup model series.npy --out check")
def checkup(
    model: Annotated[Path, typer.Argument(help="A folder that 'demix fit' wrote.")],
    data: Annotated[Path, typer.Argument(help="The rows it was fitted to, or new ones.")],
    out: Annotated[Path, typer.Option(help="Folder for checkup.json and checkup.html.")],
    pairs: Annotated[
        Path | None, typer.Option(help="Row numbers of positives, as for 'demix fit'.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="The class of each row.")] = None,
    key: Key = None,
    columns: Columns = None,
    header: Header = "auto",
    refits: Annotated[
        bool, typer.Option(help="Fit three times more, to check dimension and stability.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the simulated nulls.")] = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Check the assumptions that a model relies on: pass, warn or fail for each.

    Ends with the equivalence class that is supported, by which theorem, and the sentence for a
    paper. Looks at held-out rows only.
    """
    check_given(model, data, pairs, labels)
    from demix.cli.checking import run_checkup

    run_checkup(
        model,
        data,
        out,
        pairs=pairs,
        labels=labels,
        key=key,
        columns=None if columns is None else columns.split(","),
        header=header,
        refits=refits,
        seed=seed,
        overwrite=overwrite,
        as_json=as_json,
    )


@app.command(epilog="Example:  demix compare model-a model-b --out comparison")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that 'demix fit' wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("comparison"),
    overwrite: Overwrite = False,
) -> None:
    """Put several fits side by side on one page."""
    check_given(*runs)
    from demix.cli.reports import run_compare

    run_compare(runs, out, overwrite=overwrite)


@app.command(epilog="Example:  demix evaluate --latents Z.npy --factors F.npy --out scores")
def evaluate(
    latents: Annotated[Path, typer.Option(help="Recovered latents, a row for each sample.")],
    factors: Annotated[Path, typer.Option(help="True factors, a row for each sample.")],
    categorical: Annotated[
        str | None,
        typer.Option(
            help="Factors that are categories, by name or number from 0, e.g. shape,3; or none. "
            "Default: text, and whole numbers of at most 20 values."
        ),
    ] = None,
    header: Header = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for scores.json and report.html.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Score the representation of any model against known factors.

    R², MCC, DCI, MIG, SAP, modularity, explicitness, InfoMEC, beta-VAE and FactorVAE scores, and
    linear accuracy for categories; each with an interval, its chance level and what it certifies.
    """
    check_given(latents, factors)
    from demix.cli.evaluate import run_evaluate

    run_evaluate(
        latents,
        factors,
        categorical=categorical,
        header=header,
        out=out,
        overwrite=overwrite,
        as_json=as_json,
    )


@app.command(
    epilog="Example:  demix probe features.npy factors.csv --out probed\n\n"
    "Example:  demix probe features.parquet factors.csv --join file --kind angle=periodic:360"
)
def probe(
    features: Annotated[
        Path, typer.Argument(help="The representation, a row for each sample: .npy, .csv, ...")
    ],
    factors: Annotated[
        Path, typer.Argument(help="Known factors, numbers or text: .csv, .parquet or .npy.")
    ],
    only: Annotated[
        str | None, typer.Option("--factors", help="Only some factors, e.g. size,shape.")
    ] = None,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            help="Kind of a factor: NAME=continuous, ordinal, categorical, binary or "
            "periodic:PERIOD; may be given several times. Default: text and whole numbers of at "
            "most 20 values are categories.",
        ),
    ] = None,
    join: Annotated[
        str | None, typer.Option(help="Column of names that says which rows belong together.")
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(help="Names of the rows of FEATURES, .txt, .csv or .npy, if it has none."),
    ] = None,
    key: Key = None,
    header: Header = "auto",
    out: Annotated[
        Path | None, typer.Option(help="Folder for probe.json, figure.svg and report.html.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of parts, null and intervals.")] = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Ask which factors a linear map reads out of any representation, and whether by chance.

    Numbers by ridge regression, categories by logistic regression, on rows held out; each with an
    interval, an exact permutation null, and Bonferroni and Benjamini-Hochberg control.
    """
    check_given(features, factors, names)
    from demix.cli.probing import run_probe

    run_probe(
        features,
        factors,
        only=only,
        kinds=kinds or [],
        join=join,
        names=names,
        key=key,
        header=header,
        out=out,
        seed=seed,
        overwrite=overwrite,
        as_json=as_json,
    )


@app.command(epilog="Example:  demix export demo-output/model --onnx model.onnx")
def export(
    model: Annotated[Path, typer.Argument(help="Model folder, such as demo-output/model.")],
    onnx: Annotated[Path, typer.Option(help="ONNX file to write.")],
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a model as one ONNX file, which runs without demix and torch.

    Whitening and the projection to the latent space are part of it; the batch may have any size.
    """
    check_given(model)
    from demix.cli.export import run_export

    run_export(model, onnx, overwrite=overwrite, as_json=as_json)


def _rows(options: Options) -> Data:
    """Read the rows, before libraries are loaded that learn from them: bad ones are told soon."""
    check_given(*options.inputs)
    from demix.cli.rows import read_rows

    return read_rows(options)
