"""Folders that a command writes to: its own, and as they were if it comes to nothing."""

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
from demix._support.outputs import claim_folder, read_marker, tidied
from demix._support.process_group.group import LostRank
from demix.cli.console import console

_UNFINISHED = "unfinished"


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
    """Give a folder for one result, and the origin of it, which its marker names.

    A folder that holds a finished result is given only to ``overwrite`` it, and never one that an
    input lies in. Input that is refused leaves everything as it was. Ctrl-C, the loss of a rank
    and a disk that fills up leave what a second try goes on from. Until all is written, the folder
    is locked.

    Parameters
    ----------
    out : Path
        The folder.
    marker : str
        The JSON file that tells whose folder it is; marked by :func:`begin` before the first file
        of the result is written, and written by :func:`finish` after the last.
    command : str
        The command, such as ``demix fit``.
    inputs : sequence of Path
        What is read; None stands for an input that is not given.
    overwrite : bool
        Whether a finished result may be replaced.
    about : mapping, optional
        What the origin tells besides the command.
    leftovers : sequence of str
        Files that may have been written by the time that input is refused.
    resumes : bool
        Whether the same command goes on where an interrupted one stopped.
    """
    given = [place for place in inputs if place is not None]
    with tidied(out):
        folder = claim_folder(out, marker, command=command, inputs=given)
        with lock_folder(folder):
            before = _before(folder, marker, command, overwrite)
            new = [name for name in (marker, *leftovers) if not (folder / name).exists()]
            origin = _origin(about or {})
            if before is None:
                begin(folder / marker, origin)
            try:
                yield folder, origin
            except KeyboardInterrupt:
                if not resumes:
                    _restore(folder, marker, before, new)
                told = "the same command goes on where it stopped" if resumes else "nothing is new"
                console(errors=True).print(f"Interrupted; {told}.")
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
    """Give a folder as :func:`claimed` does, or only the origin if there is to be none."""
    if out is None:
        yield None, _origin(about)
        return
    with claimed(out, marker, about=about, **rest) as found:
        yield found


def begin(marker: Path, origin: Mapping[str, str]) -> None:
    """Mark a result as unfinished, before the first of its files is written.

    A result that is to be replaced stays what it is until then, and its numbers until the end.
    """
    before = read_marker(marker)
    finish(marker, {"provenance": origin, **(before or {}), _UNFINISHED: True})


def finish(marker: Path, data: Mapping[str, Any]) -> None:
    """Write the marker of a folder: the last of its files, when all the others are there."""
    write_atomic(marker, json.dumps(data, indent=2) + "\n")


def _origin(about: Mapping[str, str]) -> dict[str, str]:
    return {"command": shlex.join(["demix", *sys.argv[1:]]), **about}


def _before(folder: Path, marker: str, command: str, overwrite: bool) -> bytes | None:
    """Return what the marker held; a finished result is refused unless it is to be replaced."""
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
    """Leave the folder as it was."""
    if before is not None:
        write_atomic(folder / marker, before)
    for name in new:
        (folder / name).unlink(missing_ok=True)
