"""Where results may be written: never over an input, over a result only if that is asked for."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError, reason
from demix._support.files import check_free, claiming, is_temporary, kind_of, open_regular

# The largest marker that is read; a stranger's file may have any size.
_MOST = 2**24
# Of other files as much is read as the header of the largest model has.
_HEAD = 2**18
# Patterns of how files of demix begin, which no file of others does by accident. The length in the
# header of an array is that of new_array only.
ARRAY = rb"\x93NUMPY\x01\0\xb6\0{'descr': '<f4', 'fortran_order': False, 'shape': \(\d+, \d+\), }"
PAGE = rb'<!DOCTYPE html>.{48}<meta name="generator" content="demix">\n'


def claim_folder(
    path: str | Path, marker: str, *, command: str | None = None, inputs: Sequence[Path] = ()
) -> Path:
    """Return ``path`` as a folder to write to: new, empty, or one that was written to before.

    The latter holds the file ``marker``, whose provenance names ``command``, and none of
    ``inputs``. Any other folder is refused. Missing folders are made.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise DemixError(f"Expected a folder for the output, but {folder} is a file.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        present = any(not is_temporary(file) for file in folder.iterdir())
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("permission denied")
    except OSError as error:
        raise DemixError(
            f"Cannot use {folder} for the output: {reason(error)}; choose a folder you may write "
            "to."
        ) from error
    if present and not _is_ours(folder / marker, command):
        source = f" of '{command}'" if command else ""
        raise DemixError(
            f"{folder} holds something else (it is not empty and has no {marker}{source}); "
            "choose a new folder."
        )
    for file in inputs:
        if present and _lies_in(file, folder):
            raise DemixError(
                f"The output must not replace what is read, but {file} lies in {folder}; choose "
                "another folder."
            )
    return folder


@contextmanager
def tidied(folder: Path) -> Iterator[None]:
    """Remove a folder and its parents at the end if they are new and empty."""
    places = (folder, *folder.parents)
    new = [place for place in places if not os.path.exists(os.path.realpath(place))]
    try:
        yield
    finally:
        for place in new:
            with suppress(OSError):  # most often it is not empty
                place.rmdir()


@contextmanager
def claim_file(
    file: Path,
    option: str,
    *,
    suffix: str,
    start: bytes,
    inputs: Sequence[Path] = (),
    overwrite: bool = False,
) -> Iterator[None]:
    """Claim a file, which users call ``option``; raise if it must not be written.

    Its name must end in ``suffix``, in a folder that exists. ``inputs`` are never replaced; with
    ``overwrite`` an earlier result is, which begins like the pattern ``start``.
    """
    if file.suffix.lower() != suffix or not file.parent.is_dir():
        raise DemixError(
            f"{option} must name a new {suffix} file in an existing folder, but got {file}."
        )
    with claiming(file):
        if any(_lies_in(file, place) for place in inputs):
            raise DemixError(
                f"The output must not replace what is read, but {option} is {file}; choose another "
                "name."
            )
        refuse_other(file, start)
        if file.exists() and not overwrite:
            raise DemixError(
                f"{file} is there already; add --overwrite to replace it, or choose another name."
            )
        yield


def refuse_other(file: Path, start: bytes) -> None:
    """Raise if there is anything but a file that begins like ``start``, as those of demix do."""
    check_free(file)
    if not os.path.isfile(file):
        return
    with open_regular(file) as old:
        if not re.match(start, old.read(_HEAD), re.DOTALL):
            raise DemixError(
                f"{file} holds something else (not what demix writes there); choose another name."
            )


def check_folder(folder: Path) -> None:
    """Raise if something else, such as a link, stands in the place of a folder of demix."""
    with suppress(FileNotFoundError):
        kind = kind_of(folder.lstat().st_mode) or "a file"
        if kind != "a folder":
            raise DemixError(
                f"Expected {folder} to be a folder of demix, but it is {kind}; remove it or choose "
                "another folder."
            )


def read_marker(file: Path) -> Any:
    """Return the JSON of a marker, or None if it cannot be read."""
    try:
        with open_regular(file) as marker:
            return json.loads(marker.read(_MOST))
    except (OSError, ValueError, RecursionError):
        return None


def _is_ours(marker: Path, command: str | None) -> bool:
    if command is None:
        return marker.is_file()
    try:
        return str(read_marker(marker)["provenance"]["command"]).startswith(command)
    except (KeyError, TypeError):
        return False


def _lies_in(file: Path, place: Path) -> bool:
    """Whether a file is a place, or lies somewhere in it."""
    if not file.exists() or not place.exists():
        return False
    # Not by their names: one folder may have several, as where it is mounted twice.
    return any(os.path.samefile(place, found) for found in (file, *file.resolve().parents))
