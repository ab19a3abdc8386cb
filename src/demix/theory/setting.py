"""From a setting to what is identified: the equivalence class, the theorem and its conditions.

All other rooms ask here. The vocabulary is that of :data:`EquivalenceName`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from demix._support.errors import DemixError
from demix._support.resources import table

if TYPE_CHECKING:  # scores take their words from here without waiting for torch
    from torch import Tensor

    from demix.spaces.base import Space

Supervision = Literal["pairs", "labels", "instances"]
EquivalenceName = Literal["orthogonal", "affine", "linear", "permutation", "none"]
Case = Literal["C1", "C2", "C3", "C4"]

_WORDS = table("theory/words.toml")
UP_TO: dict[EquivalenceName, str] = _WORDS["up_to"]
"""What each equivalence leaves open, in words."""

_NAMED_SHAPES = dict.fromkeys(["normal", "anisotropic", "auto", "dynamics"], 2.0) | {"laplace": 1.0}
_NEAR_NORMAL = 0.5  # a learnt shape so close to the normal one does not tell the axes apart

_ZIMMERMANN = "Zimmermann et al. (2021)"
_REIZINGER = "Reizinger et al. (2024)"


@dataclass(frozen=True)
class Setting:
    """What a model assumes about the latents, and what it is trained with.

    Attributes
    ----------
    supervision : "pairs", "labels" or "instances"
        Positive pairs, class labels, or every row as a class of its own.
    space : Space
        The space of the latents, which is that of the encoder's output.
    conditional : str or float
        How positives differ from their anchors, or the latents of a class from its vector:
        ``"vmf"``, ``"normal"``, ``"laplace"``, the shape ``p`` of a generalised normal,
        ``"anisotropic"`` (normal, with a learnt scale for each dimension), ``"auto"`` (a learnt
        shape, not known yet), ``"dynamics"`` (normal, around a learnt linear map of the anchor),
        ``"covariances"`` (normal, with a covariance for each class), or the name of another
        distribution.
    marginal : str
        ``"uniform"``; ``"any"``, if a potential is learnt that takes it up; or the name of another
        distribution of the latents.
    learned : bool
        Whether a number in ``conditional`` is a learnt shape.
    unit_prototypes : bool
        Whether the prototypes of a classifier are kept on the unit sphere.
    label_noise : float
        Share of random labels that the loss does not correct.
    """

    supervision: Supervision
    space: Space
    conditional: str | float = "vmf"
    marginal: str = "uniform"
    learned: bool = False
    unit_prototypes: bool = False
    label_noise: float = 0.0

    def __post_init__(self) -> None:
        if self.supervision not in get_args(Supervision):
            raise DemixError(
                f'supervision must be "pairs", "labels" or "instances", not {self.supervision!r}.'
            )

    @property
    def shape(self) -> float | None:
        """The power of the distance that the conditional implies, if it is of that form."""
        if self.conditional == "vmf":
            return 2.0 if self.space.spherical else None
        if isinstance(self.conditional, str):
            return _NAMED_SHAPES.get(self.conditional)
        return float(self.conditional)


@dataclass(frozen=True)
class Equivalence:
    """A class of maps ``z -> z A + b``: latents that differ by one of them are the same.

    Attributes
    ----------
    name : "orthogonal", "affine", "linear", "permutation" or "none"
        ``"orthogonal"`` includes one scale; ``"permutation"`` a sign, a scale and a shift for each
        dimension; ``"none"`` means that nothing is identified.
    sphere : bool
        Whether latents lie on a sphere around the origin, which an orthogonal map keeps.
    theorem : str or None
        The result that promises the latents up to this class.
    case : "C1" to "C4", or None
        For a classifier: features unit or free, prototypes unit or free.
    prototypes : str
        For a classifier: the same for its prototypes against the vectors of the classes.
    conditions : tuple of str
        What the theorem needs.
    reasons : tuple of str
        Which conditions fail, in sentences.

    Examples
    --------
    >>> from demix.theory.setting import Equivalence
    >>> Equivalence("affine").words
    'an affine map'
    """

    name: EquivalenceName
    sphere: bool = False
    theorem: str | None = None
    case: Case | None = None
    prototypes: EquivalenceName = "none"
    conditions: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name not in get_args(EquivalenceName):
            known = ", ".join(f'"{name}"' for name in get_args(EquivalenceName))
            raise DemixError(f"An equivalence is one of {known}, but got {self.name!r}.")

    @property
    def words(self) -> str:
        """What the class leaves open, in a few words."""
        return UP_TO[self.name]

    def without(self, *reasons: str) -> Equivalence:
        """Return that nothing is identified, for these reasons and those that are known."""
        nothing = replace(self, name="none", prototypes="none", theorem=None)
        return replace(nothing, reasons=(*self.reasons, *reasons))


def identified(setting: Setting, vectors: Tensor | None = None) -> Equivalence:
    """Return the smallest class up to which a theorem identifies the latents.

    - Pairs on a sphere, vMF or normal: orthogonal [1]; with a scale per dimension: orthogonal [4].
    - Pairs in a convex body: ``p != 2`` permutation [2]; normal affine [3]. With a potential, which
      takes up any marginal, the same holds in ``R^n``; linear dynamics: affine [6].
    - Labels or instances on a sphere: orthogonal (C1, C2); elsewhere linear (C4), and orthogonal
      if prototypes are unit and ``vectors`` are known to be diverse (C3) [5]; classes with a
      covariance each and quadratic logits: affine.

    A learnt shape within 0.5 of 2 counts as normal.

    Parameters
    ----------
    setting : Setting
        What is assumed.
    vectors : Tensor (C, n), optional
        The vectors of the classes, where they are known; the rank conditions are then tested.

    References
    ----------
    [1, 2, 3] Zimmermann et al. (2021), Contrastive Learning Inverts the Data Generating Process,
    Theorems 2, 6 and 5. [4] Rusak et al. (2024), InfoNCE: Identifying the Gap Between Theory and
    Practice. [5] Reizinger et al. (2024), Cross-Entropy Is All You Need To Invert the Data
    Generating Process, Theorem 1. [6] González Laiz et al. (2024), Self-supervised contrastive
    learning performs non-linear system identification.

    Examples
    --------
    >>> import torch
    >>> from demix import Box, Real, Sphere
    >>> from demix.theory.setting import Setting, identified
    >>> identified(Setting("pairs", Sphere(3))).name
    'orthogonal'
    >>> identified(Setting("pairs", Box(3), "laplace")).theorem
    'Theorem 6 of Zimmermann et al. (2021)'
    >>> identified(Setting("labels", Real(5)), torch.eye(5)).name
    'none'
    """
    if setting.supervision == "pairs":
        return _identified_by_pairs(setting)
    return _identified_by_classes(setting, vectors)


def weakest(equivalences: list[Equivalence]) -> Equivalence:
    """Return the class that all of several models share: affine if they differ or have none."""
    first = equivalences[0]
    shared = first.name != "none" and len(set(equivalences)) == 1
    return first if shared else Equivalence("affine")


def _identified_by_pairs(setting: Setting) -> Equivalence:
    space, shape = setting.space, setting.shape
    if setting.learned and shape is not None and abs(shape - 2) <= _NEAR_NORMAL:
        shape = 2.0
    if setting.marginal not in _WORDS["marginals"]:
        return _nothing("marginal", setting)
    if space.spherical:
        if shape != 2.0:  # on a sphere the squared distance is the dot product, but for a constant
            return _nothing("sphere", setting)
        if setting.learned or setting.conditional in ("anisotropic", "auto"):
            return _by_pairs("orthogonal", "Rusak", "uniform", sphere=True)
        return _by_pairs("orthogonal", "Theorem 2", setting.marginal, sphere=True)
    # The theorems are about bounded bodies; without a uniform marginal they hold in R^n.
    if not (space.convex and (space.bounded or setting.marginal == "any")):
        return _nothing("space", setting)
    if setting.conditional == "dynamics":
        return _by_pairs("affine", "Dynamics", "any")
    if shape == 2.0:
        return _by_pairs("affine", "Theorem 5", setting.marginal)
    if shape is None:
        return _nothing("conditional", setting)
    return _by_pairs("permutation", "Theorem 6", setting.marginal)


def _by_pairs(name: EquivalenceName, key: str, marginal: str, sphere: bool = False) -> Equivalence:
    theorem = _WORDS["theorems"].get(key, f"{key} of {_ZIMMERMANN}")
    if marginal == "any":
        theorem += " with a potential for any marginal"
    conditions = (_WORDS["injective"], _WORDS["marginals"][marginal], _WORDS["pairs"][key])
    return Equivalence(name, sphere, theorem, conditions=conditions)


def _nothing(why: str, setting: Setting) -> Equivalence:
    return Equivalence("none", reasons=(_reason(why, setting=setting),))


def _reason(why: str, **facts: Any) -> str:
    words: str = _WORDS["reasons"][why]
    return words.format(**facts)


def _identified_by_classes(setting: Setting, vectors: Tensor | None) -> Equivalence:
    broken = [_reason("label noise", setting=setting)] if setting.label_noise else []
    if setting.conditional == "covariances":
        conditions = (_WORDS["injective"], *_WORDS["covariances"])
        theorem = _WORDS["theorems"]["Quadratic"]
        found = Equivalence("affine", theorem=theorem, conditions=conditions)
        return found.without(*broken) if broken else found
    unit_features, unit_prototypes = setting.space.spherical, setting.unit_prototypes
    case: Case
    if unit_features:
        case = "C1" if unit_prototypes else "C2"
    else:
        case = "C3" if unit_prototypes else "C4"
    found = Equivalence(
        "orthogonal" if unit_features else "linear",
        unit_features,
        f"Theorem 1, case {case}, of {_REIZINGER}",
        case,
        "orthogonal" if case == "C1" else "affine",
        (_WORDS["injective"], *_WORDS["labels"]),
    )
    if vectors is not None:
        found = _with_vectors(found, vectors)
    if setting.conditional != "vmf":
        broken.append(_reason("not vMF", setting=setting))
    return found.without(*broken) if broken else found


def _with_vectors(found: Equivalence, vectors: Tensor) -> Equivalence:
    """Test the rank conditions of Theorem 1 on the vectors of the classes."""
    from demix.theory.ranks import affine_generator_rank, diversity_rank

    count, d = vectors.shape
    rank = affine_generator_rank(vectors)
    if rank < d:
        return found.without(_reason("span", count=count, rank=rank, d=d, least=d + 1))
    if found.case != "C3":
        return found
    full, needed = diversity_rank(vectors)
    if full == needed:
        return replace(found, name="orthogonal", prototypes="orthogonal")
    weaker, asked = diversity_rank(vectors, sufficient=False)
    ranks = {"full": full, "needed": needed, "weaker": weaker, "asked": asked}
    paper = "holds" if weaker == asked else "fails, too"
    return replace(found, reasons=(_reason("diversity", paper=paper, **ranks),))
