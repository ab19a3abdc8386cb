"""The training loop."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor

from demix._support.errors import DemixError
from demix._support.process_group.group import Ranks
from demix.encoders.encoder import Encoder
from demix.losses.objective import FunctionObjective, Objective, Observed
from demix.training.checkpoints import Checkpoints
from demix.training.distributed import DistributedTraining
from demix.training.memory import Chunked, check_training_memory
from demix.training.optimizers import Adam, Muon, Optimizer
from demix.training.recipe import Recipe
from demix.training.state import Record, State
from demix.training.threads import step_threads

_EVALUATIONS = 20  # at most, unless the caller says how often

Batch = TypeVar("Batch", bound=Observed)
Drawn = TypeVar("Drawn", bound=Observed, covariant=True)


class Sampler(Protocol[Drawn]):
    """A source of batches, such as ``Process.sample``."""

    def __call__(self, size: int, *, generator: torch.Generator) -> Drawn:
        """Draw ``size`` pairs or labelled samples."""


@dataclass
class Training:
    """The result of a training: steps taken, seconds spent in them, and the history.

    The history has one record per evaluation: ``step``, ``seconds``, ``loss`` (mean since the last
    evaluation) and what ``evaluate`` returned. ``interrupted`` says whether Ctrl-C ended it early;
    with ``validate``, the weights of ``best_step`` were kept.
    """

    history: list[Record] = field(default_factory=list)
    steps: int = 0
    seconds: float = 0.0
    interrupted: bool = False
    best_step: int | None = None


def train(
    encoder: Encoder,
    sample: Sampler[Batch],
    objective: Callable[[Encoder, Batch], Tensor],
    recipe: Recipe,
    *,
    seed: int = 0,
    evaluate: Callable[[Encoder], Record] | None = None,
    eval_every: int | None = None,
    callback: Callable[[int, Record], None] | None = None,
    validate: Callable[[Encoder], float] | None = None,
    patience: int | None = None,
    again: Callable[[list[Record], int], bool] | None = None,
    checkpoint: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
) -> Training:
    """Train ``encoder`` in place on what ``sample`` draws.

    The same seed on the same machine gives the same weights to the bit. Ranks of an initialised
    process group train together, and take the steps that a single process would take; rank 0 alone
    evaluates, calls back and writes.

    Parameters
    ----------
    encoder : Encoder
        The model; its device is where everything happens.
    sample : callable
        ``sample(size, generator=...)`` returns a batch, e.g. :class:`demix.Pairs`.
    objective : callable
        ``objective(encoder, batch)`` returns the loss, e.g. :class:`demix.InfoNCE`. Parameters of
        its own are trained in place, too; they start anew if the recipe initialises the encoder.
    recipe : Recipe
        The settings.
    seed : int
        Seed of weights and batches.
    evaluate : callable, optional
        ``evaluate(encoder)`` returns numbers for the history, e.g. a held-out score.
    eval_every : int, optional
        Steps between two evaluations; by default there are at most 20.
    callback : callable, optional
        ``callback(step, record)`` is called after every step with the latest record.
    validate : callable, optional
        ``validate(encoder)`` returns a held-out loss, recorded as ``validation``. Training returns
        the weights of the smallest one.
    patience : int, optional
        With ``validate``: stop after so many evaluations without a smaller loss.
    again : callable, optional
        With ``validate``: ``again(history, begun)`` tells, at the end of a round that began after
        step ``begun``, whether the recipe is gone through once more. A training that is continued
        asks for what was told at the beginning of its round, too.
    checkpoint : path, optional
        A file that is written at evaluations, in at most 2 % of the time of training, and that
        training continues from, to the same bits; if it is damaged, from the previous one.
    about : mapping, optional
        Plain facts that identify this training; a checkpoint with other facts is refused.

    Examples
    --------
    >>> import demix
    >>> space, mixing = demix.Sphere(3), demix.LeakyMixing(3, seed=0, draws=100)
    >>> process = demix.Process(demix.Uniform(space), demix.VonMisesFisher(space, 10.0), mixing)
    >>> encoder, recipe = demix.Encoder(3, space), demix.Recipe(steps=20, batch=64)
    >>> demix.train(encoder, process.sample, demix.InfoNCE(), recipe).history[-1]["step"]
    20
    """
    if not isinstance(objective, Objective):
        objective = FunctionObjective(objective)
    model: Any = encoder if recipe.chunk is None else Chunked(encoder, recipe.chunk)
    check_training_memory(encoder, objective, recipe, checkpoint=checkpoint is not None)
    device = next(encoder.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    generators = {"data": generator, **objective.generators()}
    every = math.ceil(recipe.steps / _EVALUATIONS) if eval_every is None else eval_every
    if every < 1:
        raise DemixError(f"eval_every must be a whole number of steps >= 1, but got {eval_every}.")
    facts = {"seed": seed, "recipe": vars(recipe), "eval_every": every, "patience": patience}
    facts |= {"encoder": encoder.settings, "space": encoder.space.to_dict(), **(about or {})}
    ranks = Ranks.current()
    ranks.check_same(facts, "training")
    checkpoints = Checkpoints(checkpoint if ranks.leads else None, facts)
    saves = ranks.broadcast(checkpoints.path is not None)
    if not ranks.broadcast(checkpoints.found):
        if recipe.initialise:
            encoder.initialise(generator)
            objective.initialise(generator)
        if recipe.whiten:
            first = sample(max(4096, recipe.batch), generator=generator)
            encoder.whitening.fit(first.x.flatten(1))
    optimizers = _optimizers(encoder, objective, recipe)
    state = State(encoder, objective, optimizers, generators, rounds=again is not None)
    if recipe.average:
        state.add_to_mean(0.0)
    checkpoints.restore(state, recipe.steps)
    shared = DistributedTraining(state, model, ranks)
    if again is not None and state.begun:
        again([record for record in state.history if (record["step"] or 0) <= state.begun], 0)
    shared.settle(lambda: sample(recipe.batch, generator=generator))
    # Rates are a function of the step alone: a checkpoint need not keep them.
    peaks = [(group, group["lr"]) for o in state.optimizers for group in o.param_groups]
    half = torch.autocast(device.type, torch.bfloat16, enabled=recipe.bf16 and _has_bf16(device))
    interrupted, threads = False, torch.get_num_threads()
    torch.set_num_threads(step_threads(encoder, recipe.batch))
    encoder.train()
    start = time.perf_counter()
    try:
        while True:
            since = state.step - state.begun
            idle = min(since, state.step - state.best["step"]) if state.best else -1
            if since >= recipe.steps or (patience is not None and idle >= patience * every):
                if again is None or not again(state.history, state.begun):
                    break
                state.begun, since = state.step, 0
            for group, peak in peaks:
                group["lr"] = peak * recipe.rate_factor(since)
            batch = shared.part(sample(recipe.batch, generator=generator))
            with half:
                loss = shared.loss(batch)
            value = ranks.average(loss).item()
            if not math.isfinite(value):
                raise DemixError(
                    f"The loss became {value} at step {state.step + 1}; lower the rates of the "
                    f"recipe (now {recipe.matrix_rate:g} and {recipe.rate:g}) or look for outliers."
                )
            for optimizer in state.optimizers:
                optimizer.zero_grad()
            loss.backward()
            for optimizer in state.optimizers:
                optimizer.step()
            state.total += value
            state.step += 1
            if recipe.average:
                state.add_to_mean(recipe.average)
            since += 1
            if since % every == 0 or since == recipe.steps:
                state.seconds += time.perf_counter() - start
                start = time.perf_counter()  # an evaluation may be interrupted, too
                with shared.whole(moments=saves):
                    if ranks.leads:
                        with state.averaged():
                            _evaluate(state, evaluate, validate)
                        checkpoints.save(state)
                shared.sync()
                start = time.perf_counter()
            if callback is not None and ranks.leads:
                callback(state.step, state.history[-1] if state.history else {"loss": value})
        with shared.whole(moments=saves):
            checkpoints.save(state, last=True)
    except RuntimeError as error:
        ranks.explain(error)
        raise
    except KeyboardInterrupt:
        if ranks.count > 1:
            raise  # no rank can end by itself; a checkpoint keeps what was learnt
        state.seconds += time.perf_counter() - start
        interrupted = True
    finally:
        torch.set_num_threads(threads)
    shared.end()
    encoder.eval()
    best = int(state.best["step"]) if state.best else None
    return Training(state.history, state.step, state.seconds, interrupted, best)


def _evaluate(
    state: State,
    evaluate: Callable[[Encoder], Record] | None,
    validate: Callable[[Encoder], float] | None,
) -> None:
    """Add a record to the history, and keep the weights if they are the best so far."""
    since = state.step - (int(state.history[-1]["step"] or 0) if state.history else 0)
    record: Record = {"step": state.step, "seconds": state.seconds, "loss": state.total / since}
    state.encoder.eval()
    with torch.no_grad():
        record |= evaluate(state.encoder) if evaluate is not None else {}
        if validate is not None:
            record["validation"] = validate(state.encoder)
            state.keep_best(float(record["validation"] or 0.0))
    state.encoder.train()
    state.history.append(record)
    state.total = 0.0


def _optimizers(encoder: Encoder, objective: Objective[Any], recipe: Recipe) -> list[Optimizer]:
    parameters, own = list(encoder.parameters()), list(objective.parameters())
    # Prototypes are no map between layers, and gain nothing from Muon.
    others: list[Optimizer] = [Adam(own, recipe.rate)] if own else []
    if recipe.optimizer == "adam":
        return [Adam(parameters, recipe.rate), *others]
    matrices = [p for p in parameters if p.ndim >= 2]
    if recipe.optimizer == "muon_last":
        matrices = matrices[-1:]
    chosen = {id(p) for p in matrices}
    rest = [p for p in parameters if id(p) not in chosen]
    muon = Muon(matrices, lr=recipe.matrix_rate, weight_decay=recipe.weight_decay)
    return [muon, Adam(rest, recipe.rate), *others]


def _has_bf16(device: torch.device) -> bool:
    """Tell whether the processor multiplies bfloat16 in hardware; emulation is very slow."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    # torch has no public function for this.
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
