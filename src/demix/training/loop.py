"""The training loop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from demix.encoders import Encoder
from demix.errors import DemixError
from demix.objectives import Classification, Objective, RowObjective
from demix.training.muon import Muon
from demix.training.recipe import Recipe

Record = dict[str, float | None]


class Observed(Protocol):
    """A batch that holds observations, whatever else it holds."""

    @property
    def x(self) -> Tensor:
        """The observations ``(N, dim_in)``."""


Batch = TypeVar("Batch", bound=Observed)
Drawn = TypeVar("Drawn", bound=Observed, covariant=True)


class Sampler(Protocol[Drawn]):
    """Where batches come from; the ``sample`` of a process is one."""

    def __call__(self, size: int, *, generator: torch.Generator) -> Drawn:
        """Draw ``size`` pairs or labelled samples."""


@dataclass
class Training:
    """What a training left behind.

    Attributes
    ----------
    history : list of dict
        One record per look: ``step``, ``seconds`` (of training, looks not counted), ``loss``
        (mean since the last look) and whatever ``watch`` measured.
    steps : int
        Steps taken.
    seconds : float
        Time spent in them.
    interrupted : bool
        Whether Ctrl-C ended it early; the encoder keeps what it learned.
    """

    history: list[Record] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    interrupted: bool = False


def train(
    encoder: Encoder,
    sample: Sampler[Batch],
    objective: Objective[Batch],
    recipe: Recipe,
    *,
    seed: int = 0,
    watch: Callable[[Encoder], Record] | None = None,
    looks: int = 20,
    report: Callable[[int, Record], None] | None = None,
) -> Training:
    """Train ``encoder`` in place on what ``sample`` draws.

    The same seed on the same machine gives the same weights to the bit.

    Parameters
    ----------
    encoder : Encoder
        The model; its device is where everything happens.
    sample : callable
        ``sample(size, generator=...)`` returns a batch, e.g. :class:`demix.Pairs`.
    objective : callable
        ``objective(encoder, batch)`` returns the loss, e.g. :class:`demix.InfoNCE`. Parameters of
        its own, e.g. the rows of :class:`demix.Classification`, are trained in place, too; rows
        start anew if the recipe initialises the encoder.
    recipe : Recipe
        The settings.
    seed : int
        Seed of weights and data.
    watch : callable, optional
        ``watch(encoder)`` measures something at every look, e.g. a held-out score.
    looks : int
        How many records the history gets at most.
    report : callable, optional
        ``report(step, record)`` after every step, with the latest record; for progress bars.

    Returns
    -------
    Training
        The history.

    Examples
    --------
    >>> from demix import Encoder, InfoNCE, LeakyMixing, Process, Recipe, Sphere, Uniform
    >>> from demix import VonMisesFisher, train
    >>> sphere = Sphere(3)
    >>> process = Process(
    ...     Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(3, seed=0, draws=100)
    ... )
    >>> encoder = Encoder(3, sphere, hidden=(16, 16))
    >>> training = train(encoder, process.sample, InfoNCE(), Recipe(steps=20, batch=64))
    >>> training.history[-1]["step"], training.history[-1]["loss"] < 4.2
    (20, True)
    """
    own_optimizers = _own_optimizers(objective, recipe)  # which may refuse: nothing is changed yet
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    if recipe.initialise:
        encoder.initialise(generator)
        if isinstance(objective, RowObjective):
            objective.initialise(generator)
    if recipe.whiten:
        encoder.whitening.fit(sample(max(4096, recipe.batch), generator=generator).x)
    optimizers = _optimizers(encoder, recipe) + own_optimizers
    schedules = [torch.optim.lr_scheduler.LambdaLR(o, recipe.rate_factor) for o in optimizers]
    half = torch.autocast(device.type, torch.bfloat16, enabled=recipe.bf16 and has_bf16(device))
    every = math.ceil(recipe.steps / looks)
    result = Training()
    total = 0.0
    encoder.train()
    start = time.perf_counter()
    try:
        for step in range(1, recipe.steps + 1):
            batch = sample(recipe.batch, generator=generator)
            with half:
                loss = objective(encoder, batch)
            value = loss.item()
            if not torch.isfinite(loss):
                raise DemixError(
                    f"The loss became {value} at step {step}; lower the rates of the recipe "
                    f"(now {recipe.matrix_rate:g} and {recipe.rate:g}) or look for outliers."
                )
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer, schedule in zip(optimizers, schedules, strict=True):
                optimizer.step()
                schedule.step()
            total += value
            result.steps = step
            if step % every == 0 or step == recipe.steps:
                result.seconds += time.perf_counter() - start
                start = time.perf_counter()  # a look may be interrupted, too
                since = step - (int(result.history[-1]["step"] or 0) if result.history else 0)
                record: Record = {"step": step, "seconds": result.seconds, "loss": total / since}
                result.history.append(record | _watched(encoder, watch))
                total, start = 0.0, time.perf_counter()
            if report is not None:
                report(step, result.history[-1] if result.history else {"loss": value})
    except KeyboardInterrupt:
        result.seconds += time.perf_counter() - start
        result.interrupted = True
    encoder.eval()
    return result


def _watched(encoder: Encoder, watch: Callable[[Encoder], Record] | None) -> Record:
    if watch is None:
        return {}
    encoder.eval()
    with torch.no_grad():
        measured = watch(encoder)
    encoder.train()
    return measured


def _optimizers(encoder: Encoder, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Return the optimisers of the encoder."""
    parameters = list(encoder.parameters())
    if recipe.optimizer == "adam":
        return [torch.optim.Adam(parameters, lr=recipe.rate)]
    matrices = [p for p in parameters if p.ndim == 2]
    rest = [p for p in parameters if p.ndim != 2]
    return [
        Muon(matrices, lr=recipe.matrix_rate, weight_decay=0.0),
        torch.optim.Adam(rest, lr=recipe.rate),
    ]


def _own_optimizers(objective: Objective[Batch], recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Return the optimisers of the objective's own parameters, none if it has none.

    Always Adam: a table of rows is no map between layers, and gains nothing from the orthogonal
    updates of Muon.
    """
    samples = isinstance(objective, Classification) and objective.sampled is not None
    if recipe.lazy_rows and not samples:
        raise DemixError(
            "lazy_rows needs sampled rows, as of Classification(sampled=...), but got "
            f"{type(objective).__name__} without them; leave lazy_rows out."
        )
    if isinstance(objective, Classification):
        objective.sparse_gradient = recipe.lazy_rows
    own = list(objective.parameters()) if isinstance(objective, nn.Module) else []
    if not own:
        return []
    if recipe.lazy_rows:
        return [torch.optim.SparseAdam(own, lr=recipe.rate)]
    # Fused, because the table may be large: the plain form makes two more of its size.
    return [torch.optim.Adam(own, lr=recipe.rate, fused=True)]


def has_bf16(device: torch.device) -> bool:
    """Tell whether the processor multiplies bfloat16 in hardware; emulation is very slow."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # torch has no public question for this.
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
