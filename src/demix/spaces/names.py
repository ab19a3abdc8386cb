"""Spaces by name, as a command line or an estimator is given them."""

from demix._support.errors import DemixError
from demix.spaces.base import Space
from demix.spaces.box import Box
from demix.spaces.l1_ball import L1Ball
from demix.spaces.real import Real
from demix.spaces.sphere import Sphere

_NAMED: dict[str, type[Sphere | Box | L1Ball | Real]] = {
    "sphere": Sphere,
    "box": Box,
    "l1_ball": L1Ball,
    "real": Real,
}


def space_named(name: str, dim: int) -> Space:
    """Return the unit ``"sphere"``, ``"box"`` or ``"l1_ball"``, or ``"real"`` space."""
    if name not in _NAMED:
        raise DemixError(f"Unknown space {name!r}; known are {', '.join(_NAMED)}.")
    return _NAMED[name](dim)
