"""How large an experiment is run: in seconds, on a laptop, or as in the paper."""

from __future__ import annotations

from dataclasses import dataclass, replace

from demix.encoders import Encoder, paper_encoder
from demix.errors import DemixError
from demix.experiments.declaration import Model, Row, space_named
from demix.objectives import AlignmentUniformity, InfoNCE, Objective, Supervised
from demix.processes import Pairs
from demix.training import Recipe, paper_recipe


@dataclass(frozen=True)
class Scale:
    """Sizes of a run.

    Attributes
    ----------
    name : str
        ``"smoke"``, ``"laptop"`` or ``"paper"``.
    dim : int
        Latents; 10 in the paper.
    draws : int
        Candidate matrices of the mixing.
    samples : int
        Fresh samples that are scored in the end, half of them to fit.
    """

    name: str
    dim: int = 10
    draws: int = 25_000
    samples: int = 61_440

    def plan(self, row: Row, model: Model) -> tuple[Encoder, Objective[Pairs], Recipe]:
        """Return encoder, objective and recipe of a trained model of ``row``."""
        supervised = model == "supervised"
        space = space_named(row.model_space, self.dim)
        objective: Objective[Pairs] = InfoNCE(row.similarity, group=row.laptop.group)
        if supervised:
            objective = Supervised()
        elif row.limit:
            objective = AlignmentUniformity(row.similarity)
        if self.name == "paper":
            if isinstance(objective, InfoNCE):
                objective = InfoNCE(row.similarity, two_sided=False)
            return paper_encoder(self.dim, space), objective, paper_recipe(supervised=supervised)
        if supervised:
            # The true latents have unit size, so nothing has to grow.
            encoder, recipe = Encoder(self.dim, space), Recipe(steps=2000)
        else:
            encoder = Encoder(self.dim, space, scale=row.laptop.scale)
            recipe = Recipe(steps=row.laptop.steps, batch=row.laptop.batch)
        if self.name == "smoke":
            recipe = replace(recipe, steps=60, batch=256)
        return encoder, objective, recipe


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
