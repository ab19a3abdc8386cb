"""Fetching official files: what breaks off goes on where it ended, and is checked in the end."""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError, need, reason, shortened, warn
from demix._support.files import open_regular, put_new, refused
from demix._support.locks import lock_folder
from demix._support.outputs import tidied
from demix._support.resources import table
from demix.papers.datasets.factor_images import Progress
from demix.papers.datasets.transfer import BrokenAnswer, Part, Transfer, failure

_CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}|sha1:[0-9a-f]{40}|md5:[0-9a-f]{32}", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://[^/]", re.IGNORECASE)


@dataclass(frozen=True)
class OfficialFile:
    """A file, the address of its folder, and checksum and size in bytes where they are known."""

    name: str
    place: str
    checksum: str | None = None
    size: int | None = None


OFFICIAL = {
    name: tuple(OfficialFile(**file) for file in files)
    for name, files in table("papers/datasets/official.toml").items()
}
"""The files of each data set, by its name."""


def fetch_dataset(
    name: str,
    folder: str | Path,
    *,
    source: str | None = None,
    checksum: str | None = None,
    callback: Progress = lambda done, total, what: None,
) -> Path:
    """Fetch the official files of a data set, unless they are there, and check them.

    A connection that breaks off is taken up again where it ended; what came so far is kept in
    ``NAME.demix-part``, also for later calls. An answer that cannot be the file, such as the page
    of a login, costs nothing of it. Files that are there already, perhaps put by hand, are only
    checked.

    Parameters
    ----------
    name : str
        ``dsprites``, ``shapes3d``, ``mpi3d_toy``, ``mpi3d_realistic``, ``mpi3d_real``, ``cars3d``
        or ``smallnorb``.
    folder : str or Path
        Where the files go.
    source : str, optional
        Address of a mirror that has files of the official names.
    checksum : str, optional
        What to check in place of the known checksum, such as ``sha256:...``; for data sets of one
        file. Of MPI3D realistic and real none is known for certain.
    callback : callable
        ``callback(done, total, what)``, in bytes.

    Returns
    -------
    Path
        What :func:`open_factor_images` takes: the file, or the folder if there are several.

    Examples
    --------
    >>> from demix.papers import fetch_dataset
    >>> fetch_dataset("dsprite", "data")
    Traceback (most recent call last):
    ...
    demix.DemixError: Unknown data set 'dsprite'; known are dsprites, ...
    """
    if name not in OFFICIAL:
        raise DemixError(f"Unknown data set {name!r}; known are {', '.join(OFFICIAL)}.")
    files, target = OFFICIAL[name], Path(folder)
    if checksum is not None and (len(files) > 1 or not _CHECKSUM.fullmatch(checksum)):
        raise DemixError(
            "A checksum is sha256:, sha1: or md5: with 64, 40 or 32 digits, of the one file of a "
            f"data set, but got {shortened(checksum)!r} for the {len(files)} of {name}."
        )
    if source is not None and not _ADDRESS.match(source):
        raise DemixError(
            "Expected a mirror whose address begins with http:// or https://, but got "
            f"{shortened(source)!r}; give such an address."
        )
    there = [file for file in files if os.path.lexists(target / file.name)]
    for file in there:
        _check(target / file.name, file.size, checksum or file.checksum)
    if len(there) < len(files):
        requests = need("requests", "Fetching data sets", "papers")
        with tidied(target):
            try:
                target.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise refused(target, error) from error
            with lock_folder(target):  # two processes would write into the same parts
                for file in (file for file in files if file not in there):
                    _fetch(file, target, source, checksum or file.checksum, callback, requests)
    return target if len(files) > 1 else target / files[0].name


def _fetch(
    file: OfficialFile,
    folder: Path,
    source: str | None,
    checksum: str | None,
    callback: Progress,
    requests: Any,
) -> None:
    target, part = folder / file.name, Part(folder / f"{file.name}.demix-part")
    url = f"{(source or file.place).rstrip('/')}/{file.name}"
    by_hand = f"fetch it by other means and put it at {target}"
    try:
        part.settle()  # what one that was killed left
        known = checksum is not None
        total = Transfer(url, part, file.size, known, callback, requests).run()
        with part.open() as came:
            os.fsync(came.fileno())
            right = _matches(came, checksum)
        if right:
            put_new(part.path, target)
        if right or total is not None:
            part.remove()
    except (requests.RequestException, BrokenAnswer) as error:
        kept = "; what came is kept, and the same call goes on after it" if part.size else ""
        raise DemixError(f"Cannot fetch {url} ({failure(error)}){kept}; or {by_hand}.") from error
    except OSError as error:
        raise DemixError(f"Cannot write to {folder}: {reason(error)}; or {by_hand}.") from error
    if not right:
        fate = "was removed" if total is not None else "is kept, as its full length is not known"
        wrong = f"has another checksum than {checksum}" if checksum else "is no zip archive"
        raise DemixError(f"What came from {url} {wrong} and {fate}; try again or {by_hand}.")
    _tell_unchecked(target, checksum)


def _tell_unchecked(path: Path, checksum: str | None) -> None:
    if checksum is None:
        warn(
            f"No checksum of {path} is known, so that nothing but its length was checked; give "
            "one with checksum='sha256:...' (--checksum) if you have it."
        )


def _check(path: Path, size: int | None, checksum: str | None) -> None:
    """Refuse a file that is not what it should be."""
    try:
        with open_regular(path) as file:
            found = os.fstat(file.fileno()).st_size
            if size is not None and found != size:
                raise DemixError(
                    f"Expected {size} bytes in {path}, but found {found}; remove it and fetch it "
                    "again."
                )
            if not _matches(file, checksum):
                wrong = "it has another checksum" if checksum else "it is none"
                raise DemixError(
                    f"Expected {checksum or 'a zip archive'} of {path}, but {wrong}; remove it and "
                    "fetch it again."
                )
    except OSError as error:
        raise DemixError(
            f"Cannot read {path}: {reason(error)}; remove it or choose another folder."
        ) from error
    _tell_unchecked(path, checksum)


def _matches(file: Any, checksum: str | None) -> bool:
    if checksum is None:  # those without one are zip archives
        return bool(file.read(4) == b"PK\x03\x04")
    kind, _, digits = checksum.partition(":")
    return hashlib.file_digest(file, kind).hexdigest() == digits.lower()
