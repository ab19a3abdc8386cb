"""Fetching official files: what breaks off goes on where it ended, and is checked in the end."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from demix._support.errors import DemixError, need, reason, shortened, warn
from demix._support.files import open_own, open_regular, refused, write_atomic
from demix._support.locks import lock_folder
from demix._support.outputs import tidied
from demix.papers.datasets.factor_images import Progress
from demix.papers.datasets.official import OfficialFile, official_files
from demix.papers.datasets.stalls import Stalls

# Seconds until a connection is there, and until its next byte is: a silent server is left soon. One
# that goes on slowly is not, as a large file may take a day.
_TIMEOUT = 30.0
# Seconds after which an answer that goes on, but brings nothing of the file, is left, too.
_STALL = 60.0
# Attempts in a row that bring nothing, and the pause after the first of them, in seconds.
_ATTEMPTS, _PAUSE = 3, 0.5
# Bytes: more than any official file has, and what stays free on the disk.
_MOST, _SPARE = 32 * 10**9, 100 * 10**6
_CHECKSUM = re.compile(r"(sha256|sha1|md5):[0-9a-fA-F]+")
_ADDRESS = re.compile(r"https?://[^/]", re.IGNORECASE)
# Lengths of up to 18 digits: Python refuses to read numbers of thousands.
_LENGTH = re.compile(r"[0-9]{1,18}")
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]+/([0-9]{1,18})")


class _Broken(Exception):
    """An answer that cannot be right, in words for the inside of a sentence; not tried again."""


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
    files, target = official_files(name), Path(folder)
    if checksum is not None and (len(files) > 1 or not _CHECKSUM.fullmatch(checksum)):
        raise DemixError(
            "A checksum is sha256:..., sha1:... or md5:... of the one file of a data set, but got "
            f"{checksum!r} for the {len(files)} of {name}."
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
        with _alone(target):
            for file in (file for file in files if file not in there):
                _fetch(file, target, source, checksum or file.checksum, callback, requests)
    return target if len(files) > 1 else target / files[0].name


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make a folder, and keep it to this process: two would write into the same parts."""
    with tidied(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise refused(folder, error) from error
        with lock_folder(folder):
            yield


def _fetch(
    file: OfficialFile,
    folder: Path,
    source: str | None,
    checksum: str | None,
    callback: Progress,
    requests: Any,
) -> None:
    # Names that no browser or other program gives to what it has begun.
    target, part = folder / file.name, folder / f"{file.name}.demix-part"
    url = f"{(source or file.place).rstrip('/')}/{file.name}"
    by_hand = f"fetch it by other means and put it at {target}"
    try:
        _settle(part)  # what one that was killed left
        total = _persist(url, part, file.size, checksum, callback, requests)
        with _own(part) as came:
            os.fsync(came.fileno())
            right = _matches(came, checksum)
        if right:
            part.replace(target)
        if right or total is not None:
            _remove(part)
    except (requests.RequestException, _Broken) as error:
        kept = "; what came is kept, and the same call goes on after it" if _size(part) else ""
        raise DemixError(f"Cannot fetch {url} ({_said(error)}){kept}; or {by_hand}.") from error
    except OSError as error:
        raise DemixError(f"Cannot write to {folder}: {reason(error)}; or {by_hand}.") from error
    if not right:
        fate = "was removed" if total is not None else "is kept, as its full length is not known"
        wrong = f"has another checksum than {checksum}" if checksum else "is no zip archive"
        raise DemixError(f"What came from {url} {wrong} and {fate}; try again or {by_hand}.")
    if checksum is None:
        warn(
            f"No checksum of {target} is known, so that nothing but its length was checked; give "
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
            if checksum is not None and not _matches(file, checksum):
                raise DemixError(
                    f"Expected {checksum} of {path}, but it has another checksum; remove it and "
                    "fetch it again."
                )
    except OSError as error:
        raise DemixError(
            f"Cannot read {path}: {reason(error)}; remove it or choose another folder."
        ) from error


def _matches(file: Any, checksum: str | None) -> bool:
    if checksum is None:  # those without one are zip archives
        return bool(file.read(4) == b"PK\x03\x04")
    kind, _, digits = checksum.partition(":")
    return hashlib.file_digest(file, kind).hexdigest() == digits.lower()


def _persist(
    url: str, part: Path, size: int | None, checksum: str | None, callback: Progress, requests: Any
) -> int | None:
    """Download into ``part``, attempt after attempt as long as they bring something.

    Returns how long the whole file is, if that is known.
    """
    vain = 0
    while True:
        before = _size(part)
        try:
            return _go_on(url, part, size, checksum, callback, requests)
        except requests.HTTPError:
            raise
        except requests.RequestException as error:
            vain = 0 if _size(part) > before else vain + 1
            if vain == _ATTEMPTS:
                raise
            warn(f"{_said(error).capitalize()} at byte {_size(part)} of {url}; it is tried again.")
            time.sleep(_PAUSE * vain)


def _go_on(
    url: str, part: Path, size: int | None, checksum: str | None, callback: Progress, requests: Any
) -> int | None:
    """Ask for what is missing, and append it."""
    have = _size(part)
    if size is not None and have >= size:
        if have > size:
            raise _too_short(part)
        return size
    with (
        Stalls(_STALL, requests) as stalls,
        _ask(url, _wish(part, have), stalls) as answer,
    ):
        if answer.status_code == 416:  # there is nothing after what we have
            if size is None and answer.headers.get("Content-Range") == f"bytes */{have}":
                return have
            raise _too_short(part)
        answer.raise_for_status()
        first, total = _announced(answer, part, have, size)
        if total is None and checksum is None:
            raise _Broken("the server does not say how long it is, and no checksum is known")
        # What came before stays until more than it has come.
        path = part if first == have else _beside(part)
        _check_room(part.parent, (total or first) - first)
        write_atomic(_tag(path), _version(answer.headers))
        try:
            done = _receive(stalls.pieces(answer), path, first, total, callback)
        finally:
            _settle(part)
    if total is not None and done < total:
        raise requests.ConnectionError(f"it ended after {done} of {total} bytes")
    if done < have:
        raise _too_short(part)
    if not done:
        raise _Broken("the server sends nothing")
    return total


def _wish(part: Path, have: int) -> dict[str, str]:
    """Return the headers that ask for what comes after a part."""
    # Bytes as they are: what is compressed on the way cannot be counted.
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        if _size(_tag(part)):
            with _own(_tag(part)) as file:
                # A file that was changed meanwhile comes from its beginning.
                headers["If-Range"] = file.read(2**16).decode("latin-1")
    return headers


def _ask(url: str, headers: dict[str, str], stalls: Stalls) -> Any:
    try:
        return stalls.get(
            url, headers=headers, stream=True, timeout=_TIMEOUT, hooks={"response": _skip}
        )
    except ValueError as error:  # an address or a header that the library cannot use
        raise _Broken(reason(error)) from error


def _skip(answer: Any, **_: Any) -> None:
    """Close a redirection; the library would read all of it into memory, even if it never ends."""
    if answer.is_redirect:
        answer.close()


def _announced(answer: Any, part: Path, have: int, size: int | None) -> tuple[int, int | None]:
    """Return where an answer begins, and how long the whole file is if that is known.

    An answer that cannot be right is refused here, before any of it is written.
    """
    if answer.status_code not in (200, 206):
        raise _Broken(_status(answer))
    packed = answer.headers.get("Content-Encoding", "")
    if packed.lower() not in ("", "identity"):
        raise _Broken(f"the server sends it as {shortened(packed)!r}, not as it is")
    length = answer.headers.get("Content-Length")
    if length is not None and not _LENGTH.fullmatch(length.strip()):
        raise _Broken(f"the server gives its length as {shortened(length)!r}")
    first, total = 0, None if length is None else int(length)
    if answer.status_code == 206:
        place = answer.headers.get("Content-Range", "")
        found = _RANGE.fullmatch(place)
        if found is None or int(found[1]) != have:
            raise _Broken(f"asked for what follows byte {have}, it sends {shortened(place)!r}")
        first, total = have, int(found[2])
    if total is None:
        return first, size
    if total != size if size is not None else total > _MOST:
        raise _Broken(f"the server has {total} bytes, but expected {size or f'at most {_MOST}'}")
    if total < have:
        raise _too_short(part)
    return first, total


def _receive(
    pieces: Iterator[bytes], path: Path, first: int, total: int | None, callback: Progress
) -> int:
    """Write a body into a file from byte ``first`` on, and return where it ended."""
    most, done = total or _MOST, first
    with _own(path, 0 if first else os.O_CREAT | os.O_EXCL) as file:
        file.seek(first)
        for chunk in pieces:
            done += len(chunk)
            if done > most:
                file.truncate(first)  # none of this can be trusted
                raise _Broken(f"the server sends more than {most} bytes")
            _check_room(path.parent, len(chunk))
            file.write(chunk)
            callback(done, total or done, path.stem)
    return done


def _check_room(folder: Path, more: int) -> None:
    if shutil.disk_usage(folder).free - more < _SPARE:
        raise OSError(
            errno.ENOSPC,
            f"less than {_SPARE // 10**6} MB of the disk would stay free; make room, and the same "
            "call goes on after what came",
        )


def _settle(part: Path) -> None:
    """Keep the longer one of a part and of what came beside it, unless it is empty."""
    beside = _beside(part)
    if os.path.lexists(beside) and _size(beside) >= _size(part):
        # In this order, a kill never leaves a part with the tag of another one.
        part.unlink(missing_ok=True)
        if _tag(beside).exists():
            _tag(beside).replace(_tag(part))
        beside.replace(part)
    _remove(beside)
    if not _size(part):
        _remove(part)


def _remove(part: Path) -> None:
    part.unlink(missing_ok=True)
    _tag(part).unlink(missing_ok=True)


def _own(path: Path, flags: int = 0) -> BinaryIO:
    return os.fdopen(open_own(path, flags), "r+b")


def _size(path: Path) -> int:
    """Return how much a file of ours holds; what is no such file is refused."""
    if not os.path.lexists(path):
        return 0
    with _own(path) as file:
        return os.fstat(file.fileno()).st_size


def _beside(part: Path) -> Path:
    """Where the file goes if it comes from its beginning though there is a part of it."""
    return part.with_suffix(".demix-part-new")


def _tag(part: Path) -> Path:
    return part.with_name(f"{part.name}.tag")


def _version(headers: Any) -> bytes:
    """Return what the server calls this version of the file; nothing if it says nothing usable."""
    tag = headers.get("ETag", "")
    known = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    return known.encode("latin-1") if known.isprintable() else b""


def _too_short(part: Path) -> _Broken:
    return _Broken(
        f"the file has fewer than the {_size(part)} bytes of {part.name}; if that is so, remove "
        f"{part.name}"
    )


def _said(error: Exception) -> str:
    """Return in few words what went wrong; the library's own tell of its objects."""
    if isinstance(error, _Broken):
        return str(error)
    answer = getattr(error, "response", None)
    if answer is not None:
        return _status(answer)
    return "no answer" if "Max retries" in str(error) else "the connection broke off"


def _status(answer: Any) -> str:
    return f"the server says {shortened(f'{answer.status_code} {answer.reason}')}".strip()
