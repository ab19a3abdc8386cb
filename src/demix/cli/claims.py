"""Output folders: locked while a command writes, and restored if its input is refused."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from typer import Exit

from demix._support.errors import DemixError
from demix._support.files import is_os_error, write_atomic
from demix._support.locks import lock_folder
from demix._support.outputs import ARRAY, PAGE, claim_folder, read_marker, refuse_other, tidied
from demix._support.process_group.group import LostRank
from demix.cli.console import console

_UNFINISHED = "unfinished"
# Files that several commands write, and what is among their first bytes.
_MARKS = {
    "latents.npy": ARRAY,
    "model.safetensors": b'"dtype"',
    "report.html": PAGE,
    "checkup.html": PAGE,
}


@contextmanager
def claimed(
    out: Path,
    marker: str,
    *,
    command: str,
    inputs: Sequence[Path | None],
    overwrite: bool,
    about: Mapping[str, str] | None = None,
    leftovers: Sequence[str] = (),
    resumes: bool = False,
) -> Iterator[tuple[Path, dict[str, str]]]:
    """Lock a folder for one result; yield it and the origin that its marker names.

    A finished result is replaced only with ``overwrite``, and never if an input lies in the folder.
    Refused input leaves everything unchanged. Ctrl-C, a lost rank and a full disk leave files from
    which a second try continues.

    Parameters
    ----------
    out, inputs : Path, sequence of Path
        The folder, and the files that are read; None for an input that is not given.
    marker : str
        The JSON file that identifies the folder: :func:`begin` marks it before the first file of
        the result is written, and :func:`finish` writes it after the last.
    about : mapping, optional
        Entries of the origin besides the command.
    leftovers : sequence of str
        Files that may exist when input is refused.
    resumes : bool
        Whether the same command continues an interrupted one.
    """
    given = [place for place in inputs if place is not None]
    with tidied(out):
        folder = claim_folder(out, marker, command=command, inputs=given)
        with lock_folder(folder):
            before = _before(folder, marker, command, overwrite)
            for place in (folder, *folder.glob("seed-*"), folder / "model"):
                for name, mark in _MARKS.items():
                    refuse_other(place / name, mark)
            new = [name for name in (marker, *leftovers) if not (folder / name).exists()]
            origin = origin_of(about or {})
            if before is None:
                begin(folder / marker, origin)
            try:
                yield folder, origin
            except KeyboardInterrupt:
                if not resumes:
                    _restore(folder, marker, before, new)
                rest = "the same command continues" if resumes else "nothing was written"
                console(errors=True).print(f"Interrupted; {rest}.")
                raise Exit(130) from None
            except LostRank:
                raise
            except DemixError as error:
                if not is_os_error(error):
                    _restore(folder, marker, before, new)
                raise


@contextmanager
def claimed_if(
    out: Path | None, marker: str, *, about: Mapping[str, str], **rest: Any
) -> Iterator[tuple[Path | None, dict[str, str]]]:
    """Yield what :func:`claimed` yields, or None and the origin if there is no folder."""
    if out is None:
        yield None, origin_of(about)
        return
    with claimed(out, marker, about=about, **rest) as found:
        yield found


def origin_of(about: Mapping[str, str]) -> dict[str, str]:
    """Return the command line, and what else is known about the origin of a result."""
    return {"command": shlex.join(["demix", *sys.argv[1:]]), **about}


def begin(marker: Path, origin: Mapping[str, str]) -> None:
    """Mark a result as unfinished, before the first of its files is written.

    An earlier result keeps its numbers until the new one is finished.
    """
    before = read_marker(marker)
    finish(marker, {"provenance": origin, **(before or {}), _UNFINISHED: True})


def finish(marker: Path, data: Mapping[str, Any]) -> None:
    """Write the marker of a folder, after all its other files."""
    write_atomic(marker, json.dumps(data, indent=2) + "\n")


def _before(folder: Path, marker: str, command: str, overwrite: bool) -> bytes | None:
    """Return the content of the marker; refuse a finished result without ``overwrite``."""
    file = folder / marker
    if not file.exists():
        return None
    if _UNFINISHED not in read_marker(file) and not overwrite:
        raise DemixError(
            f"{folder} holds a finished result of '{command}'; add --overwrite to replace it, or "
            "choose a new folder."
        )
    return file.read_bytes()


def _restore(folder: Path, marker: str, before: bytes | None, new: Sequence[str]) -> None:
    """Undo what was written."""
    if before is not None:
        write_atomic(folder / marker, before)
    for name in new:
        (folder / name).unlink(missing_ok=True)
