"""Fetching official files: what breaks off goes on where it ended, and is checked in the end."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demix.data.formats import reason
from demix.datasets.dislib.official import OfficialFile, official_files
from demix.datasets.dislib.pixels import Report, silent
from demix.errors import DemixError
from demix.extras import need
from demix.files import refused
from demix.locks import held

_CHUNK = 2**16
_TIMEOUT = 30.0
# Attempts in a row that bring nothing, and the pause after the first of them, in seconds.
_ATTEMPTS, _PAUSE = 3, 0.5
_CHECKSUM = re.compile(r"(sha256|sha1|md5):[0-9a-fA-F]+")


def fetch_dataset(
    name: str,
    folder: str | Path,
    *,
    source: str | None = None,
    checksum: str | None = None,
    report: Report = silent,
) -> Path:
    """Fetch the official files of a data set, unless they are there, and check them.

    A connection that breaks off is taken up again where it ended; what came so far is kept in
    ``NAME.part``, also for later calls. Files that are there already, perhaps put there by hand,
    are only checked.

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
    report : callable
        ``report(done, total, what)``, in bytes.

    Returns
    -------
    Path
        What :func:`open_factor_images` takes: the file, or the folder if there are several.

    Examples
    --------
    >>> from demix import fetch_dataset
    >>> fetch_dataset("dsprite", "data")
    Traceback (most recent call last):
    ...
    demix.errors.DemixError: Unknown data set 'dsprite'; known are dsprites, ...
    """
    files, target = official_files(name), Path(folder)
    if checksum is not None and (len(files) > 1 or not _CHECKSUM.fullmatch(checksum)):
        raise DemixError(
            "A checksum is sha256:..., sha1:... or md5:... of the one file of a data set, but got "
            f"{checksum!r} for the {len(files)} of {name}."
        )
    pooch = need("pooch", "Fetching data sets", "datasets")
    there = [file for file in files if (target / file.name).exists()]
    for file in there:
        _check(target / file.name, file.size, checksum or file.checksum, pooch)
    if len(there) < len(files):
        with _alone(target):
            for file in (file for file in files if file not in there):
                _fetch(file, target, source, checksum or file.checksum, report, pooch)
    return target if len(files) > 1 else target / files[0].name


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make a folder, and keep it to this process: two would write into the same parts."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise refused(folder, error) from error
    with held(folder):
        yield


def _fetch(
    file: OfficialFile,
    folder: Path,
    source: str | None,
    checksum: str | None,
    report: Report,
    pooch: Any,
) -> None:
    target, url = folder / file.name, f"{(source or file.place).rstrip('/')}/{file.name}"
    part, aside = folder / f"{file.name}.part", folder / f".{file.name}.aside"
    import requests

    def download(url: str, output: str, _: Any) -> None:
        _persist(url, part, report, requests)
        # The part stays until the checksum is known: a kill while it is computed costs nothing.
        Path(output).unlink()
        try:
            os.link(part, output)
        except OSError:  # the file system knows no links
            shutil.copyfile(part, output)

    by_hand = f"fetch it by other means and put it at {target}"
    try:
        shutil.rmtree(aside, ignore_errors=True)  # of one that was killed
        with _quiet(pooch):
            pooch.retrieve(
                url, known_hash=checksum, fname=file.name, path=aside, downloader=download
            )
        (aside / file.name).replace(target)
        part.unlink()
    except requests.RequestException as error:
        kept = "; what came is kept, and the same call goes on after it" if part.exists() else ""
        raise DemixError(f"Cannot fetch {url} ({_said(error)}){kept}; or {by_hand}.") from error
    except OSError as error:
        raise DemixError(f"Cannot write to {folder}: {reason(error)}; or {by_hand}.") from error
    except ValueError as error:
        part.unlink()
        raise DemixError(
            f"What came from {url} has another checksum than {checksum} and was removed; try again "
            f"or {by_hand}."
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
        if not part.exists():
            _tag(part).unlink(missing_ok=True)


def _check(path: Path, size: int | None, checksum: str | None, pooch: Any) -> None:
    """Refuse a file that is not what it should be."""
    found = path.stat().st_size
    if size is not None and found != size:
        raise DemixError(
            f"Expected {size} bytes in {path}, but found {found}; remove it and fetch it again."
        )
    if not pooch.hashes.hash_matches(path, checksum):
        raise DemixError(
            f"Expected {checksum} of {path}, but it has another checksum; remove it and fetch it "
            "again."
        )


def _persist(url: str, part: Path, report: Report, requests: Any) -> None:
    """Download into ``part``, attempt after attempt as long as they bring something."""
    vain = 0
    while True:
        before = _size(part)
        try:
            _go_on(url, part, report, requests)
            return
        except requests.HTTPError:
            raise
        except requests.RequestException:
            vain = 0 if _size(part) > before else vain + 1
            if vain == _ATTEMPTS:
                raise
            time.sleep(_PAUSE * vain)


def _go_on(url: str, part: Path, report: Report, requests: Any) -> None:
    """Ask for what is missing, and append it."""
    have = _size(part)
    # Bytes as they are: what is compressed on the way cannot be counted.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if _tag(part).exists():
            # A file that was changed meanwhile comes from its beginning.
            headers["If-Range"] = _tag(part).read_text(encoding="latin-1")
    with requests.get(url, headers=headers, stream=True, timeout=_TIMEOUT) as answer:
        if answer.status_code == 416:  # there is nothing after what we have
            if answer.headers.get("Content-Range", "").endswith(f"/{have}"):
                return
            part.unlink()
            raise requests.ConnectionError("the file there is another one now")
        answer.raise_for_status()
        resumed = answer.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        done = have if answer.status_code == 206 and resumed else 0
        length = answer.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        _keep_tag(part, answer.headers)
        with part.open("ab" if done else "wb") as file:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                report(done, total or done, part.stem)
    if total is not None and done < total:
        raise requests.ConnectionError(f"it ended after {done} of {total} bytes")


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _keep_tag(part: Path, headers: Any) -> None:
    """Remember what the server calls this version of the file."""
    tag = headers.get("ETag", "")
    known = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    if known:
        _tag(part).write_text(known, encoding="latin-1")


def _said(error: Exception) -> str:
    """Return in few words what went wrong; the library's own tell of its objects."""
    answer = getattr(error, "response", None)
    if answer is not None:
        return f"the server says {answer.status_code} {answer.reason}".strip()
    return "no answer" if "Max retries" in str(error) else "the connection broke off"


@contextmanager
def _quiet(pooch: Any) -> Iterator[None]:
    """Keep the library from telling of its own on the standard error."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)
