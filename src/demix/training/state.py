"""The state of a training, which checkpoints save and restore."""

import math
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective
from demix.training.optimizers import Optimizer

Record = dict[str, float | None]
"""What the history holds of one evaluation."""
_FACTS = {"step": int, "begun": int, "seconds": float, "total": float}
_FACTS |= {"history": list, "best": dict}


@dataclass
class State:
    """A training in progress; after a restore it continues to the same bits.

    Rates follow from the steps since a round was ``begun`` and are not saved. ``generators`` hold
    the position in the data, ``total`` is the sum of losses since the last evaluation. ``best`` has
    ``step`` and ``value`` of the best validation so far, ``best_weights`` its weights; both are
    empty at first. ``mean`` is an average of the encoder's weights over the steps, or empty. With
    ``rounds`` there may be several, which are told by the validations of the history.
    """

    encoder: Encoder
    objective: Objective[Any]
    optimizers: list[Optimizer]
    generators: dict[str, torch.Generator]
    step: int = 0
    begun: int = 0
    seconds: float = 0.0
    total: float = 0.0
    history: list[Record] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    mean: dict[str, Tensor] = field(default_factory=dict)
    rounds: bool = False

    def weights(self) -> dict[str, Tensor]:
        """Return all weights by name, not copied."""
        weights = {f"encoder.{key}": w for key, w in self.encoder.state_dict().items()}
        return weights | {f"objective.{key}": w for key, w in self.objective.state_dict().items()}

    @torch.no_grad()
    def add_to_mean(self, past: float) -> None:
        """Move the average of the encoder's weights towards the present ones."""
        past = min(past, self.step / (self.step + 10))  # the start is soon forgotten
        if not self.mean:
            self.mean = {key: weight.clone() for key, weight in self._live.items()}
        means = [self.mean[key] for key in self._live]
        torch._foreach_lerp_(means, list(self._live.values()), 1 - past)

    @cached_property
    def _live(self) -> dict[str, Tensor]:
        """The encoder's weights, which steps change in place; all but counts of batches."""
        weights = self.encoder.state_dict().items()
        return {key: weight for key, weight in weights if weight.is_floating_point()}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Give the encoder the average of its weights for a while, if there is one."""
        own = self.encoder.state_dict()
        now = {key: weight.clone() for key, weight in own.items()}
        _copy(self.mean, own)
        try:
            yield
        finally:
            _copy(now, own)

    def keep_best(self, value: float) -> None:
        """Keep a copy of the weights if ``value`` is the smallest so far."""
        if not self.best or value < self.best["value"]:
            self.best = {"step": self.step, "value": value}
            self.best_weights = {key: w.detach().clone() for key, w in self.weights().items()}

    @torch.no_grad()
    def return_to_best(self) -> None:
        """Restore the best weights if there were any, else take the average if there is one."""
        if not self.best_weights and self.mean:
            _copy(self.mean, self.encoder.state_dict())
        for key, weight in self.weights().items():
            if key in self.best_weights:
                weight.copy_(self.best_weights[key])

    def to_save(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that changes, as tensors by name and plain facts, not copied."""
        tensors = {f"now.{key}": value for key, value in self.weights().items()}
        tensors |= {f"best.{key}": value for key, value in self.best_weights.items()}
        tensors |= {f"mean.{key}": value for key, value in self.mean.items()}
        tensors |= {f"random.{key}": g.get_state() for key, g in self.generators.items()}
        tensors |= {
            f"moment.{i}.{j}.{name}": value
            for i, optimizer in enumerate(self.optimizers)
            for j, memory in optimizer.memories().items()
            for name, value in memory.items()
        }
        return tensors, {name: getattr(self, name) for name in _FACTS}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore what :meth:`to_save` returned; else raise ``ValueError`` and change no weight."""
        _check_facts(facts, rounds=self.rounds)
        _check_tensors(tensors, self._likes(tensors, best=bool(facts["best"])))
        for key, generator in self.generators.items():
            try:
                generator.set_state(tensors[f"random.{key}"])
            except RuntimeError as error:
                raise ValueError(f"random.{key} is no state of a generator") from error
        for key, weight in self.weights().items():
            weight.copy_(tensors[f"now.{key}"])
        self.best_weights, self.mean = (
            {k.removeprefix(part): v for k, v in tensors.items() if k.startswith(part)}
            for part in ("best.", "mean.")
        )
        for i, optimizer in enumerate(self.optimizers):
            memory: dict[int, dict[str, Any]] = {}
            for key, value in tensors.items():
                if key.startswith(f"moment.{i}."):
                    _, _, parameter, name = key.split(".")
                    memory.setdefault(int(parameter), {})[name] = value
            optimizer.remember(memory)
        for name in _FACTS:
            setattr(self, name, facts[name])

    def _likes(self, names: Container[str], *, best: bool) -> dict[str, Tensor]:
        """Return tensors of the shapes and types that :meth:`to_save` returns, by name."""
        times = ("now", "best") if best else ("now",)
        likes = {f"{time}.{key}": w for time in times for key, w in self.weights().items()}
        likes |= {f"random.{key}": g.get_state() for key, g in self.generators.items()}
        if self.mean:
            likes |= {f"mean.{key}": w for key, w in self._live.items()}
        for i, optimizer in enumerate(self.optimizers):
            for j, parameter in enumerate(optimizer.parameters):
                like = optimizer.fresh(parameter)
                own = {f"moment.{i}.{j}.{name}": value for name, value in like.items()}
                likes |= own if any(name in names for name in own) else {}  # none without gradients
        return likes


@torch.no_grad()
def _copy(values: Mapping[str, Tensor], weights: Mapping[str, Tensor]) -> None:
    for key, value in values.items():
        weights[key].copy_(value)


def _check_facts(facts: Mapping[str, Any], *, rounds: bool) -> None:
    if all(isinstance(facts.get(name), kind) for name, kind in _FACTS.items()):
        step, begun, seconds, total, history, best = (facts[name] for name in _FACTS)
        records = all(_is_record(entry, step, "seconds", "loss") for entry in history)
        looks = [entry["step"] for entry in history] if records else []
        # What is saved was just evaluated, and rounds end with an evaluation.
        past = looks == sorted(set(looks)) and looks[-1:] == [step]
        fits = type(begun) is int and begun in ([0, *looks[:-1]] if rounds else [0])
        told = records and (not rounds or all("validation" in entry for entry in history))
        known = not best or _is_record(best, step, "value")
        finite = math.isfinite(total) and 0 <= seconds < math.inf
        if told and past and fits and known and finite:
            return
    raise ValueError("its facts are none of a training")


def _is_record(record: Any, last: int, *names: str) -> bool:
    """Tell whether this is a record of numbers, these among them, of a step up to the last."""
    return (
        isinstance(record, dict)
        and all(value is None or isinstance(value, int | float) for value in record.values())
        and all(abs(value) < 1e300 for value in record.values() if value is not None)
        and all(isinstance(record.get(name), float) for name in names)
        and type(record.get("step")) is int
        and 0 < record["step"] <= last
    )


def _check_tensors(tensors: Mapping[str, Tensor], likes: Mapping[str, Tensor]) -> None:
    if tensors.keys() != likes.keys():
        name = min(tensors.keys() ^ likes.keys())
        raise ValueError(f"{name} is {'unknown' if name in tensors else 'missing'}")
    for name, like in likes.items():
        found = tensors[name]
        if found.shape != like.shape or found.dtype != like.dtype:
            raise ValueError(
                f"{name} has shape {tuple(found.shape)} of {found.dtype} instead of "
                f"{tuple(like.shape)} of {like.dtype}"
            )
        if found.is_floating_point() and bool(found.isnan().any()):
            raise ValueError(f"{name} holds NaN")
        if name.startswith("moment.") and name.endswith(".step") and found.item() < 0:
            raise ValueError(f"{name} is negative")
