"""The commands and their options; each hands over to a module of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from demix.errors import DemixError

app = typer.Typer(
    name="demix",
    help="Recover the factors behind data, and learn how far they can be trusted.",
    epilog="Start with:  demix demo --out demo-output",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")]

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
Columns = Annotated[str | None, typer.Option(help="Which columns of a table, e.g. speed,height.")]


def _version(asked: bool) -> None:
    if asked:
        from demix import __version__

        typer.echo(f"demix {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(epilog="Example:  demix demo --out demo-output")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of mixing, weights and data.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Mix known factors nonlinearly, recover them, and report how well.

    Writes scores.json, report.html (one file, works offline) and a model folder.
    """
    from demix.cli.demo import run_demo

    run_demo(out, seed=seed, as_json=as_json)


@app.command("list", epilog="Example:  demix list --json")
def list_experiments(as_json: AsJson = False) -> None:
    """List the experiments that can be reproduced, with their rows."""
    from demix.cli.listing import run_list

    run_list(as_json=as_json)


@app.command(epilog="Example:  demix reproduce clica-table1 --rows 2,3 --seeds 0,1,2 --out table1")
def reproduce(
    experiment: Annotated[str, typer.Argument(help="Name of the experiment; see 'demix list'.")],
    rows: Annotated[str | None, typer.Option(help="Row numbers from 1, e.g. 1,2,5-7.")] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0,1,2.")] = "0",
    scale: Annotated[
        str, typer.Option(help="smoke (seconds), laptop (two cores) or paper (GPU days).")
    ] = "laptop",
    out: Annotated[Path | None, typer.Option(help="Folder; default: ./EXPERIMENT-SCALE.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a table or figure of a paper beside its published numbers.

    Writes results.json, table.md and table.html. An interrupted run goes on where it stopped:
    finished cells are never run twice.
    """
    from demix.cli.reproduction import run_reproduce

    run_reproduce(
        experiment,
        rows=None if rows is None else _numbers(rows, "--rows"),
        seeds=_numbers(seeds, "--seeds"),
        scale=scale,
        out=out,
        as_json=as_json,
    )


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
    out: Annotated[
        Path | None, typer.Option(help="Folder for scores.json and report.html.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the representation of any model against known factors.

    R², MCC, DCI, MIG, SAP, modularity, explicitness, InfoMEC, beta-VAE and FactorVAE scores, and
    linear accuracy for categories; each with an interval, its chance level and what it certifies.
    """
    from demix.cli.evaluate import run_evaluate

    run_evaluate(latents, factors, categorical=categorical, out=out, as_json=as_json)


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
    as_json: AsJson = False,
) -> None:
    """Recover latents from your own data: from pairs, time order, labels or rows alone.

    Part of the data is held out; the model is compared with permuted pairs or labels. Writes a
    model folder with latents.npy and report.html. A killed run goes on where it stopped.
    """
    from demix.cli.fit import run_fit
    from demix.cli.options import Options

    run_fit(
        Options(
            data,
            pairs=pairs,
            lag=lag,
            labels=labels,
            instances=instances,
            time=time,
            key=key,
            columns=columns,
            space=space,
            conditional=conditional,
            n_latents=n_latents,
            seed=seed,
        ),
        out,
        as_json=as_json,
    )


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
            help="What runs may differ by: orthogonal, 'signed permutation' or affine. Default: "
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
    as_json: AsJson = False,
) -> None:
    """Fit with several seeds, and keep the latents that the runs agree on.

    No factors need to be known: on held-out rows each run is compared with the consensus of the
    others. Writes consensus.json, latents.npy, report.html and a model folder for each run. A
    killed command goes on where it stopped.
    """
    from demix.cli.consensus import run_consensus
    from demix.cli.options import Options

    run_consensus(
        Options(
            data,
            pairs=pairs,
            lag=lag,
            labels=labels,
            instances=instances,
            time=time,
            key=key,
            columns=columns,
            space=space,
            conditional=conditional,
            n_latents=n_latents,
            seed=seed,
        ),
        out,
        seeds=seeds,
        held_out=held_out,
        group=group,
        as_json=as_json,
    )


@app.command(epilog="Example:  demix transform model new.npy --out Z.npy")
def transform(
    model: Annotated[Path, typer.Argument(help="Model folder.")],
    data: Annotated[Path, typer.Argument(help="Rows of the kind that it was fitted to.")],
    out: Annotated[Path, typer.Option(help="The .npy file to write.")],
    key: Key = None,
    columns: Columns = None,
) -> None:
    """Write the latents of new rows; data may be larger than memory."""
    from demix.cli.transform import run_transform

    chosen = None if columns is None else columns.split(",")
    run_transform(model, data, out, key=key, columns=chosen)


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
) -> None:
    """Write report.html of a fit, one file that works offline."""
    from demix.cli.reports import run_report

    run_report(model, factors, data, out)


