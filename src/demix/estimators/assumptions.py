"""Names of what a user assumes about the latents: the space, and how positives differ."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, NamedTuple

from demix._support.errors import DemixError, shortened
from demix.encoders.bodies import BODIES
from demix.losses.pairs import DynamicsInfoNCE, InfoNCE, PotentialInfoNCE, ShapedInfoNCE
from demix.losses.similarities import SimilarityName
from demix.spaces.base import Space
from demix.spaces.kinds import space_named

# Each name's similarity: the dot product, or the power of the distance.
_SIMILARITIES: dict[str, SimilarityName] = {"vmf": "dot", "normal": 2.0, "laplace": 1.0}
_KNOWN = '"vmf", "normal", "laplace", a number p >= 1, "anisotropic", "auto" or "dynamics"'
# Where the size of the output starts: a radius is the root of the inverse temperature, and both
# have to be large enough to tell positives apart before training moves anything.
_START = {True: 3.0, False: 8.0}
_STEEPEST = 1e6  # noise of larger shapes is uniform in a box, to the last digit
# Inputs of more numbers are whitened in the directions of the largest variance only.
_MANY, _COMPONENTS = 1024, 256

Conditional = str | float | None
"""How positives differ, by name or as the shape of a generalised normal."""


class Assumed(NamedTuple):
    """What a fit assumes about the latents; the conditional and the marginal are those of pairs."""

    space: Space
    conditional: Conditional = None
    marginal: str = "uniform"


def pair_alternatives(
    space: str | Space, n_latents: int, conditional: Conditional, marginal: str, *, in_time: bool
) -> list[Assumed]:
    """Return what may be assumed of the latents of pairs; what comes first is preferred.

    In the space ``"auto"`` these are a sphere with vMF (Theorem 2) and latents of any marginal: of
    a series, with linear dynamics and a time constant for each, and with normal differences.
    """
    if space != "auto":
        known = assumed_space(space, n_latents)
        return [Assumed(known, conditional or default_conditional(known), marginal)]
    if conditional in ("vmf", "anisotropic", "auto"):  # learnt shapes take no potential
        return [Assumed(assumed_space("sphere", n_latents), conditional, marginal)]
    real = assumed_space("real", n_latents)
    if conditional is not None:
        return [Assumed(real, conditional, "any")]
    found = [Assumed(real, "dynamics", "any")] * in_time + [Assumed(real, "normal", "any")]
    if n_latents > 1:
        found.insert(0, Assumed(assumed_space("sphere", n_latents), "vmf", marginal))
    return found


def assumed_space(space: str | Space, n_latents: int) -> Space:
    """Return a space, or the named space of ``n_latents`` dimensions."""
    if not isinstance(space, str | Space):
        raise DemixError(f"space must be a name or a Space, but got {space!r}.")
    known = space_named(space, n_latents) if isinstance(space, str) else space
    if known.dim != n_latents:
        raise DemixError(
            f"{known!r} has {known.dim} dimensions, but n_latents is {n_latents}; make them equal."
        )
    return known


def default_conditional(space: Space) -> str:
    """Return the conditional that goes with a space: vMF on a sphere, else Laplace."""
    # It identifies more (Theorem 6 of Zimmermann et al. 2021) than normal noise (Theorem 5).
    return "vmf" if space.spherical else "laplace"


def pair_objective(
    conditional: Conditional, space: Space, marginal: str = "uniform"
) -> InfoNCE | PotentialInfoNCE | ShapedInfoNCE:
    """Return the objective of a conditional and a marginal of :class:`ContrastiveDemixer`."""
    if marginal not in ("uniform", "any"):
        raise DemixError(f'marginal must be "uniform" or "any", but got {marginal!r}.')
    if conditional is None:
        conditional = default_conditional(space)
    if conditional == "vmf" and not space.spherical:
        raise DemixError(
            f'vMF lives on a sphere, but the space is {space!r}; choose the sphere or "normal".'
        )
    if conditional == "dynamics":
        if space.bounded or space.spherical:
            raise DemixError(
                f'Linear dynamics need a space without bounds, but got {space!r}; choose "real".'
            )
        return DynamicsInfoNCE(space.dim)
    if conditional in ("anisotropic", "auto"):
        if marginal == "any":
            raise DemixError(
                f'marginal="any" takes a conditional of a known shape, but got {conditional!r}; '
                "name one of the others."
            )
        return ShapedInfoNCE(space.dim, shape=2.0, learn_shape=conditional == "auto")
    similarity: SimilarityName
    if isinstance(conditional, Real) and conditional is not True and 1 <= conditional < _STEEPEST:
        similarity = float(conditional)
    elif isinstance(conditional, str) and conditional in _SIMILARITIES:
        similarity = _SIMILARITIES[conditional]
    else:
        raise DemixError(f"conditional must be {_KNOWN}, but got {conditional!r}.")
    if marginal == "any":
        return PotentialInfoNCE(space.dim, similarity=similarity)
    return InfoNCE(similarity)


def encoder_settings(
    settings: str | dict[str, Any] | None, space: Space, shape: Sequence[int]
) -> dict[str, Any]:
    """Return the arguments of an encoder for rows of a shape, with defaults for those not given."""
    if isinstance(settings, str):
        settings = {"body": settings}
    if settings is not None and (not isinstance(settings, dict) or "dim_in" in settings):
        raise DemixError(
            "encoder must be None, the name of a body or a dict of settings of Encoder other than "
            f"dim_in, e.g. {{'hidden': (64, 64)}}, but got {shortened(repr(settings))}."
        )
    own: dict[str, Any] = {"dim_in": tuple(shape), "scale": _START[space.spherical]}
    if settings is None and len(shape) == 3 and min(shape[1:]) >= BODIES["compact"][1]:
        own["body"] = "compact"
        return own
    if math.prod(shape) > _MANY and (settings or {}).get("body", "mlp") == "mlp":
        own["components"] = _COMPONENTS
    return own | (settings or {})
