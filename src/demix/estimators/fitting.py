"""The function under all estimators: train on one part of the data, choose and judge on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from demix._support.errors import warn
from demix.data.data import Data
from demix.encoders.encoder import Encoder
from demix.encoders.whitening import Whitening
from demix.estimators.gain import Gain, held_out_gain
from demix.estimators.split import PARTS, Part
from demix.training.loop import Record, Training, train
from demix.training.memory import check_training_memory
from demix.training.recipe import Recipe

# How many held-out samples choose the weights, and how many judge them.
_HELD_OUT = 4096
# Looks without a better held-out loss before training ends.
_PATIENCE = 8
# Seeds of weights, of whitening and of held-out draws lie apart.
_APART = 2**40

Report = Callable[[int, int, Record], None]
"""``report(step, steps, record)`` after every step."""


class Held(Protocol):
    """Held-out pairs or labelled samples."""

    @property
    def x(self) -> Tensor:
        """The observations."""

    def shuffled(self, order: Tensor) -> Self:
        """Return the same observations with the positives or labels of others."""

    def taken(self, index: slice | Tensor) -> Self:
        """Return some of them."""


B = TypeVar("B", bound=Held)
Drawn = TypeVar("Drawn", bound=Held, covariant=True)
Judged = TypeVar("Judged", bound=Held, contravariant=True)


class Source(Protocol[Drawn]):
    """Where batches come from, with parts that are held out."""

    data: Data

    def __len__(self) -> int:
        """Return how many pairs or rows are trained on."""

    def sample(self, size: int, *, generator: torch.Generator) -> Drawn:
        """Draw a batch to train on."""

    def held_out(
        self, part: Part, most: int, *, generator: torch.Generator
    ) -> tuple[Drawn, Tensor]:
        """Return samples of a held-out part and their groups."""


class Likelihood(Protocol[Judged]):
    """An objective that also says how likely each positive or label is."""

    def __call__(self, encoder: Encoder, batch: Judged, /) -> Tensor:
        """Return the loss ``()``."""

    def log_likelihood(self, encoder: Encoder, batch: Judged, /) -> Tensor:
        """Return the log-probability ``(N,)`` of each positive or label."""


@dataclass(frozen=True)
class Fit:
    """What a fit left behind, beside the encoder and the objective it changed."""

    training: Training
    gain: Gain


def default_recipe(units: int, *, steps: int = 3000) -> Recipe:
    """Return the training for so many pairs or rows.

    Each is seen about 32 times: more often, small data are learnt by heart before the rates have
    come down.

    Examples
    --------
    >>> from demix.estimators.fitting import default_recipe
    >>> default_recipe(16_000).steps, default_recipe(10**6).batch
    (500, 1024)
    """
    return Recipe(steps=min(steps, max(150, units // 32)), batch=max(2, min(1024, units)))


def fit_encoder(
    encoder: Encoder,
    objective: Likelihood[B],
    source: Source[B],
    recipe: Recipe,
    *,
    seed: int,
    scales: Tensor | None = None,
    goes_on: bool = False,
    report: Report | None = None,
    checkpoint: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Fit:
    """Train ``encoder`` and ``objective`` in place; keep the best weights, and judge them.

    Parameters
    ----------
    encoder, objective, source, recipe
        What is trained, on what and how.
    seed : int
        Seed of weights and batches.
    scales : Tensor (dim_in,), optional
        Standard deviations of the columns, for the whitening.
    goes_on : bool
        Start from the weights and the whitening that are there.
    report : callable, optional
        For progress bars.
    checkpoint, about
        As in :func:`demix.train`.

    Returns
    -------
    Fit
        The history, whose records have ``validation`` and ``null``, held-out losses in nats of
        true and of permuted positives or labels; and the gain, from a part that neither training
        nor the choice of the weights has seen.
    """
    device = next(encoder.parameters()).device
    held_out = torch.Generator(device).manual_seed(_APART + seed)
    check_training_memory(
        encoder, objective, recipe, checkpoint=checkpoint is not None, beside=_bytes_beside(encoder)
    )
    if goes_on:
        recipe = replace(recipe, initialise=False)
    elif recipe.whiten:
        first = source.sample(encoder.whitening.samples, generator=held_out)
        encoder.whitening.fit(first.x.flatten(1), scales=scales)
    choose, _ = _shuffled(*source.held_out("choose", _HELD_OUT, generator=held_out))
    others = derangement(len(choose.x)).to(device)

    def loss(encoder: Encoder, batch: B) -> float:
        return -float(_likelihoods(encoder, objective, batch, recipe.batch).mean())

    training = train(
        encoder,
        source.sample,
        objective,
        replace(recipe, whiten=False),
        seed=seed,
        watch=lambda f: {"null": loss(f, choose.shuffled(others))},
        report=None if report is None else lambda step, last: report(step, recipe.steps, last),
        validate=lambda f: loss(f, choose),
        patience=_PATIENCE,
        checkpoint=checkpoint,
        about=about,
    )
    if training.interrupted:
        # A search over many fits must end, too; a checkpoint keeps what was learnt.
        raise KeyboardInterrupt
    return Fit(training, judged(encoder, objective, source, recipe.batch, parts=("judge",)))


def judged(
    encoder: Encoder,
    objective: Likelihood[B],
    source: Source[B],
    batch: int,
    *,
    parts: tuple[Part, ...] = PARTS,
) -> Gain:
    """Return the gain over permuted positives or labels, by default of data that are all new."""
    return held_out_gain(*held_out_likelihoods(encoder, objective, source, batch, parts=parts))


@torch.no_grad()
def held_out_likelihoods(
    encoder: Encoder,
    objective: Likelihood[B],
    source: Source[B],
    batch: int,
    *,
    parts: tuple[Part, ...] = PARTS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-likelihoods ``(M,)`` of true and of permuted samples, and their groups.

    They are of the same samples in the same order for every encoder and objective.
    """
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(2 * _APART)
    held = [_shuffled(*source.held_out(part, _HELD_OUT, generator=generator)) for part in parts]
    encoder.eval()
    own, permuted = [], []
    for samples, _ in held:
        others = samples.shuffled(derangement(len(samples.x)).to(device))
        own.append(_likelihoods(encoder, objective, samples, batch))
        permuted.append(_likelihoods(encoder, objective, others, batch))
    groups = torch.cat([group for _, group in held])
    return torch.cat(own), torch.cat(permuted), groups


