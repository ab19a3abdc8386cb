"""The settings of a training."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

from demix._support.errors import DemixError


@dataclass(frozen=True)
class Recipe:
    """Settings of :func:`demix.train`.

    Parameters
    ----------
    steps, batch : int
        Optimiser steps, and pairs or labelled samples in each.
    optimizer : "muon", "muon_last" or "adam"
        Muon on matrices and convolutions with Adam on the rest; Muon on the matrix of the last
        layer alone; or Adam on everything.
    matrix_rate, rate : float
        Peak learning rates of Muon and of Adam.
    weight_decay : float
        What Muon takes off the matrices in a step, relative to its rate.
    warmup : float
        Share of the steps over which the rates rise.
    decay : bool
        Let the rates fall to zero along a half cosine; else they stay.
    whiten : bool
        Fit the encoder's whitening on a first sample.
    initialise : bool
        Draw the weights for whitened inputs; else torch's own initialisation stays.
    bf16 : bool
        Run the encoder in bfloat16 where the processor supports it; narrow bodies gain nothing.
    average : float
        Share of the past in an exponential average of the encoder's weights, which is what is
        evaluated and returned; 0 takes the weights as they are.
    chunk : int, optional
        Keep the activations of so many observations at a time
        (:class:`demix.training.memory.Chunked`): less memory for a second pass forward.

    Examples
    --------
    >>> from demix import Recipe
    >>> Recipe(steps=100).rate_factor(99) < Recipe(steps=100).rate_factor(50)
    True
    """

    steps: int = 3000
    batch: int = 1024
    optimizer: Literal["muon", "muon_last", "adam"] = "muon"
    matrix_rate: float = 0.02
    rate: float = 0.02
    weight_decay: float = 0.0
    warmup: float = 0.05
    decay: bool = True
    whiten: bool = True
    initialise: bool = True
    bf16: bool = False
    average: float = 0.0
    chunk: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("batch", 2)):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < least:
                raise DemixError(
                    f"{name} of a recipe must be a whole number of at least {least}, but got "
                    f"{value!r}."
                )
        if not 0 <= self.average < 1:
            raise DemixError(f"average must be from 0 to below 1, but got {self.average!r}.")
        if self.optimizer not in ("muon", "muon_last", "adam"):
            raise DemixError(
                f'optimizer must be "muon", "muon_last" or "adam", but got {self.optimizer!r}.'
            )

    def rate_factor(self, step: int) -> float:
        """Return the share of the peak rate at ``step`` (counted from 0)."""
        rise = self.warmup * self.steps
        if step < rise:
            return (step + 1) / (rise + 1)
        if not self.decay:
            return 1.0
        return 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1.0, self.steps - rise)))
