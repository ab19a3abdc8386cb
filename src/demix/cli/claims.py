"""Output folders: locked while a command writes, and restored if its input is refused."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer import Exit

from demix._support import files
from demix._support.errors import DemixError
from demix._support.locks import lock_folder
from demix._support.outputs import ARRAY, PAGE, claim_folder, read_marker, refuse_other, tidied
from demix._support.process_group.group import LostRank
from demix._support.provenance import origin_of, provenance
from demix.cli import ignore_interrupts
from demix.cli.console import console
from demix.encoders.files import MODEL_MARKS
from demix.report.static import FIGURE_MARKS

_UNFINISHED = "unfinished"
_PAGES = dict.fromkeys(("report.html", "checkup.html"), PAGE)
# Files that several commands write, and patterns of how they begin.
_MARKS = {**MODEL_MARKS, "latents.npy": ARRAY, **_PAGES, **FIGURE_MARKS}


@dataclass(frozen=True)
class Claim:
    """A folder that is locked for one result, the JSON file that marks it, and its origin."""

    folder: Path
    marker: str
    origin: Mapping[str, str]

    @property
    def provenance(self) -> dict[str, str | int]:
        """The origin, versions and machine."""
        return {**self.origin, **provenance()}

    def begin(self) -> None:
        """Mark the result as unfinished; an earlier one keeps its numbers until it is finished.

        What somebody else has put in the place of a result since it was claimed is refused.
        """
        for place in _places(self.folder):
            for name in (self.marker, *_MARKS):
                files.refuse_new(place / name)
        before = read_marker(self.folder / self.marker)
        self.finish({"provenance": self.origin, **(before or {}), _UNFINISHED: True})

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the marker, after all other files."""
        files.write_atomic(self.folder / self.marker, json.dumps(result, indent=2) + "\n")


@contextmanager
def claimed(
    command: str,
    out: Path,
    marker: str,
    inputs: Sequence[Path | None],
    *,
    overwrite: bool,
    about: Mapping[str, str] | None = None,
    leftovers: Sequence[str] = (),
) -> Iterator[Claim]:
    """Lock a folder for the result of a command; ``about`` is what else its origin tells.

    A finished result is replaced only with ``overwrite``, and never if an input lies in the folder.
    Refused input leaves everything unchanged, without ``leftovers`` (checkpoints) that may exist by
    then, unless some other file was written already. A lost rank, a full disk and, of a command
    with checkpoints, Ctrl-C leave files from which a second try continues.
    """
    command = f"demix {command}"
    given = [place for place in inputs if place is not None]
    with tidied(out):
        folder = claim_folder(out, marker, command=command, inputs=given)
        with lock_folder(folder), files.claiming(folder):
            # Again: what came before the lock is judged, and what comes from now on is refused.
            claim_folder(folder, marker, command=command, inputs=given)
            before = _before(folder, marker, command, overwrite)
            for place in _places(folder):
                for name, mark in {marker: b"{", **_MARKS}.items():
                    refuse_other(place / name, mark)
            new = [name for name in (marker, *leftovers) if not os.path.lexists(folder / name)]
            claim = Claim(folder, marker, origin_of(about or {}))
            stamp = _stamp(folder, marker, *new)
            if before is None:
                claim.begin()

            def undo(*, keep: bool) -> bool:
                """Restore the folder unless a result has changed; tell whether anything is left."""
                changed = stamp != _stamp(folder, marker, *new)
                kept = keep and any((folder / name).exists() for name in leftovers)
                if not changed:  # what others have put in the place of a file stays
                    if before is not None and files.is_own(folder / marker):
                        files.write_atomic(folder / marker, before)
                    for place in (folder / name for name in ([] if kept else new)):
                        if files.is_own(place):
                            place.unlink()
                return changed or kept

            try:
                yield claim
            except KeyboardInterrupt:
                ignore_interrupts()
                rest = "the same command continues" if undo(keep=True) else "nothing was written"
                console(errors=True).print(f"Interrupted; {rest}.")
                raise Exit(130) from None
            except LostRank:
                raise
            except DemixError as error:
                undo(keep=files.is_os_error(error))
                raise


def claimed_if(
    command: str, out: Path | None, *rest: Any, **more: Any
) -> AbstractContextManager[Claim | None]:
    """Return what :func:`claimed` does, or a context of None if there is no folder."""
    return nullcontext() if out is None else claimed(command, out, *rest, **more)


def _before(folder: Path, marker: str, command: str, overwrite: bool) -> bytes | None:
    """Return the content of the marker; refuse a finished result without ``overwrite``."""
    file = folder / marker
    found = read_marker(file)
    if not isinstance(found, dict):  # what came since the folder was claimed is refused later
        return None
    if _UNFINISHED not in found and not overwrite:
        raise DemixError(
            f"{folder} holds a finished result of '{command}'; add --overwrite to replace it, or "
            "choose a new folder."
        )
    return file.read_bytes()


def _stamp(folder: Path, *but: str) -> str:
    """Return a digest that changes when a file of a result is written, except those named."""
    there = (file for file in files.inside(folder, OSError) if os.path.isfile(file))
    own = (file for file in there if file.name not in but and not files.is_temporary(file))
    return files.stamp_of(own)


def _places(folder: Path) -> tuple[Path, ...]:
    """Return the folders in which files of a result may lie."""
    return folder, *folder.glob("seed-*"), folder / "model"
