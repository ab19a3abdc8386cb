"""How large an experiment is run: in seconds, on a laptop, or as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

from demix._support.errors import DemixError


@dataclass(frozen=True)
class Scale:
    """Sizes of a run.

    Experiments with pairs have ``dim`` latents; rows with labels have their own number, of which
    smoke takes at most this. ``draws`` are candidate matrices of the mixing, ``samples`` are fresh
    samples that are scored in the end, half of them to fit.
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
        """Threads of a job; None for all that it is given.

        One, except at paper scale: then a sweep fills the cores with jobs, and no bit depends on
        how many run at once.
        """
        return None if self.name == "paper" else 1


SCALES = {
    scale.name: scale
    for scale in (
        Scale("smoke", dim=3, draws=100, samples=2000),
        Scale("laptop"),
        Scale("paper"),
    )
}


def scale_named(name: str) -> Scale:
    """Return the scale called ``name``."""
    if name not in SCALES:
        raise DemixError(f"Unknown scale {name!r}; known are {', '.join(SCALES)}.")
    return SCALES[name]
