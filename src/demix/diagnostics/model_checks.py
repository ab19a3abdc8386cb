"""Checks of every model: its gain, and other fits to the same data."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import clone
from torch import Tensor

from demix._support.errors import DemixError
from demix.diagnostics.check import MARGINS, Check, around_zero, judge, skipped
from demix.encoders.encoder import Encoder
from demix.estimators.fitting import HeldOut
from demix.estimators.gain import Gain, block_mean, own_information
from demix.metrics.regression import affine_r2, mean_correlation, orthogonal_r2
from demix.theory.setting import UP_TO, EquivalenceName

# A 95 % interval is so many standard errors wide.
_WIDTH = 2 * 1.96

SCORES: dict[EquivalenceName, Callable[..., Any]] = {
    "orthogonal": orthogonal_r2,
    "affine": affine_r2,
    "linear": affine_r2,
    "permutation": mean_correlation,
}
"""The score that is 1 for latents which are the same up to each equivalence."""


@dataclass(frozen=True, eq=False)
class Refits:
    """The estimator, and others like it on the same data; None where a fit is not possible."""

    own: Any
    half: Any
    fewer: Any
    more: Any


def refit(demixer: Any, fit: Callable[[Any, bool], Any], callback: Callable[[str], None]) -> Refits:
    """Fit again to half of the rows, and to all with one latent fewer and more."""
    # ``fit(demixer, half)`` fits to half of the rows or to all.

    def again(stage: str, *, half: bool = False, **changes: Any) -> Any:
        callback(stage)
        try:
            return fit(clone(demixer).set_params(**changes), half)
        except DemixError:
            return None  # e.g. no sphere in one dimension, or a space of fixed dimension

    n, seed = int(demixer.n_latents), int(demixer._seed())
    return Refits(
        demixer,
        again("half of the rows", half=True, random_state=(seed + 1) % 2**32),
        again("one latent fewer", n_latents=n - 1, random_state=seed) if n > 1 else None,
        again("one latent more", n_latents=n + 1, random_state=seed),
    )


def informative(targets: str, gain: Gain) -> Check:
    """Check that the information about held-out targets is above zero."""
    found = f"The latents carry {gain} about held-out {targets}"
    return judge(
        f"{targets} informative",
        # No information at all is as bad as less.
        -gain.low if gain.above_zero else max(-gain.low, 1e-9),
        np.empty(0),
        unit="bits below zero, at the low end of the interval",
        good=f"{found}.",
        bad=f"{found}: the {targets} carry no information.",
        details=gain.to_dict(),
    )


def stability(refits: Refits, x: Tensor, equivalence: EquivalenceName) -> Check:
    """Compare with a fit to half of the rows from another seed, up to the theorem's equivalence."""
    # What half of the rows change is about what all of them leave uncertain: an estimate from half
    # of the data is off by twice the variance, of which it shares one half with that from all.
    if refits.half is None:
        return skipped("stability", "The model could not be fitted again.")
    first, second = (latents_of(d.encoder_, x) for d in (refits.own, refits.half))
    score, up_to = SCORES[equivalence](second, first), UP_TO[equivalence]
    found = f"Half of the rows give {100 * score:.1f} % of the same latents, up to {up_to}"
    return judge(
        "stability",
        1 - float(score),
        around_zero((score.high - score.low) / _WIDTH),
        unit=f"1 - score between fits, up to {up_to}",
        good=f"{found}.",
        bad=f"{found}: the latents depend on the rows or the seed.",
        details={"score": float(score), "chance": score.baseline},
    )


def dimension(refits: Refits, source: Any) -> list[Check]:
    """Test whether one latent more predicts held-out samples better, or one fewer as well."""
    few, many = "too few latents", "too many latents"
    if not hasattr(refits.own, "objective_"):
        why = "Model folders do not keep the prototypes of instances; check a model after its fit."
        return [skipped(few, why), skipped(many, why)]

    def compared(name: str, better: Any, worse: Any, unit: str, found: str, bad: str) -> Check:
        bits, reach = _difference(better, worse, source)
        words = f"{found} {bits:.3f} bits (95 % interval {bits - reach:.3f} to {bits + reach:.3f})"
        return judge(
            name,
            bits if name == few else 2 * MARGINS[many] - bits,
            around_zero(2 * reach / _WIDTH),
            unit=unit,
            good=f"{words}.",
            bad=f"{words}: {bad}.",
            details={"bits": bits, "low": bits - reach, "high": bits + reach},
        )

    units = "bits by one latent more", "bits that are missing of what a latent should add"
    found = "One latent more adds", "The last latent adds"
    checks = [
        skipped(few, "The model could not be fitted with one latent more."),
        skipped(many, "The model could not be fitted with one latent fewer."),
    ]
    if refits.more is not None:
        bad = "there are more factors than latents"
        checks[0] = compared(few, refits.more, refits.own, units[0], found[0], bad)
    if refits.fewer is not None:
        bad = "there are fewer factors than latents"
        checks[1] = compared(many, refits.own, refits.fewer, units[1], found[1], bad)
    return checks


@torch.no_grad()
def latents_of(encoder: Encoder, x: Tensor) -> np.ndarray:
    """Return the latents of rows in memory, in float64."""
    encoder.eval()
    parts = [encoder(part).double().cpu().numpy() for part in x.split(4096)]
    return np.concatenate(parts)


def _difference(first: Any, second: Any, source: Any) -> tuple[float, float]:
    """Return by how many bits one model knows more of held-out samples, and the 95 % reach."""
    held = HeldOut(source, ("test",), first._batch())

    (better, blocks), (worse, _) = (
        own_information(held.predictions(d.encoder_, d.objective_), d.gain_.sharpness)
        for d in (first, second)
    )
    return block_mean((better - worse) / math.log(2), blocks)
