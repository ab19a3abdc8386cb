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

from demix.cli.console import console
from demix.errors import DemixError
from demix.files import is_trouble, write_atomic
from demix.locks import held
from demix.outputs import claim_folder, read_marker, tidied
from demix.ranks import LostRank

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
        The JSON file that tells whose folder it is; to be written last, by :func:`finish`.
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
        with held(folder):
            before = _before(folder, marker, command, overwrite, leftovers)
            origin = _origin(about or {})
            finish(folder / marker, {_UNFINISHED: True, "provenance": origin})
            try:
                yield folder, origin
            except KeyboardInterrupt:
                if not resumes:
                    _restore(folder, marker, before, leftovers)
                told = "the same command goes on where it stopped" if resumes else "nothing is new"
                console(errors=True).print(f"Interrupted; {told}.")
                raise Exit(130) from None
            except LostRank:
                raise
            except DemixError as error:
                if not is_trouble(error):
                    _restore(folder, marker, before, leftovers)
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


def finish(marker: Path, data: Mapping[str, Any]) -> None:
    """Write the marker of a folder: the last of its files, when all the others are there."""
    write_atomic(marker, json.dumps(data, indent=2) + "\n")


def _origin(about: Mapping[str, str]) -> dict[str, str]:
    return {"command": shlex.join(["demix", *sys.argv[1:]]), **about}


def _before(
    folder: Path, marker: str, command: str, overwrite: bool, leftovers: Sequence[str]
) -> bytes | None:
    """Return what the marker held; a finished result is refused unless it is to be replaced."""
    file = folder / marker
    if not file.exists():
        return None
    if _UNFINISHED not in read_marker(file):
        if not overwrite:
            raise DemixError(
                f"{folder} holds a finished result of '{command}'; add --overwrite to replace it, "
                "or choose a new folder."
            )
        _remove(folder, leftovers)  # nothing goes on from what is finished
    return file.read_bytes()


def _restore(folder: Path, marker: str, before: bytes | None, leftovers: Sequence[str]) -> None:
    """Leave the folder as it was."""
    if before is not None:
        write_atomic(folder / marker, before)
        return
    _remove(folder, (marker, *leftovers))


def _remove(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)