def _bytes_beside(encoder: Encoder) -> float:
    """Return roughly what a fit takes beside training: held-out pairs, and the whitening."""
    dim = math.prod(np.atleast_1d(encoder.settings["dim_in"]).tolist())
    held_out = 4 * 3 * 2 * _HELD_OUT * dim  # in their order, mixed, and with others' positives
    squares = 3 * 8 * dim**2 if isinstance(encoder.whitening, Whitening) else 0
    return held_out + (4 + 2 * 8) * encoder.whitening.samples * dim + squares


def _likelihoods(encoder: Encoder, objective: Likelihood[B], samples: B, batch: int) -> Tensor:
    """Return log-likelihoods, contrasted in groups as large as those of training."""
    starts = range(0, len(samples.x), batch)
    groups = [samples.taken(slice(start, start + batch)) for start in starts]
    return torch.cat([objective.log_likelihood(encoder, group) for group in groups])


def derangement(size: int) -> Tensor:
    """Return an order ``(size,)`` in which nothing stays in its place, the same one every time.

    Examples
    --------
    >>> from demix.estimators.fitting import derangement
    >>> sorted(derangement(3).tolist()), any(derangement(3) == torch.arange(3))
    ([0, 1, 2], False)
    """
    cycle = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    order = torch.empty_like(cycle)
    order[cycle] = cycle.roll(1)
    return order


def warn_of_no_gain(gain: Gain, what: str) -> None:
    """Warn if held-out positives or labels are told no better than permuted ones."""
    if not gain.above_zero:
        warn(
            f"The gain of held-out {what} over permuted ones is {gain}, which is not above zero: "
            f"nothing was learnt that holds for new data. Check that {what} and rows belong "
            "together (rows in time order?), or give more data."
        )


def _shuffled(batch: B, groups: Tensor) -> tuple[B, Tensor]:
    """Mix the groups, so that every part of the batch holds samples of many."""
    order = torch.randperm(len(groups), generator=torch.Generator().manual_seed(0))
    device = batch.x.device
    return batch.taken(order.to(device)), groups[order]
