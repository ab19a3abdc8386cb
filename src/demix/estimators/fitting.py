"""The function under all estimators: train on one part of the data, validate and test on others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from demix._support.process_group.group import Ranks
from demix._support.validation import seed_apart
from demix.encoders.encoder import ChannelScaling, Encoder, Noise, Whitening
from demix.estimators import gain as gains
from demix.estimators.sources import Batch, Part, Source, seeded
from demix.losses.objective import Objective
from demix.training.checkpoints import checkpoint_files
from demix.training.loop import Record, Training, train
from demix.training.memory import check_training_memory
from demix.training.recipe import Recipe
from demix.training.state import State

# How many held-out samples choose the weights, and how many test them; with very many classes
# fewer, so that their probabilities are about so many numbers.
_HELD_OUT, _LEAST, _NUMBERS = 4096, 64, 2**25
_PARTNERS = 4096  # pairs that tell which directions of the input count
_PATIENCE = 8  # evaluations without a better held-out loss before training ends
# A training that is not very short is tried from so many starts, for a quarter of its steps.
_STARTS, _SHORTEST, _LONGEST = 3, 20, 400
_CLOSE = 0.7  # a share: an assumption that knows less than so much of the most is not tried longer
_CLEARLY = 0.01  # a share: an assumption gives way to one that knows so much more beyond doubt
# By so many nats the held-out loss has to fall in the second half of a round, or to rise until its
# end, for another round.
_MOVED = 0.02
_NOISE = 0.3  # standard deviation on whitened inputs, where data are learnt by heart
_DIRECTIONS = 256  # of the input that a linear map sees at most
# Whitening, starts and the linear map have random numbers of their own, as held-out samples do.
_HELD_OUT_STREAM, _START_STREAM, _LINEAR_STREAM, _TEST_SEED = 1, 2, 3, 2**31

Callback = Callable[[int, int, Record], None]
"""``callback(step, steps, record)`` after every step."""

Scaling = Whitening | ChannelScaling
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


Known = tuple[Tensor, Tensor]
"""What is known of each held-out target in nats ``(M,)``, and the block of each."""

Model = tuple[Encoder, Likelihood[Batch]]
"""An encoder and its objective, trained together."""


@dataclass
class Fit(Generic[Batch]):
    """The model that was chosen, how it was trained, and what it knows."""

    encoder: Encoder
    objective: Likelihood[Batch]
    chosen: int
    training: Training
    gain: gains.Gain


def fit_encoder(
    models: Sequence[Model[Batch]],
    source: Source[Batch],
    recipe: Recipe,
    *,
    seed: int,
    rounds: int = 1,
    linear: bool = False,
    scales: Tensor | None = None,
    warm_start: bool = False,
    callback: Callback | None = None,
    checkpoint: Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Fit[Batch]:
    """Train one of the models in place, keep the best weights, and test them.

    Models differ in what they assume; after a short training, and a longer one of those that come
    close, the first one is taken that tells about as much of held-out targets as any other. There
    are up to ``rounds`` of the recipe, while the held-out loss falls; with ``linear``, a linear map
    is returned where it is better.
    ``scales`` ``(dim_in,)`` are standard deviations of the columns, for the whitening; a
    ``warm_start`` is one from the present weights and whitening. The gain is that on the test part,
    which neither training nor any choice has used.
    """
    outline, device = models[0][0], next(models[0][0].parameters()).device
    held_out = torch.Generator(device).manual_seed(seed_apart(seed, _HELD_OUT_STREAM))
    # Held-out anchors and positives, in their order and in batches, and the whitening.
    extra = 4 * 2 * 2 * _HELD_OUT * math.prod(outline.shape) + outline.whitening.fit_bytes
    check_training_memory(*models[0], recipe, checkpoint=checkpoint is not None, extra=extra)
    fresh = recipe.initialise and not warm_start
    inputs = [outline.whitening]
    if recipe.whiten and not warm_start:
        inputs = _inputs(outline.whitening, source, scales, held_out)
    held = HeldOut(source, ("validation",), recipe.batch, generator=held_out)
    tries = min(recipe.steps // 4, _LONGEST)
    numbers = range(len(models))
    candidates: list[tuple[int, nn.Module]] = [(i, white) for i in numbers for white in inputs]
    begun = checkpoint is not None and any(f.exists() for f in checkpoint_files(checkpoint))
    begun = Ranks.current().broadcast(begun)
    if not fresh or tries < _SHORTEST or (begun and len(models) == 1):
        candidates, starts = candidates[:1], 0
    else:  # a training that continues has its weights, but not the choice of its model
        starts = len(candidates) + (0 if begun else _STARTS - 1)
    recipe = replace(recipe, initialise=False, whiten=False)
    done, planned = 0, starts * tries + recipe.steps + (0 if warm_start else recipe.steps // 2)

    def trained(model: Model[Batch], recipe: Recipe, **options: Any) -> Training:
        nonlocal done

        def after_step(step: int, last: Record) -> None:
            if callback is not None:
                callback(done + step, max(planned, done + step), last)

        encoder, objective = model
        again = options.get("again")

        def sample(size: int, *, generator: torch.Generator) -> Batch:
            batch = source.sample(size, generator=generator)
            noise = None if again is None else again.noise
            return batch if noise is None else batch.noisy(noise, generator)

        options |= {"callback": after_step, "validate": lambda f: held.loss(f, objective)}
        found = train(encoder, sample, objective, recipe, seed=seed, **options)
        if found.interrupted:  # so that a search over many fits ends, too
            raise KeyboardInterrupt
        done += found.steps
        return found

    generator = torch.Generator(device).manual_seed(seed_apart(seed, _START_STREAM))

    def tried(number: int, steps: int) -> tuple[State, Known]:
        encoder, objective = models[number]
        state = State(encoder, cast(Objective[Any], objective), [], {})
        if starts:
            trained(models[number], replace(recipe, steps=steps), eval_every=tries)
        known = gains.own_information(held.predictions(encoder, objective), 1.0)
        state.keep_best(-float(known[0].mean()))
        return state, known

    def started(number: int, white: nn.Module, *, linear: bool) -> tuple[State, Known]:
        encoder, objective = models[number]
        if fresh:
            encoder.initialise(generator)
            objective.initialise(generator)
        encoder.whitening.load_state_dict(white.state_dict())
        if fresh and linear:
            encoder.start_linear(*source.partners("train", _PARTNERS, generator=generator))
        return tried(number, tries)

    first = [started(*candidate, linear=True) for candidate in candidates]
    best = _best([known for _, known in first]) if starts else 0
    means = [float(known[0].mean()) for _, known in first]
    close = [i for i, mean in enumerate(means) if mean >= _CLOSE * max(means)]
    if starts and len(models) > 1 and len(close) > 1:  # one that learns later may know more
        planned += len(close) * recipe.steps
        for i in close:
            first[i][0].return_to_best()
            first[i] = tried(candidates[i][0], recipe.steps)
        best = close[_best([first[i][1] for i in close])]
    number, white = candidates[best]
    found = [first[best][0]]
    for _ in range(starts - len(candidates)):
        found.append(started(number, white, linear=False)[0])
    min(found, key=lambda state: state.best["value"]).return_to_best()
    encoder, objective = models[number]
    again = _Rounds(encoder.whitening, recipe.steps, rounds)
    options: dict[str, Any] = {"patience": _PATIENCE, "again": again}
    training = trained(models[number], recipe, **options, checkpoint=checkpoint, about=about)
    own, told = held.loss(encoder, objective), math.nan
    test = HeldOut(source, ("test",), recipe.batch)
    if not warm_start:
        simple = _linear(models[number], source, scales, seed)
        half = replace(recipe, steps=max(1, recipe.steps // 2))
        beside = trained(simple, half, patience=_PATIENCE)
        told = gain_of(simple, held, test).bits
        if linear and held.loss(*simple) < own:
            (encoder, objective), training = simple, beside
    gain = replace(gain_of((encoder, objective), held, test), linear=told)
    return Fit(encoder, objective, number, training, gain)


def gain_of(model: Model[Batch], held: HeldOut[Batch], test: HeldOut[Batch]) -> gains.Gain:
    """Return what a model knows about a test part, as sharp as a held-out part makes it."""
    sharpness = gains.fitted_sharpness(held.predictions(*model))
    return gains.held_out_gain(test.predictions(*model), sharpness)


def _inputs(
    whitening: Scaling, source: Source[Any], scales: Tensor | None, generator: torch.Generator
) -> list[Scaling]:
    """Return what the body may be given: whitened data, for labels also whole columns."""
    first = source.sample(whitening.samples, generator=generator).x.flatten(1)
    whitening.fit(first, scales=scales)
    if source.alike:
        drawn: dict[str, Any] = {"most": _PARTNERS, "generator": generator}
        whitening.weigh(source.partners("train", **drawn), source.partners("validation", **drawn))
        return [whitening]
    columns = deepcopy(whitening)
    columns.keep_sizes(first, scales)
    return [deepcopy(whitening), columns]


def _best(tried: Sequence[Known]) -> int:
    """Return which training knows most of held-out targets; a later one has to beat the others."""
    best = 0
    for number, (known, blocks) in enumerate(tried):
        more, reach = gains.block_mean(known - tried[best][0], blocks)
        if more - reach > 0 and more > _CLEARLY * abs(float(tried[best][0].mean())):
            best = number
    return best


def _linear(
    model: Model[Batch], source: Source[Batch], scales: Tensor | None, seed: int
) -> Model[Batch]:
    """Return a linear map with the same objective, from where partners agree most."""
    encoder, objective = model
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(seed_apart(seed, _LINEAR_STREAM))
    dim = math.prod(encoder.shape)
    components = None if dim <= _DIRECTIONS else _DIRECTIONS
    settings: dict[str, Any] = {"hidden": (), "components": components}
    settings |= {"scale": encoder.first_scale}
    with seeded(seed):  # its weights are replaced
        simple = Encoder(encoder.shape, encoder.space, **settings).to(device)
    beside = deepcopy(objective)
    simple.initialise(generator)
    beside.initialise(generator)
    _inputs(simple.whitening, source, scales, generator)
    simple.start_linear(*source.partners("train", _PARTNERS, generator=generator))
    return simple, beside


class _Rounds:
    """Tells from the held-out loss whether to train for another round, and whether with noise."""

    def __init__(self, whitening: Scaling, steps: int, rounds: int) -> None:
        self.whitening, self.steps, self.rounds = whitening, steps, rounds
        self.noise: Noise | None = None

    def __call__(self, history: Sequence[Record], begun: int) -> bool:
        """Decide at the end of a round; data that are learnt by heart get noise."""
        if self.noise is not None or (history[-1]["step"] or 0) > (self.rounds - 1) * self.steps:
            return False
        losses = [(record["step"] or 0, record["validation"] or 0.0) for record in history]
        best = min(loss for _, loss in losses)
        early = [loss for step, loss in losses if step <= begun + self.steps / 2]
        if losses[-1][1] - best > _MOVED:
            self.noise = self.whitening.noise(_NOISE)
        return self.noise is not None or min(early, default=math.inf) - best > _MOVED


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

    def loss(self, encoder: Encoder, objective: Likelihood[Batch]) -> float:
        """Return the mean loss in nats."""
        return gains.mean_loss(self.predictions(encoder, objective))

    @torch.no_grad()
    def predictions(self, encoder: Encoder, objective: Likelihood[Batch]) -> list[gains.Prediction]:
        """Return what a model says of them."""
        device = next(encoder.parameters()).device
        encoder.eval()
        found = []
        for samples, blocks, guess in self.batches:
            here = type(samples)(*(side.to(device) for side in samples))
            log_p = objective.log_probabilities(encoder, here)
            own = here.targets().to(device)
            found.append(gains.Prediction(log_p, own, blocks, guess.to(device)))
        return found


def taken(batch: Batch, index: slice | Tensor) -> Batch:
    """Return some of the samples."""
    return type(batch)(*(side[index] for side in batch))
