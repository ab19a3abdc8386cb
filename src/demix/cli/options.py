"""What ``fit`` and ``consensus`` are told about data; imported before anything heavy is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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

    @property
    def inputs(self) -> tuple[Path | None, ...]:
        """All files that are read."""
        return self.file, self.pairs, self.labels, self.time
