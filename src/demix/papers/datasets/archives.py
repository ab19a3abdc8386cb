"""Opening tar archives of strangers."""

import os
import tarfile
from pathlib import Path
from typing import Any, Self

from demix.data.npy_files import DEFLATED

# Long names and other facts about a file, which tarfile reads into memory as a whole.
_ABOUT = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_LONGEST = 2**20


class _Member(tarfile.TarInfo):
    """The header of a member; one that claims a name of gigabytes ends the reading."""

    @classmethod
    def frombuf(cls, *header: Any) -> Self:
        found = super().frombuf(*header)
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise _sparse()
        if found.type in _ABOUT and found.size > _LONGEST:
            raise EOFError(f"a name in it claims {found.size} bytes")
        return found

    def _proc_gnusparse_10(self, *_: Any) -> None:
        """Refuse what tarfile would read as a list of holes, however long it is."""
        raise _sparse()

    _proc_gnusparse_00 = _proc_gnusparse_01 = _proc_gnusparse_10


def _sparse() -> EOFError:
    return EOFError("a file in it has holes")


class _Archive(tarfile.TarFile):
    """An archive that is gone through and keeps no headers, of which there may be millions."""

    # A kilobyte of bzip2 unpacks to a gigabyte.
    OPEN_METH = {"tar": "taropen", "gz": "gzopen", "xz": "xzopen"}  # noqa: RUF012
    members: list[tarfile.TarInfo]

    def next(self) -> tarfile.TarInfo | None:
        self.members.clear()
        found = super().next()
        if found is not None and self.offset <= found.offset:  # else it would never end
            raise ValueError("its files do not follow each other")
        # Up to there all is unpacked, also what nobody reads.
        if self.offset > DEFLATED * os.stat(str(self.name)).st_size:
            raise ValueError(f"it claims {self.offset} bytes that are not there")
        return found


def open_tar(path: Path) -> tarfile.TarFile:
    """Open an archive, plain or of gzip or xz, whose headers take little memory and time."""
    return _Archive.open(path, tarinfo=_Member)
