"""``demix render``: images from known latents."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from demix._support.errors import DemixError
from demix.cli.app import app
from demix.cli.options import Overwrite

if TYPE_CHECKING:
    from rich.progress import Progress


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

    Writes images.npy, latents.npy and meta.json. An interrupted run continues where it stopped, and
    the bytes depend on the seed alone.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    from demix._support.outputs import claim_file
    from demix.cli.claims import origin_of
    from demix.cli.console import console
    from demix.cli.progress import title_column
    from demix.papers.scenes.folder import render_folder
    from demix.papers.scenes.order import Order
    from demix.papers.scenes.registry import write_preview

    order = Order(scene, n=n, size=size, seed=seed, pairs=pairs, engine=engine)
    if out is None and preview is None:
        raise DemixError("Nothing to render to: give --out DIR, --preview FILE.png, or both.")
    order.check()
    if preview is not None:
        claim_file(preview, "--preview", suffix=".png", start=b"\x89PNG", overwrite=overwrite)
        typer.echo(f"Wrote {write_preview(order.scene, preview)}")
    if out is None:
        return
    bar = Progress(
        title_column(),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console(errors=True),
    )
    command = origin_of({})["command"]
    try:
        render_folder(order, out, jobs=jobs, command=command, callback=_ImageCount(bar, scene, n))
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted; the same command continues.")
        raise typer.Exit(130) from None
    finally:
        bar.stop()
    files = " and ".join(f"{name}.npy" for name in order.files.values())
    typer.echo(f"Wrote {order.n} images of {order.size} x {order.size} to {out} ({files})")


class _ImageCount:
    """Images rendered so far on a bar, with the number per second."""

    def __init__(self, bar: Progress, scene: str, n: int) -> None:
        self.bar = bar
        self.task = bar.add_task(scene, total=n, rate="", start=False)
        self.begun: tuple[float, int] | None = None

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if self.begun is None:
            self.begun = now, done
            # Not earlier: refused input shows no bar.
            self.bar.start()
            self.bar.start_task(self.task)
        begun, before = self.begun
        rate = f"{(done - before) / (now - begun):.3g} images/s" if done > before else ""
        self.bar.update(self.task, completed=done, rate=rate)
