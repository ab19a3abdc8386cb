"""What ``fit`` and ``consensus`` are told about data; imported before anything heavy is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """A file of rows, where its pairs or labels come from, and what is assumed of its latents."""

    file: Path
    pairs: Path | None
    lag: str | None
    labels: Path | None
    instances: bool
    time: Path | None
    key: str | None
    columns: str | None
    header: str
    space: str | None
    conditional: str | None
    n_latents: int
    seed: int

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Options:
        """Take them from the arguments of a command, by their names."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: given["data" if name == "file" else name] for name in names})

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        return self.file, self.pairs, self.labels, self.time
