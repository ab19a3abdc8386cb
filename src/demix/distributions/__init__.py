"""Marginal and conditional distributions of latents, with exact samplers and densities."""

from demix.distributions.base import Around, Conditional, Marginal, Similarity
from demix.distributions.check import check_conditional
from demix.distributions.generalized_normal import GeneralizedNormal, Laplace, Normal
from demix.distributions.uniform import Uniform
from demix.distributions.von_mises_fisher import (
    VonMisesFisher,
    log_normaliser,
    mean_resultant_length,
)

__all__ = [
    "Around",
    "Conditional",
    "GeneralizedNormal",
    "Laplace",
    "Marginal",
    "Normal",
    "Similarity",
    "Uniform",
    "VonMisesFisher",
    "check_conditional",
    "log_normaliser",
    "mean_resultant_length",
]
