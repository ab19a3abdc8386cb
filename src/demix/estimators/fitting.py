"""The function under all estimators: train on one part of the data, validate and test on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor

from demix._support.process_group.group import Ranks
from demix._support.validation import seed_apart
from demix.encoders.encoder import Encoder
from demix.estimators.gain import Gain, Prediction, fitted_sharpness, held_out_gain, mean_loss
from demix.estimators.sources import Batch, Part, Source
from demix.losses.objective import Objective
from demix.training.checkpoints import checkpoint_files
from demix.training.loop import Record, Training, train
from demix.training.memory import check_training_memory
from demix.training.recipe import Recipe
from demix.training.state import State

# How many held-out samples choose the weights, and how many test them; with very many classes
# fewer, so that their probabilities are about so many numbers.
_HELD_OUT, _LEAST, _NUMBERS = 4096, 64, 2**25
# Evaluations without a better held-out loss before training ends.
_PATIENCE = 8
# A training that is not very short is tried from so many starts, for an eighth of its steps.
_STARTS, _SHORTEST, _LONGEST = 3, 20, 200
# Whitening and held-out samples have random numbers of their own.
_HELD_OUT_STREAM, _START_STREAM, _TEST_SEED = 1, 2, 2**31

Callback = Callable[[int, int, Record], None]
"""``callback(step, steps, record)`` after every step."""

Scored = TypeVar("Scored", contravariant=True)


class Likelihood(Protocol[Scored]):
    """An objective that also says how probable each key or class is."""

    def __call__(self, encoder: Encoder, batch: Scored, /) -> Tensor:
        """Return the loss ``()``."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew."""

    def log_probabilities(self, encoder: Encoder, batch: Scored, /) -> Tensor:
        """Return the log-probability ``(N, K)`` of each key or class."""


def default_recipe(units: int, *, steps: int = 3000) -> Recipe:
    """Return the training for so many pairs or rows; the held-out loss ends it earlier."""
    # Each is seen about 128 times, of very many 64 times: more often, small data are learnt by
    # heart before the rates have come down.
    enough = max(150, min(units // 8, 600), units // 16)
    batch = max(2, min(1024, units))
    return Recipe(steps=min(steps, enough), batch=batch, average=0.95, weight_decay=0.3)


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

    ``scales`` ``(dim_in,)`` are standard deviations of the columns, for the whitening; a
    ``warm_start`` is one from the present weights and whitening. The gain is that on the test part,
    which neither training nor the choice of the weights has used.
    """
    device = next(encoder.parameters()).device
    held_out = torch.Generator(device).manual_seed(seed_apart(seed, _HELD_OUT_STREAM))
    # Held-out anchors and positives, in their order and in batches, and the whitening.
    dim = math.prod(encoder.shape)
    extra = 4 * 2 * 2 * _HELD_OUT * dim + encoder.whitening.fit_bytes
    saves = checkpoint is not None
    check_training_memory(encoder, objective, recipe, checkpoint=saves, extra=extra)
    if recipe.whiten and not warm_start:
        first = source.sample(encoder.whitening.samples, generator=held_out)
        encoder.whitening.fit(first.x.flatten(1), scales=scales)
    held = HeldOut(source, ("validation",), recipe.batch, generator=held_out)
    tries = min(recipe.steps // 8, _LONGEST)
    fresh = recipe.initialise and not warm_start
    before = _STARTS * tries if fresh and tries >= _SHORTEST else 0
    steps, recipe = recipe.steps, replace(recipe, initialise=False, whiten=False)

    def trained(recipe: Recipe, seed: int, done: int, **options: Any) -> Training:
        def after_step(step: int, last: Record) -> None:
            if callback is not None:
                callback(done + step, before + steps, last)

        found = train(
            encoder,
            source.sample,
            objective,
            recipe,
            seed=seed,
            callback=after_step,
            validate=lambda f: mean_loss(held.predictions(f, objective)),
            **options,
        )
        if found.interrupted:
            # A search over many fits must end, too; a checkpoint keeps what was learnt.
            raise KeyboardInterrupt
        return found

    short = replace(recipe, steps=max(tries, 1), decay=False)
    kept = State(encoder, cast(Objective[Any], objective), [], {})
    generator = torch.Generator(device).manual_seed(seed_apart(seed, _START_STREAM))
    begun = checkpoint is not None and any(f.exists() for f in checkpoint_files(checkpoint))
    begun = Ranks.current().broadcast(begun)
    for done in range(0, before or 1, max(tries, 1)) if fresh and not begun else ():
        encoder.initialise(generator)
        objective.initialise(generator)
        if done == 0:
            encoder.start_linear(*source.partners(encoder.whitening.samples, generator=generator))
        if before:
            tried = trained(short, seed, done, eval_every=tries)
            kept.keep_best(float(tried.history[-1]["validation"] or 0.0))
    kept.return_to_best()
    training = trained(recipe, seed, before, patience=_PATIENCE, checkpoint=checkpoint, about=about)
    sharpness = fitted_sharpness(held.predictions(encoder, objective))
    test = HeldOut(source, ("test",), recipe.batch)
    return training, held_out_gain(test.predictions(encoder, objective), sharpness)


class HeldOut(Generic[Batch]):
    """Held-out samples in batches as large as those of training, the same for every model.

    Blocks lie together and in a random order, so that a circular shift moves them against each
    other; every batch has samples of many of them.
    """

    def __init__(
        self,
        source: Source[Batch],
        parts: Sequence[Part],
        batch: int,
        *,
        generator: torch.Generator | None = None,
    ) -> None:
        generator = generator or torch.Generator().manual_seed(_TEST_SEED)
        guess = source.guess()
        most = min(_HELD_OUT, max(_LEAST, _NUMBERS // (batch if guess is None else len(guess))))
        self.batches: list[tuple[Batch, Tensor, Tensor]] = []
        for part in parts:
            samples, blocks = source.held_out(part, most, generator=generator)
            _, place = blocks.unique(return_inverse=True)
            fixed = torch.Generator().manual_seed(0)
            random = torch.randperm(int(place.max()) + 1, generator=fixed)
            order = random[place].argsort(stable=True)
            count = math.ceil(len(order) / batch)
            for some in (order[start::count] for start in range(count)):
                uniform = torch.full((len(some),), 1 / len(some), dtype=torch.float64).log()
                of = taken(samples, some.to(samples.x.device))
                self.batches.append((of, blocks[some], uniform if guess is None else guess))

    @torch.no_grad()
    def predictions(self, encoder: Encoder, objective: Likelihood[Batch]) -> list[Prediction]:
        """Return what a model says of them."""
        device = next(encoder.parameters()).device
        encoder.eval()
        found = []
        for samples, blocks, guess in self.batches:
            here = type(samples)(*(side.to(device) for side in samples))
            log_p = objective.log_probabilities(encoder, here)
            found.append(Prediction(log_p, here.targets().to(device), blocks, guess.to(device)))
        return found


def taken(batch: Batch, index: slice | Tensor) -> Batch:
    """Return some of the samples."""
    return type(batch)(*(side[index] for side in batch))
