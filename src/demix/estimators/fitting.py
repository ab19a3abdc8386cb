"""The function under all estimators: train on one part of the data, validate and test on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor

from demix.encoders.encoder import Encoder
from demix.estimators.gain import Gain, held_out_gain
from demix.estimators.sources import PARTS, Batch, Part, Source
from demix.training.loop import Record, Training, train
from demix.training.memory import check_training_memory
from demix.training.recipe import Recipe

# How many held-out samples choose the weights, and how many test them.
_HELD_OUT = 4096
# Evaluations without a better held-out loss before training ends.
_PATIENCE = 8
# Seeds of weights, of whitening and of held-out draws lie apart.
_APART = 2**40

Callback = Callable[[int, int, Record], None]
"""``callback(step, steps, record)`` after every step."""

Scored = TypeVar("Scored", contravariant=True)


class Likelihood(Protocol[Scored]):
    """An objective that also says how likely each positive or label is."""

    def __call__(self, encoder: Encoder, batch: Scored, /) -> Tensor:
        """Return the loss ``()``."""

    def log_likelihood(self, encoder: Encoder, batch: Scored, /) -> Tensor:
        """Return the log-probability ``(N,)`` of each positive or label."""


def default_recipe(units: int, *, steps: int = 3000) -> Recipe:
    """Return the training for so many pairs or rows.

    Each is seen about 32 times: more often, small data are learnt by heart before the rates have
    come down.
    """
    return Recipe(steps=min(steps, max(150, units // 32)), batch=max(2, min(1024, units)))


def fit_encoder(
    encoder: Encoder,
    objective: Likelihood[Batch],
    source: Source[Batch],
    recipe: Recipe,
    *,
    seed: int,
    scales: Tensor | None = None,
    warm_start: bool = False,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> tuple[Training, Gain]:
    """Train ``encoder`` and ``objective`` in place, keep the best weights, and test them.

    Parameters
    ----------
    scales : Tensor (dim_in,), optional
        Standard deviations of the columns, for the whitening.
    warm_start : bool
        Start from the present weights and whitening.
    checkpoint, about
        As in :func:`demix.train`.

    Returns
    -------
    Training
        Its records have ``validation`` and ``null``, held-out losses in nats of true and of
        permuted positives or labels.
    Gain
        On the test part, which neither training nor the choice of the weights has used.
    """
    device = next(encoder.parameters()).device
    held_out = torch.Generator(device).manual_seed(_APART + seed)
    check_training_memory(
        encoder, objective, recipe, checkpoint=checkpoint is not None, extra=_more_bytes(encoder)
    )
    if warm_start:
        recipe = replace(recipe, initialise=False)
    elif recipe.whiten:
        first = source.sample(encoder.whitening.samples, generator=held_out)
        encoder.whitening.fit(first.x.flatten(1), scales=scales)
    held, _ = _mixed(*source.held_out("validation", _HELD_OUT, generator=held_out))
    permuted = with_targets_of(held, derangement(len(held.x)).to(device))

    def loss(encoder: Encoder, batch: Batch) -> float:
        return -float(_likelihoods(encoder, objective, batch, recipe.batch).mean())

    training = train(
        encoder,
        source.sample,
        objective,
        replace(recipe, whiten=False),
        seed=seed,
        evaluate=lambda f: {"null": loss(f, permuted)},
        callback=None
        if callback is None
        else lambda step, last: callback(step, recipe.steps, last),
        validate=lambda f: loss(f, held),
        patience=_PATIENCE,
        checkpoint=checkpoint,
        about=about,
    )
    if training.interrupted:
        # A search over many fits must end, too; a checkpoint keeps what was learnt.
        raise KeyboardInterrupt
    return training, gain_of(encoder, objective, source, recipe.batch, parts=("test",))


def gain_of(
    encoder: Encoder,
    objective: Likelihood[Batch],
    source: Source[Batch],
    batch: int,
    *,
    parts: tuple[Part, ...] = PARTS,
) -> Gain:
    """Return the gain over permuted positives or labels, by default of data that are all new."""
    return held_out_gain(*held_out_likelihoods(encoder, objective, source, batch, parts=parts))


@torch.no_grad()
def held_out_likelihoods(
    encoder: Encoder,
    objective: Likelihood[Batch],
    source: Source[Batch],
    batch: int,
    *,
    parts: tuple[Part, ...] = PARTS,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-likelihoods ``(M,)`` of true and of permuted samples, and their blocks.

    The samples and their order are the same for every encoder and objective. By default, the data
    are all new.
    """
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(2 * _APART)
    held = [_mixed(*source.held_out(part, _HELD_OUT, generator=generator)) for part in parts]
    encoder.eval()
    own, permuted = [], []
    for samples, _ in held:
        others = with_targets_of(samples, derangement(len(samples.x)).to(device))
        own.append(_likelihoods(encoder, objective, samples, batch))
        permuted.append(_likelihoods(encoder, objective, others, batch))
    return torch.cat(own), torch.cat(permuted), torch.cat([blocks for _, blocks in held])


def with_targets_of(batch: Batch, order: Tensor) -> Batch:
    """Return the same observations with the positives or labels of others."""
    x, targets = batch
    return type(batch)(x, targets[order])


def taken(batch: Batch, index: slice | Tensor) -> Batch:
    """Return some of the samples."""
    return type(batch)(*(side[index] for side in batch))


def derangement(size: int) -> Tensor:
    """Return an order ``(size,)`` in which nothing stays in its place, the same one every time."""
    cycle = torch.randperm(size, generator=torch.Generator().manual_seed(0))
    order = torch.empty_like(cycle)
    order[cycle] = cycle.roll(1)
    return order


def _more_bytes(encoder: Encoder) -> float:
    """Return roughly what held-out samples and the whitening take in addition to training."""
    dim = math.prod(np.atleast_1d(encoder.settings["dim_in"]).tolist())
    held_out = 4 * 3 * 2 * _HELD_OUT * dim  # in their order, mixed, and with others' positives
    return held_out + encoder.whitening.fit_bytes


def _likelihoods(
    encoder: Encoder, objective: Likelihood[Batch], samples: Batch, batch: int
) -> Tensor:
    """Return log-likelihoods, contrasted in batches as large as those of training."""
    starts = range(0, len(samples.x), batch)
    batches = [taken(samples, slice(start, start + batch)) for start in starts]
    return torch.cat([objective.log_likelihood(encoder, part) for part in batches])


def _mixed(samples: Batch, blocks: Tensor) -> tuple[Batch, Tensor]:
    """Shuffle the samples, so that every batch of them holds samples of many blocks."""
    order = torch.randperm(len(blocks), generator=torch.Generator().manual_seed(0))
    return taken(samples, order.to(samples.x.device)), blocks[order]
