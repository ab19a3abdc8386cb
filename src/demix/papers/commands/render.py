"""``demix render``: images from known latents."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from demix._support.errors import DemixError
from demix.cli import ignore_interrupts
from demix.cli.options import app

if TYPE_CHECKING:
    from demix.papers.scenes.order import Order


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
    engine: Annotated[str, typer.Option(help="embree, or blender, the slow reference.")] = "embree",
    jobs: Annotated[int | None, typer.Option(help="Processes; default: one for each core.")] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier --preview; never --out.")
    ] = False,
) -> None:
    """Render images from known latents: 3DIdent and its relatives.

    Writes images.npy, latents.npy and meta.json. An interrupted run continues where it stopped, and
    the bytes depend on the seed alone.
    """
    from demix._support.outputs import claim_file
    from demix.cli.console import print_lines
    from demix.papers.scenes.order import Order
    from demix.papers.scenes.registry import write_preview
    from demix.report.static import FIGURE_MARKS

    order = Order(scene, n=n, size=size, seed=seed, pairs=pairs, engine=engine)
    if out is None and preview is None:
        raise DemixError("Nothing to render to: give --out DIR, --preview FILE.png, or both.")
    order.check()
    with ExitStack() as claims:
        if preview is not None:
            rules: dict[str, Any] = {"suffix": ".png", "start": FIGURE_MARKS["figure.png"]}
            claims.enter_context(claim_file(preview, "--preview", overwrite=overwrite, **rules))
        if out is not None:
            _render(order, out, jobs)
        # Last: the same command goes on after Ctrl-C, and one that is refused has written nothing.
        if preview is not None:
            print_lines(f"Wrote {write_preview(order.scene, preview)}")


def _render(order: Order, out: Path, jobs: int | None) -> None:
    """Render a folder, and show how far it is."""
    from demix._support.provenance import origin_of
    from demix.cli.console import console, print_lines
    from demix.cli.progress import training_bar
    from demix.papers.scenes.folder import render_folder

    bar = training_bar(console(errors=True))
    task = bar.add_task(order.scene, total=order.n, numbers="", start=False)
    begun: list[tuple[float, int]] = []

    def count(done: int) -> None:
        if not begun:
            begun.append((time.monotonic(), done))
            # Not earlier: refused input shows no bar.
            bar.start()
            bar.start_task(task)
        [(start, before)] = begun
        rate = (done - before) / (time.monotonic() - start) if done > before else 0
        bar.update(task, completed=done, numbers=f"{rate:.3g} images/s" if rate else "")
        bar.refresh()

    command = origin_of({})["command"]
    try:
        render_folder(order, out, jobs=jobs, command=command, callback=count)
    except KeyboardInterrupt:
        ignore_interrupts()
        console(errors=True).print("Interrupted; the same command continues.")
        raise typer.Exit(130) from None
    finally:
        bar.stop()
    files = " and ".join(f"{name}.npy" for name in order.files.values())
    print_lines(f"Wrote {order.n} images of {order.size} x {order.size} to {out} ({files})")
