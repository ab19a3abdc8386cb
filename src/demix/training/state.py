"""All that changes while an encoder is trained."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from demix.encoders.encoder import Encoder
from demix.losses.objective import Objective

Record = dict[str, float | None]
"""What the history holds of one evaluation."""


@dataclass
class State:
    """A training in progress; saved and restored, it goes on to the bit.

    Attributes
    ----------
    encoder, objective : nn.Module, objective
        What is trained.
    optimizers : list of Optimizer
        How; their rates follow from the step and are not kept.
    generators : dict of torch.Generator
        Where randomness comes from, which also is the position in the data.
    step, seconds, total : int, float, float
        Steps done, time spent in them, and the sum of losses since the last look.
    history : list of dict
        One record per look.
    best : dict
        ``step`` and ``value`` of the best validation so far; empty before the first.
    best_weights : dict of Tensor
        The weights it was reached with.
    """

    encoder: Encoder
    objective: Objective[Any]
    optimizers: list[torch.optim.Optimizer]
    generators: dict[str, torch.Generator]
    step: int = 0
    seconds: float = 0.0
    total: float = 0.0
    history: list[Record] = field(default_factory=list)
    best: dict[str, float] = field(default_factory=dict)
    best_weights: dict[str, Tensor] = field(default_factory=dict)

    def weights(self) -> dict[str, Tensor]:
        """Return all weights by name, not copied."""
        weights = {f"encoder.{key}": w for key, w in self.encoder.state_dict().items()}
        return weights | {f"objective.{key}": w for key, w in self.objective.state_dict().items()}

    def keep_best(self, value: float) -> None:
        """Remember the weights if ``value`` is the smallest so far."""
        if not self.best or value < self.best["value"]:
            self.best = {"step": self.step, "value": value}
            self.best_weights = {key: w.detach().clone() for key, w in self.weights().items()}

    @torch.no_grad()
    def return_to_best(self) -> None:
        """Take the best weights back, if there were any."""
        for key, weight in self.weights().items():
            if key in self.best_weights:
                weight.copy_(self.best_weights[key])

    def given(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that changes, as tensors by name and plain facts; nothing is copied."""
        tensors = {f"now.{key}": value for key, value in self.weights().items()}
        tensors |= {f"best.{key}": value for key, value in self.best_weights.items()}
        tensors |= {f"random.{key}": g.get_state() for key, g in self.generators.items()}
        tensors |= self._moments()
        names = ("step", "seconds", "total", "history", "best")
        return tensors, {name: getattr(self, name) for name in names}

    @torch.no_grad()
    def take(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Take back what :meth:`given` returned for the same training.

        ``ValueError`` says what it cannot have returned; no weight is changed then.
        """
        _check_facts(facts)
        _check_tensors(tensors, self._likes(tensors, best=bool(facts["best"])))
        for key, generator in self.generators.items():
            try:
                generator.set_state(tensors[f"random.{key}"])
            except RuntimeError as error:
                raise ValueError(f"random.{key} is no state of a generator") from error
        for key, weight in self.weights().items():
            weight.copy_(tensors[f"now.{key}"])
        best = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        self.best_weights = best
        self._take_moments(tensors)
        self.step, self.seconds, self.total = facts["step"], facts["seconds"], facts["total"]
        self.history, self.best = facts["history"], facts["best"]

    def _moments(self) -> dict[str, Tensor]:
        """Return what the optimisers remember, by names that say whose it is."""
        return {
            f"moment.{i}.{j}.{name}": torch.as_tensor(value)
            for i, optimizer in enumerate(self.optimizers)
            for j, memory in optimizer.state_dict()["state"].items()
            for name, value in memory.items()
        }

    def _likes(self, names: Container[str], *, best: bool) -> dict[str, Tensor]:
        """Return all that :meth:`given` may name, with tensors of the same shapes and types."""
        times = ("now", "best") if best else ("now",)
        likes = {f"{time}.{key}": w for time in times for key, w in self.weights().items()}
        likes |= {f"random.{key}": g.get_state() for key, g in self.generators.items()}
        for i, optimizer in enumerate(self.optimizers):
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            counted = torch.tensor(0 if isinstance(optimizer, torch.optim.SparseAdam) else 0.0)
            for j, parameter in enumerate(parameters):
                like = {"step": counted, "exp_avg": parameter, "exp_avg_sq": parameter}
                if "momentum" in optimizer.defaults:  # Muon
                    like = {"momentum_buffer": parameter}
                own = {f"moment.{i}.{j}.{name}": value for name, value in like.items()}
                # A parameter that never had a gradient has none.
                likes |= own if any(name in names for name in own) else {}
        return likes

    def _take_moments(self, tensors: Mapping[str, Tensor]) -> None:
        for i, optimizer in enumerate(self.optimizers):
            state = optimizer.state_dict()
            memory: dict[int, dict[str, Any]] = {}
            for key, value in tensors.items():
                if key.startswith(f"moment.{i}."):
                    _, _, parameter, name = key.split(".")
                    plain = name == "step" and isinstance(optimizer, torch.optim.SparseAdam)
                    memory.setdefault(int(parameter), {})[name] = value.item() if plain else value
            optimizer.load_state_dict({**state, "state": memory})


def _check_facts(facts: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` over facts that are none of a training in progress."""
    match facts:
        case {
            "step": int(step),
            "seconds": float(seconds),
            "total": float(total),
            "history": list(history),
            "best": dict(best),
        }:
            looks = all(_is_record(look, step, "seconds", "loss") for look in history)
            known = not best or _is_record(best, step, "value")
            finite = math.isfinite(total) and 0 <= seconds < math.inf
            if looks and known and step >= 0 and finite:
                return
    raise ValueError("its facts are none of a training")


def _is_record(record: Any, last: int, *names: str) -> bool:
    """Whether something holds numbers, these among them, of a step up to the last one."""
    return (
        isinstance(record, dict)
        and all(value is None or isinstance(value, int | float) for value in record.values())
        and all(abs(value) < 1e300 for value in record.values() if value is not None)
        and all(isinstance(record.get(name), float) for name in names)
        and type(record.get("step")) is int
        and 0 < record["step"] <= last
    )


def _check_tensors(tensors: Mapping[str, Tensor], likes: Mapping[str, Tensor]) -> None:
    """Raise ``ValueError`` unless there are those tensors, and no others, of these kinds."""
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
