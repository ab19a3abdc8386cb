"""``demix render``: images from known latents."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from demix._support.errors import DemixError
from demix._support.outputs import claim_file
from demix.cli.console import console, title_column
from demix.papers.scenes.folder import render_folder
from demix.papers.scenes.order import Order
from demix.papers.scenes.preview import write_preview


def run_render(
    order: Order, *, out: Path | None, preview: Path | None, jobs: int | None, overwrite: bool
) -> None:
    """Render a folder with a bar, a contact sheet, or both."""
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
    command = shlex.join(["demix", *sys.argv[1:]])
    try:
        render_folder(order, out, jobs=jobs, command=command, watch=_Watch(bar, order))
    except KeyboardInterrupt:
        console(errors=True).print("Interrupted; the same command goes on where it stopped.")
        raise typer.Exit(130) from None
    finally:
        bar.stop()
    files = " and ".join(f"{name}.npy" for name in order.files.values())
    typer.echo(f"Wrote {order.n} images of {order.size} x {order.size} to {out} ({files})")


class _Watch:
    """Images rendered so far on a bar, with how many come a second."""

    def __init__(self, bar: Progress, order: Order) -> None:
        self.bar, self.order = bar, order
        self.task = bar.add_task(order.scene, total=order.n, rate="", start=False)
        self.begun: tuple[float, int] | None = None

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if self.begun is None:
            self.begun = now, done
            # Only now: input that is refused shows no bar.
            self.bar.start()
            self.bar.start_task(self.task)
        begun, before = self.begun
        rate = f"{(done - before) / (now - begun):.3g} images/s" if done > before else ""
        self.bar.update(self.task, completed=done, rate=rate)
