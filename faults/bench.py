"""Where faults are done: processes, a place on the disk, chance, and undisturbed results."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from faults.processes import Processes
from faults.work import Work, inputs, works


class Bench:
    """What all series share.

    Parameters
    ----------
    root : Path
        A folder for everything, which nobody else uses.
    processes : Processes
        Where commands run.
    seed : int
        Of the moments and places of faults.
    """

    def __init__(self, root: Path, processes: Processes, seed: int) -> None:
        self.root, self.processes, self.chance = root, processes, random.Random(seed)
        for place in (root, *root.parents):
            if place.owner() == root.owner() and place != Path(place.anchor):
                place.chmod(place.stat().st_mode | 0o055)  # for commands that are run as nobody
        self.seconds: dict[str, float] = {}
        self.files: dict[str, list[int]] = {}
        self._results: dict[str, Any] = {}
        self._finished: dict[str, Path] = {}
        inputs(root)
        self.works = works(root)

    def undisturbed(self, work: Work) -> Any:
        """Return what a work gives when nothing happens to it; it is run once.

        How many seconds that took, and how large its files are, is kept.
        """
        if work.name not in self._results:
            folder = Path(tempfile.mkdtemp(dir=self.root))
            done, self.seconds[work.name] = self.processes.timed(*work.command(folder))
            if done.returncode:
                raise RuntimeError(f"{work.name} fails undisturbed: {done.stderr}")
            self._results[work.name] = work.result(work.place(folder))
            files = [file for file in folder.rglob("*") if file.is_file()]
            self.files[work.name] = [file.stat().st_size for file in files]
            self._finished[work.name] = folder
        return self._results[work.name]

    def finish(self, work: Work, folder: Path) -> None:
        """Put what a work gives when nothing happens to it into a folder."""
        self.undisturbed(work)
        shutil.copytree(self._finished[work.name], folder, dirs_exist_ok=True)

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """Give a new folder, which is removed in the end."""
        folder = Path(tempfile.mkdtemp(dir=self.root))
        folder.chmod(0o755)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)
