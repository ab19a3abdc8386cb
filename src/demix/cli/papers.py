"""Commands about papers, images, calibration and speed; each hands over to a module of its own."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from demix.cli.app import AsJson, Overwrite, app
from demix.errors import DemixError

# Rows or seeds that may be asked for at once; each is some seconds of work at least.
_MOST = 10_000


@app.command(epilog="Example:  demix demo --out demo-output")
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo-output"),
    seed: Annotated[int, typer.Option(help="Seed of mixing, weights and data.")] = 0,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Mix known factors nonlinearly, recover them, and report how well.

    Writes scores.json, report.html (one file, works offline) and a model folder.
    """
    from demix.cli.demo import run_demo

    run_demo(out, seed=seed, overwrite=overwrite, as_json=as_json)


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
    data: Annotated[
        list[Path] | None,
        typer.Option(help="Files or folders that the experiment needs; may be given twice."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Run cells at once: local, local:N (processes) or dask:ADDRESS (a cluster)."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: ./EXPERIMENT-SCALE.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a table or figure of a paper beside its published numbers.

    Writes results.json, table.md and table.html. An interrupted run goes on where it stopped:
    finished cells are never run twice.
    """
    chosen = None if rows is None else _numbers(rows, "--rows")
    counted = _numbers(seeds, "--seeds")
    from demix.workers import opened

    # Processes begin to import what they need, while this one does the same.
    with nullcontext() if executor is None else opened(executor) as engine:
        from demix.cli.reproduction import run_reproduce

        run_reproduce(
            experiment,
            rows=chosen,
            seeds=counted,
            scale=scale,
            data=data or [],
            executor=engine,
            out=out,
            as_json=as_json,
        )


@app.command(epilog="Example:  demix download shapes3d --out data")
def download(
    dataset: Annotated[
        str,
        typer.Argument(
            help="dsprites, shapes3d, mpi3d_toy, mpi3d_realistic, mpi3d_real, cars3d or smallnorb."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the files.")],
    source: Annotated[
        str | None, typer.Option(help="Address of a mirror with files of the official names.")
    ] = None,
    checksum: Annotated[
        str | None, typer.Option(help="Check this, e.g. sha256:..., in place of the known one.")
    ] = None,
) -> None:
    """Fetch the official files of a data set, and check them.

    What breaks off goes on where it ended, also with the same command another day. Files that are
    there already, perhaps put there by hand, are only checked.
    """
    from demix.cli.downloading import run_download

    run_download(dataset, out=out, source=source, checksum=checksum)


@app.command(epilog="Example:  demix render 3dident --n 250000 --size 64 --out images")
def render(
    scene: Annotated[str, typer.Argument(help="3dident, causal3dident, shapes or sprites.")],
    n: Annotated[int, typer.Option("--n", help="How many images.")] = 1000,
    size: Annotated[int, typer.Option(help="Width and height of images.")] = 64,
    seed: Annotated[int, typer.Option(help="Seed of the latents.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder to write to.")] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="Render positives too, e.g. normal:0.1 or laplace:0.05 around latents."),
    ] = None,
    preview: Annotated[
        Path | None, typer.Option(help="PNG file for a contact sheet: what each latent does.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="embree, or blender for the slow reference.")
    ] = "embree",
    jobs: Annotated[
        int | None, typer.Option(help="How many processes; default: one for each core.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Render images from known latents: 3DIdent and its relatives.

    Writes images.npy, latents.npy and meta.json. An interrupted run goes on where it stopped, and
    the bytes depend on nothing but the seed.
    """
    from demix.cli.rendering import run_render
    from demix.scenes import Order

    order = Order(scene, n=n, size=size, seed=seed, pairs=pairs, engine=engine)
    run_render(order, out=out, preview=preview, jobs=jobs, overwrite=overwrite)


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
    overwrite: Overwrite = False,
) -> None:
    """Measure losses, steps, samplers, scores and estimators beside their peers.

    Everything is timed side by side in one run, beside the bars it must pass. In full this takes
    about a quarter of an hour on two cores, which should have nothing else to do.
    """
    from demix.cli.benchmark import run_bench

    chosen = None if sections is None else sections.split(",")
    run_bench(json_file, quick=quick, sections=chosen, overwrite=overwrite)


def _numbers(text: str, option: str) -> list[int]:
    """Read ``1,2,5-7``."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            first, dash, last = part.strip().partition("-")
            span = range(int(first), int(last if dash else first) + 1)
            if not span or span[-1] - span[0] + len(numbers) >= _MOST:
                raise ValueError(part)
            numbers += span
    except ValueError:
        raise DemixError(
            f"{option} takes whole numbers such as 1,2,5-7, at most {_MOST} of them, but got "
            f"{text!r}."
        ) from None
    return numbers
