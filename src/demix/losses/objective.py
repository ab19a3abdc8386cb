"""The contract of a loss: all that :func:`demix.train` asks it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn
from torch import distributed as dist

from demix._support.errors import DemixError
from demix._support.process_group.group import Ranks, checked_group
from demix._support.process_group.sharding import Sharding
from demix.encoders.encoder import Encoder

Batch = TypeVar("Batch", contravariant=True)


class Observed(Protocol):
    """A batch that holds observations."""

    @property
    def x(self) -> Tensor:
        """The observations ``(N, dim_in)``."""


class PairBatch(Observed, Protocol):
    """Observations with their positives."""

    @property
    def x_tilde(self) -> Tensor:
        """The positives ``(N, dim_in)``."""


class LabelBatch(Observed, Protocol):
    """Labelled observations."""

    @property
    def labels(self) -> Tensor:
        """A whole number ``(N,)`` for each."""


class Objective(ABC, Generic[Batch]):
    """A loss of an encoder on a batch of pairs or of labelled samples.

    The defaults suit a loss without state. One with parameters, which are trained with the encoder,
    derives from ``torch.nn.Module`` first and from this class second; ``forward`` is the loss.

    Attributes
    ----------
    group : ProcessGroup or None
        The ranks that batches lie on; None for a process alone.
    draws : torch.Generator or None
        Where the loss draws random numbers from, if it does.
    sharding : Sharding or None
        How the rows of its parameters are divided over ranks; None if every rank has all of them.

    Examples
    --------
    >>> from demix.losses.objective import Objective
    >>> class Shrink(Objective):
    ...     def __call__(self, encoder, batch):
    ...         return encoder(batch.x).square().mean()
    >>> list(Shrink().parameters()), Shrink().generators()
    ([], {})
    """

    group: dist.ProcessGroup | None = None
    draws: torch.Generator | None = None
    sharding: Sharding | None = None

    @abstractmethod
    def __call__(self, encoder: Encoder, batch: Batch, /) -> Tensor:
        """Return the loss ``()``."""

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Draw the parameters anew, if they do not start from fixed values."""
        if self.draws is not None:
            device = "cpu" if generator is None else generator.device
            seed = torch.randint(2**62, (), generator=generator, device=device)
            self.draws.manual_seed(int(seed))

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yield the parameters."""
        return iter(())

    def state_dict(self) -> dict[str, Any]:
        """Return parameters and buffers by name."""
        return {}

    def generators(self) -> dict[str, torch.Generator]:
        """Return the generators that the loss draws from, by name."""
        return {} if self.draws is None else {"objective": self.draws}

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Return this loss for batches that lie on the ranks of a group; None for whole batches.

        The average over ranks, of losses and of gradients, is that of one process with the whole
        batch, as in :func:`demix.contrast`. All ranks draw the same random numbers.
        """
        self.group = checked_group(group)
        if self.draws is not None:
            self.draws.set_state(Ranks(self.group).broadcast(self.draws.get_state()))
        return self

    @contextmanager
    def whole_on_first(self) -> Iterator[None]:
        """Give all parameters to rank 0 for a while, if they are divided over ranks."""
        yield


class FunctionObjective(nn.Module, Objective[Any]):
    """A plain function or module, as an objective."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, encoder: Encoder, batch: Any) -> Tensor:
        """Return the loss ``()``."""
        return self.function(encoder, batch)

    def across(self, group: dist.ProcessGroup | None) -> Self:
        """Refuse: a function does not say how it is averaged."""
        if checked_group(group) is None:
            return self
        raise DemixError(
            f"A plain {type(self.function).__name__} does not say how it is averaged over ranks; "
            "derive it from demix.losses.objective.Objective, or train it in one process."
        )
