"""Latent spaces: where the factors live and how an encoder's output gets there."""

from demix.spaces.base import Space
from demix.spaces.box import Box
from demix.spaces.check import check_space
from demix.spaces.l1_ball import L1Ball
from demix.spaces.names import space_named
from demix.spaces.product import Product
from demix.spaces.real import Real
from demix.spaces.sphere import Sphere

__all__ = ["Box", "L1Ball", "Product", "Real", "Space", "Sphere", "check_space", "space_named"]
