"""All that changes while an encoder is trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from demix.encoders import Encoder
from demix.training.record import Record


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
    objective: Any
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
        modules: dict[str, Any] = {"encoder": self.encoder, "objective": self.objective}
        return {
            f"{name}.{key}": value
            for name, module in modules.items()
            if isinstance(module, nn.Module)
            for key, value in module.state_dict().items()
        }

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
        """Take back what :meth:`given` returned for the same training."""
        for key, weight in self.weights().items():
            weight.copy_(tensors[f"now.{key}"])
        best = {k.removeprefix("best."): v for k, v in tensors.items() if k.startswith("best.")}
        self.best_weights = best
        for key, generator in self.generators.items():
            generator.set_state(tensors[f"random.{key}"])
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

    def _take_moments(self, tensors: Mapping[str, Tensor]) -> None:
        for i, optimizer in enumerate(self.optimizers):
            state = optimizer.state_dict()
            memory: dict[int, dict[str, Any]] = {}
            for key, value in tensors.items():
                if key.startswith(f"moment.{i}."):
                    _, _, parameter, name = key.split(".")
                    plain = name == "step" and optimizer.__class__.__name__ == "SparseAdam"
                    memory.setdefault(int(parameter), {})[name] = value.item() if plain else value
            optimizer.load_state_dict({**state, "state": memory})