@app.command(epilog="Example:  demix checkup model series.npy --out check")
def checkup(
    model: Annotated[Path, typer.Argument(help="A folder that 'demix fit' wrote.")],
    data: Annotated[Path, typer.Argument(help="The rows it was fitted to, or new ones.")],
    out: Annotated[Path, typer.Option(help="Folder for checkup.json and checkup.html.")],
    pairs: Annotated[
        Path | None, typer.Option(help="Row numbers of positives, as for 'demix fit'.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="The class of each row.")] = None,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz or .zarr file.")] = None,
    columns: Annotated[
        str | None, typer.Option(help="Which columns of a table, e.g. speed,height.")
    ] = None,
    refits: Annotated[
        bool, typer.Option(help="Fit three times more, to check dimension and stability.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Seed of the simulated nulls.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Check the assumptions that a model relies on: pass, warn or fail for each.

    Ends with the equivalence class that is supported, by which theorem, and the sentence for a
    paper. Looks at held-out rows only.
    """
    from demix.cli.checking import run_checkup

    run_checkup(
        model,
        data,
        out,
        pairs=pairs,
        labels=labels,
        key=key,
        columns=None if columns is None else columns.split(","),
        refits=refits,
        seed=seed,
        as_json=as_json,
    )


@app.command(epilog="Example:  demix compare model-a model-b --out comparison")
def compare(
    runs: Annotated[list[Path], typer.Argument(help="Folders that 'demix fit' wrote.")],
    out: Annotated[Path, typer.Option(help="Folder for report.html.")] = Path("comparison"),
) -> None:
    """Put several fits side by side on one page."""
    from demix.cli.reports import run_compare

    run_compare(runs, out)


@app.command(epilog="Example:  demix export demo-output/model --onnx model.onnx")
def export(
    model: Annotated[Path, typer.Argument(help="Model folder, such as demo-output/model.")],
    onnx: Annotated[Path, typer.Option(help="ONNX file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a model as one ONNX file, which runs without demix and torch.

    Whitening and the projection to the latent space are part of it; the batch may have any size.
    An earlier export is replaced, any other file is left alone.
    """
    from demix.cli.export import run_export

    run_export(model, onnx, as_json=as_json)


@app.command(epilog="Example:  demix calibrate --seeds 0-19 --out calibration")
def calibrate(
    out: Annotated[Path, typer.Option(help="Folder for calibration.json and table.md.")],
    seeds: Annotated[str, typer.Option(help="Seeds, e.g. 0-19.")] = "0-19",
    rows: Annotated[int, typer.Option(help="Rows of each process.")] = 6000,
    jobs: Annotated[int, typer.Option(help="How many to run at once.")] = 2,
    processes: Annotated[
        str | None, typer.Option(help="Only some processes, with ; between their names.")
    ] = None,
) -> None:
    """Count how often the check-up is right, on processes that break one assumption or none.

    Takes about an hour and a half on two cores; a killed run goes on where it stopped.
    """
    from demix.cli.calibrating import run_calibrate

    only = None if processes is None else [name.strip() for name in processes.split(";")]
    run_calibrate(out, seeds=_numbers(seeds, "--seeds"), rows=rows, only=only, jobs=jobs)


@app.command(epilog="Example:  demix bench --json bench.json")
def bench(
    json_file: Annotated[Path | None, typer.Option("--json", help="File to write to.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Tiny sizes, to see it work; no bar is judged.")
    ] = False,
    sections: Annotated[
        str | None, typer.Option(help="Only some sections, e.g. contrast,step or estimators.")
    ] = None,
) -> None:
    """Measure losses, steps, samplers, scores and estimators beside their peers.

    Everything is timed side by side in one run, beside the bars it must pass. In full this takes
    about a quarter of an hour on two cores, which should have nothing else to do.
    """
    from demix.cli.benchmark import run_bench

    run_bench(json_file, quick=quick, sections=None if sections is None else sections.split(","))


def _numbers(text: str, option: str) -> list[int]:
    """Read ``1,2,5-7``."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            span = range(int(first), int(last if dash else first) + 1)
            if not span:
                raise ValueError(part)
            numbers += span
    except ValueError:
        raise DemixError(
            f"{option} takes whole numbers such as 1,2,5-7, but got {text!r}."
        ) from None
    return numbers
