"""How large an experiment is run: in seconds, on a laptop, or as in the paper."""

from dataclasses import dataclass

from demix._support.errors import DemixError


@dataclass(frozen=True)
class Scale:
    """Latents of a run, candidate matrices of its mixing, and fresh samples that are scored.

    Rows with labels have their own number of latents, of which smoke takes at most ``dim``.
    """

    name: str
    dim: int = 10
    draws: int = 25_000
    samples: int = 61_440

    @property
    def smoke(self) -> bool:
        """Whether a run should take seconds."""
        return self.name == "smoke"

    @property
    def threads(self) -> int | None:
        """Threads of a job, None for all: with one, no bit depends on how many jobs run at once."""
        return None if self.name == "paper" else 1


SCALES = {
    scale.name: scale
    for scale in (Scale("smoke", dim=3, draws=100, samples=2000), Scale("laptop"), Scale("paper"))
}


def scale_named(name: str) -> Scale:
    """Return the scale called ``name``."""
    if name not in SCALES:
        raise DemixError(f"Unknown scale {name!r}; known are {', '.join(SCALES)}.")
    return SCALES[name]
