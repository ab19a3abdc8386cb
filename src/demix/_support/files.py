"""Reading regular files only, and writing them so that a crash never leaves half of one."""

import errno
import hashlib
import os
import platform
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import IO

import numpy as np

from demix._support.errors import DemixError

LOCK = ".demix.lock"
"""The file of a folder that says who writes to it; no other program has one of this name."""

# Names of temporary files say who writes them, and cannot be guessed; hosts may have any name.
_HOST = platform.node().replace("/", "_")
_TORN = re.compile(r"\.demix-(?P<host>.*)-(?P<process>\d+)-[0-9a-f]{16}\.tmp")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""What a full disk and a limit on the size of files give."""
_NEW = "a file that was written meanwhile"
_WRITTEN: set[tuple[int, ...] | None] = set()  # each file that this process has written
# Claimed places, which file stood where then, and the folders of the places.
_CLAIMS: list[tuple[list[Path], dict[str, tuple[int, ...] | None], dict[Path, os.stat_result]]] = []
# Some systems lack these: a pipe is then opened like a file, and a link is followed.
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_OTHER = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
}


def open_regular(path: str | Path) -> BufferedReader:
    """Open a file to read its bytes; a pipe, on which a reader may wait for ever, is refused."""
    opened = os.open(path, os.O_RDONLY | os.O_CLOEXEC | _NO_WAIT)
    try:
        found = os.fstat(opened)
        check_regular(path, found)
        if not found.st_size and _gives(opened):
            raise _no_file(path, "a device of the kernel")
        return os.fdopen(opened, "rb")
    except BaseException:
        os.close(opened)
        raise


def check_regular(path: str | Path, found: os.stat_result | None = None) -> None:
    """Raise :class:`DemixError` unless a path, whose links are followed, names a regular file."""
    kind = kind_of((found or os.stat(path)).st_mode)
    if kind is not None:
        raise _no_file(path, kind)


def check_name(path: Path) -> Path:
    """Return a path; raise :class:`DemixError` if it can be the name of no file."""
    try:
        _identity(path)
        wrong = "" if path.name else "names none"
    except OSError as error:
        raise refused(path, error) from error
    except ValueError:  # it has half of a letter
        wrong = "has a null byte" if "\0" in str(path) else "cannot be written as bytes"
    if wrong:
        raise DemixError(f"Expected the name of a file, but {str(path)!r} {wrong}.")
    return path


def is_there(path: Path) -> bool:
    """Whether there is a regular file of this name; raise if there is something else."""
    if not os.path.exists(path):  # Path.exists raises over names none can have
        return False
    check_regular(path)
    return True


def open_own(path: Path, flags: int) -> int:
    """Open a file that demix writes; refuse links, and a file whose second name is another's."""
    try:
        opened = os.open(path, os.O_RDWR | os.O_CLOEXEC | _NO_FOLLOW | _NO_WAIT | flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _in_the_way(path, "a link") from error
        raise refused(path, error) from error
    try:
        check_own(os.fstat(opened), path)
    except DemixError:
        os.close(opened)
        raise
    return opened


def kind_of(mode: int) -> str | None:
    """Return in words what ``st_mode`` says; None for a regular file."""
    return _OTHER.get(stat.S_IFMT(mode))


def check_own(found: os.stat_result, path: Path) -> None:
    """Raise DemixError unless this is a plain file of one name."""
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        # The cause tells a place that is taken from input that is refused; see is_os_error.
        taken = FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
        raise _in_the_way(path, kind_of(found.st_mode) or "a file with a second name") from taken


def check_free(path: Path) -> None:
    """Raise DemixError if anything but a plain file of one name has the place of one of demix."""
    if os.path.lexists(path):
        if path.lstat().st_nlink > 1:  # perhaps of one who was killed in put_new
            remove_stale(path.parent)
        check_own(path.lstat(), path)


def inside(folder: Path, *ignored: type[OSError]) -> Iterator[os.DirEntry[str]]:
    """Yield all in a folder and its subfolders, so deep that pathlib and os.walk would fail."""
    waiting = [str(folder)]
    while waiting:
        with suppress(*ignored), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                yield entry
                waiting += [entry.path] if entry.is_dir(follow_symlinks=False) else []


def stamp_of(paths: Iterable[str | os.PathLike[str]]) -> str:
    """Return a digest that changes when a file is written to, added or removed."""
    stamp = hashlib.sha256()
    for path in sorted(os.fspath(path) for path in paths):
        found = os.stat(path)
        stamp.update(f"{path} {found.st_size} {found.st_mtime_ns}\n".encode(errors="replace"))
    return stamp.hexdigest()


def changed(source: str | Path) -> DemixError:
    """Return the error of data that were changed since they were opened."""
    return DemixError(f"{source} was changed while it was read; wait for it, and start again.")


def write_atomic(path: str | Path, data: str | bytes, *, before: Path | None = None) -> Path:
    """Write ``data`` to ``path``: afterwards there is the old file or the new one, never a mix.

    Missing folders are made, and the data are on the disk when this returns. The old file goes to
    ``before``, in the same folder; a crash in between leaves only that one.
    """
    path = Path(path)
    # Names of files may hold bytes that are no letters; they are written as \\udc80 and the like.
    raw = data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data
    with _replacing(path, before) as file:
        file.write(raw)
    return path


@contextmanager
def new_array(path: str | Path, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Give an array of float32 of any size to be filled, then the ``.npy`` file ``path``."""
    # Disk space is allocated at once: if a disk fills up under a map, the kernel kills the process.
    about = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    with _replacing(Path(path), None) as file:
        # With 64 spaces more than numpy's header has, which tells it from matrices of others.
        start = file.write(b"\x93NUMPY\x01\0\xb6\0" + about.ljust(181).encode() + b"\n")
        size = 4 * int(np.prod(shape))
        if hasattr(os, "posix_fallocate") and size:
            os.posix_fallocate(file.fileno(), start, size)
        file.truncate(start + size)
        array = np.memmap(file, dtype="<f4", mode="r+", offset=start, shape=shape)
        yield array
        array.flush()


@contextmanager
def claiming(*places: Path) -> Iterator[None]:
    """Claim files, and all in folders: what others put there meanwhile is never replaced."""
    files = (file for place in places for file in (place, *inside(place, OSError)))
    for place in places:
        if not place.is_dir():  # else it is locked, which does the same
            remove_stale(place.parent)
    there = {os.path.abspath(file): _identity(file) for file in files}
    full = [Path(os.path.abspath(place)) for place in places]
    folders = [place if place.is_dir() else place.parent for place in full]
    claim = full, there, {folder: os.stat(folder) for folder in folders if folder.exists()}
    _CLAIMS.append(claim)
    try:
        yield
    finally:
        _CLAIMS.remove(claim)


def refuse_new(path: Path) -> None:
    """Raise if somebody else has put a file or a link into a claimed place, or moved its folder."""
    claimed = {place for places, *_ in _CLAIMS for place in places}
    known = {folder: found for *_, folders in _CLAIMS for folder, found in folders.items()}
    for folder in Path(os.path.abspath(path)).parents:
        if os.path.islink(folder) and not claimed.isdisjoint(folder.parents):
            raise _in_the_way(folder, "a link")
        if folder in known and not os.path.samestat(known[folder], os.stat(folder)):
            raise _in_the_way(folder, "another folder than before")
    if is_new(path):
        raise _in_the_way(path, _NEW)


def is_new(path: Path) -> bool:
    """Whether somebody else has put a file where this process has claimed the place."""
    full, found = Path(os.path.abspath(path)), _identity(path)
    return found not in _WRITTEN | {None} and any(
        any(map(full.is_relative_to, places)) and found != there.get(str(full))
        for places, there, _ in _CLAIMS
    )


def is_own(path: Path) -> bool:
    """Whether this process has written a file, to which nobody has written since."""
    return _identity(path) in _WRITTEN


def move_own(file: Path, path: Path) -> None:
    """Move a file of demix to the place of another one."""
    file.replace(path)
    _WRITTEN.add(_identity(path))


def put_new(file: Path, path: Path) -> None:
    """Give a file a name that is free, which never replaces another; the old one may stay."""
    try:
        os.link(file, path)
    except FileExistsError as error:
        raise _in_the_way(path, _NEW) from error
    except OSError:
        if not file.exists():
            raise
        os.close(open_own(path, os.O_CREAT | os.O_EXCL))  # a disk without links
        file.replace(path)


def refused(path: Path, error: OSError) -> DemixError:
    """Return the error of a file that could not be written, with what to do."""
    advice = "choose a folder you may write to"
    if error.errno in FULL:
        advice = "make room or choose another disk, then give the same command again"
    if error.errno == errno.ENAMETOOLONG:
        advice = "choose a shorter name"
    return DemixError(f"Cannot write {path}: {error.strerror or error}; {advice}.")


def is_os_error(error: BaseException | None, *numbers: int) -> bool:
    """Whether an error, or its cause, is an ``OSError``; with ``numbers``, one of these."""
    while error is not None:
        if isinstance(error, OSError) and (not numbers or error.errno in numbers):
            return True
        error = error.__cause__
    return False


def file_digest(path: Path) -> str:
    """Return the SHA-256 of what a file holds."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def remove_stale(folder: Path) -> None:
    """Remove temporary files of processes of this machine that have ended."""
    for file in folder.glob(".demix-*"):  # nothing in a folder that may not be listed
        found = _TORN.fullmatch(file.name)
        if found and found["host"] == _HOST and not _runs(found["process"]):
            with suppress(OSError):  # it is gone, or another user's
                opened = os.open(file, os.O_RDWR | os.O_CLOEXEC | _NO_FOLLOW | _NO_WAIT)
                try:
                    # Another container may have processes of its own under the same host name.
                    if stat.S_ISREG(os.fstat(opened).st_mode) and _locked(opened):
                        file.unlink()
                finally:
                    os.close(opened)


def is_temporary(file: Path | os.DirEntry[str]) -> bool:
    """Whether a file in a folder is the lock or a temporary file of demix."""
    return file.name == LOCK or _TORN.fullmatch(file.name) is not None


@contextmanager
def _replacing(path: Path, before: Path | None) -> Iterator[IO[bytes]]:
    """Give a temporary file that replaces another one once it is complete."""
    check_name(path)
    # Not made of the name, which may be as long as names can be.
    temporary = path.with_name(f".demix-{_HOST}-{os.getpid()}-{secrets.token_hex(8)}.tmp")
    try:
        places = [place for place in (path, before) if place is not None]
        for place in places:
            check_free(place)
            refuse_new(place)
        path.parent.mkdir(parents=True, exist_ok=True)
        known = [(place, _identity(place)) for place in places]
        opened = open_own(temporary, os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(opened, "w+b") as file:
                _locked(opened)  # until it is whole; see remove_stale
                yield file
                file.flush()
                os.fsync(file.fileno())
            for place, found in known:
                refuse_new(place)
                if _identity(place) != found:
                    raise _in_the_way(place, _NEW)
            there = known[0][1]
            if before is not None and there is not None:
                move_own(path, before)
                there = None
            put_new(temporary, path) if there is None else temporary.replace(path)
            _WRITTEN.add(_identity(path))
        finally:
            temporary.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except OSError as error:
        raise refused(path, error) from error


def _identity(path: os.PathLike[str]) -> tuple[int, ...] | None:
    """Return what tells a file from another one of its name; None if there is none."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system supports it."""
    with suppress(OSError):
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _locked(opened: int) -> bool:
    """Lock an open file; whether nobody else holds it, as far as the file system knows."""
    from filelock import lock_descriptor

    try:
        return lock_descriptor(opened, blocking=False)
    except OSError:  # it has no locks
        return True


def _runs(process: str) -> bool:
    """Whether there is such a process; true on a system that cannot be asked."""
    try:
        if os.name == "posix":
            os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it is another user's, or no number of a process
        pass
    return True


def _gives(opened: int) -> bool:
    """Whether a file that calls itself empty gives something, perhaps later, as those in /proc."""
    try:
        return bool(os.read(opened, 1))
    except BlockingIOError:
        return True


def _no_file(path: str | Path, kind: str) -> DemixError:
    advice = "name a file in it" if kind == "a folder" else "save what it gives to a file first"
    return DemixError(f"Expected a file, but {path} is {kind}; {advice}.")


def _in_the_way(path: Path, kind: str) -> DemixError:
    return DemixError(
        f"Expected {path} to be free for a file of demix, but it is {kind}; remove it or choose "
        "another folder."
    )
