"""Folders that a command writes to: its own, and as they were if it comes to nothing."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from rich.console import Console
from typer import Exit

from demix.errors import DemixError
from demix.files import is_trouble, write_atomic
from demix.locks import held
from demix.outputs import claim_folder
from demix.ranks import LostRank


@contextmanager
def claimed(
    out: Path, marker: str, *, command: str, about: dict[str, str], leftovers: Sequence[str]
) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give a folder to train into, and the origin that its marker tells.

    Input that is refused leaves everything as it was; ``leftovers`` are files that may have been
    written by then. Ctrl-C, the loss of a rank and a disk that fills up leave what a second try
    goes on from. Until all is written, the folder is locked.
    """
    new = [place for place in (out, *out.parents) if not place.exists()]
    folder = claim_folder(out, marker, command=command)
    try:
        with held(folder):
            yield from _claimed(folder, marker, about, leftovers)
    finally:
        for place in new:
            with suppress(OSError):  # most often it is not empty
                place.rmdir()


def _claimed(
    folder: Path, marker: str, about: dict[str, str], leftovers: Sequence[str]
) -> Iterator[tuple[Path, dict[str, str]]]:
    file = folder / marker
    before = file.read_bytes() if file.exists() else None
    origin = {"command": shlex.join(["demix", *sys.argv[1:]]), **about}
    write_atomic(file, json.dumps({"provenance": origin}, indent=2) + "\n")
    try:
        yield folder, origin
    except KeyboardInterrupt:
        Console(stderr=True).print("Interrupted; the same command goes on where it stopped.")
        raise Exit(130) from None
    except LostRank:
        raise
    except DemixError as error:
        if is_trouble(error):
            raise
        if before is not None:
            write_atomic(file, before)
            raise
        for name in (marker, *leftovers):
            (folder / name).unlink(missing_ok=True)
        raise
