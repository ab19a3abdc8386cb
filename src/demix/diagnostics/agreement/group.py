"""Up to what theory identifies the latents of an estimator: the group that runs may differ by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from demix._support.errors import DemixError
from demix.estimators.assumptions import assumed_space, pair_objective
from demix.estimators.base import Demixer
from demix.estimators.contrastive import ContrastiveDemixer
from demix.losses.pairs import InfoNCE
from demix.losses.shaped import ShapedInfoNCE
from demix.spaces.base import Space
from demix.spaces.sphere import Sphere

Name = Literal["orthogonal", "signed permutation", "affine"]
_WORDS: dict[Name, str] = {
    "orthogonal": "a rotation or reflection",
    "signed permutation": "order, sign, scale and shift of the dimensions",
    "affine": "an affine map",
}
# A learnt shape so close to that of normal noise does not tell the axes apart.
_NEAR_NORMAL = 0.5


@dataclass(frozen=True)
class Group:
    """A group of maps ``z -> z A + b`` of latents.

    Attributes
    ----------
    name : str
        ``"orthogonal"`` (with one scale), ``"signed permutation"`` (with a scale and a shift for
        each dimension) or ``"affine"``.
    sphere : bool
        Whether latents lie on a sphere around the origin, which an orthogonal map leaves in its
        place.
    theorem : str or None
        Which result promises that latents are identified up to this group, if any does.

    Examples
    --------
    >>> from demix.diagnostics.agreement.group import Group
    >>> Group("affine").words
    'an affine map'
    """

    name: Name
    sphere: bool = False
    theorem: str | None = None

    def __post_init__(self) -> None:
        if self.name not in get_args(Name):
            known = ", ".join(f'"{name}"' for name in get_args(Name))
            raise DemixError(f"A group is one of {known}, but got {self.name!r}.")

    @property
    def words(self) -> str:
        """What the group leaves open, in a few words."""
        return _WORDS[self.name]


def group_of(estimator: Demixer) -> Group:
    """Return the smallest group up to which theory identifies the latents of an estimator.

    - :class:`ContrastiveDemixer` on a sphere, vMF or normal: orthogonal [1]; anisotropic:
      orthogonal [4].
    - :class:`ContrastiveDemixer` in a convex body, ``p != 2``: signed permutation [2]; normal or
      anisotropic: affine [3].
    - Class labels, or rows alone, on a sphere: orthogonal; elsewhere: affine [5].

    What no theorem covers is affine, the largest of them. A shape that is learnt
    (``conditional="auto"``) counts once the estimator is fitted, and as normal before and within
    0.5 of ``p = 2``.

    Parameters
    ----------
    estimator : ContrastiveDemixer, ClassifierDemixer or InstanceDemixer
        Fitted or not.

    References
    ----------
    [1, 2, 3] Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process,
    Theorems 2, 6 and 5. [4] Rusak et al. (2024), InfoNCE: Identifying the Gap Between Theory and
    Practice. [5] Reizinger et al. (2024), Cross-Entropy Is All You Need To Invert the Data
    Generating Process, Theorem 1.

    Examples
    --------
    >>> from demix import ContrastiveDemixer
    >>> from demix.diagnostics.agreement.group import group_of
    >>> group_of(ContrastiveDemixer(space="sphere")).name
    'orthogonal'
    >>> group_of(ContrastiveDemixer(space="box", conditional="laplace")).name
    'signed permutation'
    """
    space = assumed_space(estimator.space, estimator.n_latents)
    if isinstance(estimator, ContrastiveDemixer):
        objective = getattr(estimator, "objective_", None)
        return group_of_pairs(space, objective or pair_objective(estimator.conditional, space))
    sphere, unit = isinstance(space, Sphere), bool(getattr(estimator, "unit_rows", False))
    case = {(True, True): 1, (True, False): 2, (False, True): 3, (False, False): 4}[sphere, unit]
    theorem = f"Theorem 1, case C{case}, of Reizinger et al. (2024)"
    return Group("orthogonal" if sphere else "affine", sphere=sphere, theorem=theorem)


def chosen_group(name: str, space: Space) -> Group:
    """Return the group that a user names in place of the theorem's."""
    return Group(name, sphere=name == "orthogonal" and isinstance(space, Sphere))  # type: ignore[arg-type]


def widest(groups: list[Group]) -> Group:
    """Return the group that all runs fit into; learnt conditionals may differ between runs."""
    return groups[0] if len(set(groups)) == 1 else Group("affine")


def group_of_pairs(space: Space, objective: InfoNCE | ShapedInfoNCE) -> Group:
    """Return the group for pairs that an objective contrasts in a space."""
    shaped = isinstance(objective, ShapedInfoNCE)
    shape: str | float
    if isinstance(objective, ShapedInfoNCE):
        shape = 2.0 if abs(objective.shape - 2) <= _NEAR_NORMAL else objective.shape
    else:
        shape = objective.similarity
    if isinstance(space, Sphere):
        # On a sphere the squared distance is the dot product but for a constant.
        if shape not in ("dot", 2.0):
            return Group("affine")
        source = "Rusak et al. (2024)" if shaped else "Theorem 2 of Zimmermann et al. (2021)"
        return Group("orthogonal", sphere=True, theorem=source)
    # The theorems are about convex bodies, which are bounded.
    if not (space.convex and space.bounded):
        return Group("affine")
    if shape == 2.0:
        return Group("affine", theorem="Theorem 5 of Zimmermann et al. (2021)")
    return Group("signed permutation", theorem="Theorem 6 of Zimmermann et al. (2021)")
