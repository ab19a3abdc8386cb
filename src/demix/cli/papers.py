"""Commands about papers and images; each hands over to a module of its own."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from demix.cli.app import AsJson, Overwrite, app
from demix.cli.numbers import numbers

# What the jobs of a sweep import; torch's optimisers would import the second one by themselves.
PRELOAD = ("demix.papers.experiments", "demix.papers.runner.reproduce", "torch._dynamo")


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
            help="Run jobs at once: local, local:N (processes) or dask:ADDRESS (a cluster)."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder; default: ./EXPERIMENT-SCALE.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run a table or figure of a paper beside its published numbers.

    Writes results.json, table.md and table.html. An interrupted run goes on where it stopped:
    finished jobs are never run twice.
    """
    chosen = None if rows is None else numbers(rows, "--rows")
    counted = numbers(seeds, "--seeds")
    from demix._support.workers.executors import open_executor

    # Processes begin to import what they need, while this one does the same.
    with nullcontext() if executor is None else open_executor(executor, preload=PRELOAD) as engine:
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
    from demix.papers.scenes.order import Order

    order = Order(scene, n=n, size=size, seed=seed, pairs=pairs, engine=engine)
    run_render(order, out=out, preview=preview, jobs=jobs, overwrite=overwrite)
