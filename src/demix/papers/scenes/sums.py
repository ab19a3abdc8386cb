"""What a rendered folder says of itself, and whether its files are still as it says."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from demix._support.errors import DemixError
from demix._support.files import file_digest
from demix._support.outputs import read_marker
from demix.papers.scenes.arrays import is_allocated, read
from demix.papers.scenes.order import Order
from demix.papers.scenes.workers import checksum, shard_rows

META = "meta.json"


@dataclass
class Sums:
    """Checksums of the files of a folder.

    Attributes
    ----------
    latents : dict of str to str
        One for each file of latents.
    shards : list of str
        One for each rendered shard of images, in their order.
    """

    latents: dict[str, str] = field(default_factory=dict)
    shards: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, about: Mapping[str, Any], order: Order) -> Sums:
        """Take what a folder of an order says of itself."""
        found = about["sha256"]
        sums = cls(dict(found["latents"]), list(found["shards"]))
        if not sums.latents.keys() <= {f"{name}.npy" for name in order.files}:
            raise ValueError("it holds checksums of other files")
        if (len(sums.shards) - 1) * shard_rows(order) >= order.n:
            raise ValueError("it holds checksums of more images")
        return sums

    def count(self, order: Order) -> int:
        """Return how many images are rendered."""
        return min(order.n, len(self.shards) * shard_rows(order))

    def hold(self, folder: Path, order: Order) -> bool:
        """Whether all that was made is as it was made."""
        images = [folder / f"{name}.npy" for name in order.files.values()]
        return (
            all(is_allocated(file, order.shape) for file in images)
            and all(_sum(folder / name) == expected for name, expected in self.latents.items())
            and next(self.damaged(folder, order), None) is None
        )

    def damaged(self, folder: Path, order: Order) -> Iterator[int]:
        """Go through the numbers of shards that are not as they were rendered."""
        files = [folder / f"{name}.npy" for name in order.files.values()]
        rows = shard_rows(order)
        for place, expected in enumerate(self.shards):
            last = min(order.n, (place + 1) * rows)
            raw = [read(file, order.shape, place * rows, last) for file in files]
            if checksum(*raw) != expected:
                yield place


def read_meta(folder: Path) -> dict[str, Any]:
    """Return what a folder says of itself, if that is as it was written."""
    try:
        about = dict(read_marker(folder / META))
        if about["seal"] != sealed(about)["seal"]:
            raise ValueError("its checksum is another")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DemixError(f"{folder / META} is damaged; render into a new folder.") from error
    return about


def sealed(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with a checksum of them."""
    facts = {name: value for name, value in about.items() if name != "seal"}
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    return facts | {"seal": digest.hexdigest()}


def _sum(file: Path) -> str | None:
    # As `checksum` gives it, of a file of any size.
    return file_digest(file)[:16] if file.is_file() else None
