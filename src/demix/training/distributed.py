"""A training that the ranks of a process group share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from demix._support.errors import DemixError
from demix._support.process_group.group import Ranks
from demix._support.process_group.sharding import even_sharding
from demix.losses.objective import Objective
from demix.training.memory import BATCH_NORMS
from demix.training.state import State


class DistributedTraining:
    """A training on several ranks, each of which works on its part of every batch.

    `DistributedDataParallel` averages gradients, except of parameters that the objective divides
    over ranks. Rank 0 evaluates and writes. A process alone is the trivial case.
    """

    def __init__(self, state: State, model: nn.Module, ranks: Ranks) -> None:
        self.state, self.ranks = state, ranks
        self.loss: nn.Module = _Loss(model, state.objective)
        if ranks.group is None:
            return
        if any(isinstance(layer, BATCH_NORMS) for layer in state.encoder.modules()):
            raise DemixError(
                f"{ranks.count} ranks would each normalise over their own part of a batch; build "
                "the encoder with batch_norm=False, or train it in one process."
            )
        self._take_state_of_first()
        sharded = _Loss(model, state.objective.across(ranks.group))
        if (sharding := state.objective.sharding) is not None:
            for memory, name, moment in self._moments():
                memory[name] = moment[sharding.own].clone()
        self.loss = DistributedDataParallel(sharded, process_group=ranks.group)

    def settle(self, draw: Callable[[], Any]) -> None:
        """Take one step without effect, on a batch that will be drawn again."""
        # DistributedDataParallel reorders gradients after its first step, and then adds those of
        # ranks in another order: a training that continues would not give the same bits.
        if self.ranks.group is None:
            return
        states = {name: made.get_state() for name, made in self.state.generators.items()}
        self.loss(self.part(draw())).backward()
        for optimizer in self.state.optimizers:
            optimizer.zero_grad()
        for name, made in self.state.generators.items():
            made.set_state(states[name])

    def part(self, batch: Any) -> Any:
        """Return the part of a whole batch that this rank works on."""
        if self.ranks.group is None:
            return batch
        if not hasattr(batch, "_fields"):
            raise DemixError(
                "Ranks divide batches that are named tuples of tensors, such as demix.Pairs, but "
                f"got {type(batch).__name__}."
            )
        own = even_sharding(len(batch.x), self.ranks.group).own
        return type(batch)(*(column[own] for column in batch))

    @contextmanager
    def whole(self, *, moments: bool) -> Iterator[None]:
        """Give rank 0 all parameters for a while, with their moments if it wants to save."""
        sharding = self.state.objective.sharding
        parts = list(self._moments()) if moments and sharding is not None else []
        for memory, name, moment in parts:
            assert sharding is not None
            memory[name] = sharding.collected(moment)
        try:
            with self.state.objective.whole_on_first():
                yield
        finally:
            for memory, name, moment in parts:
                memory[name] = moment

    def sync(self) -> None:
        """Take over what rank 0 found at the last evaluation."""
        state = self.state
        seen = (state.history, state.best, state.total, state.seconds)
        state.history, state.best, state.total, state.seconds = self.ranks.broadcast(seen)

    def end(self) -> None:
        """Return to the best weights, if there were any, on every rank."""
        if self.ranks.group is not None:
            self.state.objective.across(None)
        self.state.return_to_best()
        self._share_weights()

    def _take_state_of_first(self) -> None:
        state = self.state
        self._share_weights()
        states = {name: made.get_state() for name, made in state.generators.items()}
        memories = [optimizer.memories() for optimizer in state.optimizers]
        seen = (state.step, state.begun, states, memories)
        state.step, state.begun, states, memories = self.ranks.broadcast(seen)
        self.sync()
        if not self.ranks.leads:
            for name, made in state.generators.items():
                made.set_state(states[name])
            for optimizer, memory in zip(state.optimizers, memories, strict=True):
                optimizer.remember(memory)

    @torch.no_grad()
    def _share_weights(self) -> None:
        if self.ranks.group is not None:
            for weight in self.state.weights().values():
                dist.broadcast(weight, group=self.ranks.group, group_src=0)

    def _moments(self) -> Iterator[tuple[dict[str, Any], str, Tensor]]:
        """Yield where the optimisers keep the moments of the objective's parameters, and these."""
        for parameter in self.state.objective.parameters():
            for optimizer in self.state.optimizers:
                memory = optimizer.state.get(parameter, {})
                for name, moment in list(memory.items()):
                    if moment.ndim:
                        yield memory, name, moment


class _Loss(nn.Module):
    """The loss as a module whose parameters are those that ranks average, without buffers."""

    def __init__(self, model: Any, objective: Objective[Any]) -> None:
        super().__init__()
        weights = list(model.parameters())
        if objective.sharding is None:
            weights += objective.parameters()
        self.weights, self.parts = nn.ParameterList(weights), (model, objective)

    def forward(self, batch: Any) -> Tensor:
        """Return the loss ``()`` of this rank's part of a batch."""
        model, objective = self.parts
        return objective(model, batch)
