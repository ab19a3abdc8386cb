"""All that changes while an encoder is trained, and the file it is kept in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from demix.encoders import Encoder
from demix.errors import DemixError
from demix.files import write_atomic
from demix.training.record import Record

_SCHEMA = 1


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

    def save(self, path: Path, about: Mapping[str, Any]) -> None:
        """Write everything into one file, which is replaced as a whole."""
        tensors = {f"now.{key}": value for key, value in self.weights().items()}
        tensors |= {f"best.{key}": value for key, value in self.best_weights.items()}
        tensors |= {f"random.{key}": g.get_state() for key, g in self.generators.items()}
        tensors |= self._moments()
        facts = {
            "schema": _SCHEMA,
            "about": dict(about),
            "step": self.step,
            "seconds": self.seconds,
            "total": self.total,
            "history": self.history,
            "best": self.best,
        }
        # Copies: a table that is shared between names could not be saved.
        whole = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
        write_atomic(path, save(whole, metadata={"demix": json.dumps(facts)}))

    @torch.no_grad()
    def restore(self, path: Path, about: Mapping[str, Any]) -> None:
        """Take everything from a file that :meth:`save` wrote for the same training."""
        try:
            with safe_open(path, framework="pt") as file:
                facts = json.loads((file.metadata() or {})["demix"])
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            schema, found = facts["schema"], facts["about"]
        except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
            raise DemixError(
                f"{path} is not a checkpoint of demix ({error}); remove it to start anew."
            ) from error
        if schema != _SCHEMA or found != dict(about):
            raise DemixError(
                f"{path} is the checkpoint of another training; remove it to start anew, or give "
                "the settings, data and seed that it was started with."
            )
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
