"""What ranks measure together; each function is called on every rank at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor
from torch import distributed as dist
from torch.nn import functional

from benchmarks.memory import peak_memory, start_counting
from demix._support.process_group.group import Ranks
from demix._support.process_group.sharding import even_sharding
from demix.distributions.base import Uniform
from demix.distributions.von_mises_fisher import VonMisesFisher
from demix.encoders.encoder import Encoder
from demix.losses.pairs import InfoNCE
from demix.losses.similarities import similarity_named
from demix.losses.streaming import pairwise_logsumexp, sharded_logsumexp
from demix.processes.process import LeakyMixing, Process
from demix.spaces.kinds import Sphere
from demix.training.loop import train
from demix.training.recipe import Recipe


def step_seconds(batch: int, dim: int, steps: int) -> float:
    """Return the seconds of a training step of the laptop encoder with InfoNCE."""
    recipe = Recipe(steps=steps, batch=batch, whiten=False)
    training = train(
        _encoder(dim), _process(dim).sample, InfoNCE(), recipe, eval_every=recipe.steps
    )
    return training.seconds / steps


def encoder_bytes(dim: int) -> int:
    """Return the bytes of all gradients of the laptop encoder."""
    return sum(p.numel() * p.element_size() for p in _encoder(dim).parameters())


def draw_seconds(batch: int, dim: int, repeats: int) -> float:
    """Return the seconds that a rank takes to draw a whole batch."""
    generator = torch.Generator().manual_seed(0)
    return _seconds(lambda: _process(dim).sample(batch, generator=generator), repeats)


def loss_seconds(batch: int, dim: int, gathered: bool, repeats: int) -> float:
    """Return the seconds of the two-sided loss and its gradients on a batch that ranks share.

    Unless keys are ``gathered``, each rank has all at hand, and the same pairs to go through.
    """
    return _seconds(_loss(batch, dim, gathered), repeats)


def loss_bytes(batch: int, dim: int) -> int:
    """Return the bytes by which the same raises the memory of a rank, at its peak."""
    _loss(64, dim, True)()
    call = _loss(batch, dim, True)
    dist.barrier()
    before = start_counting()
    call()
    return max(0, peak_memory() - before)


def hop_seconds(size: int, repeats: int) -> float:
    """Return the seconds in which each rank sends so many bytes to the next and gets as many."""
    ranks = Ranks.current()
    leaving, coming = torch.zeros(size // 4), torch.empty(size // 4)

    def hop() -> None:
        messages = [
            dist.P2POp(dist.isend, leaving, group_peer=(ranks.rank + 1) % ranks.count),
            dist.P2POp(dist.irecv, coming, group_peer=(ranks.rank - 1) % ranks.count),
        ]
        for message in dist.batch_isend_irecv(messages):
            message.wait()

    return _seconds(hop, repeats)


def _loss(batch: int, dim: int, gathered: bool) -> Callable[[], object]:
    similarity = similarity_named("dot")
    split = even_sharding(batch, Ranks.current().group)
    generator = torch.Generator().manual_seed(0)
    both = functional.normalize(torch.randn(2, batch, dim, generator=generator), dim=2)
    queries, keys = both[0, split.own].clone(), both[1].clone()
    if gathered:
        keys = keys[split.own].clone()
    del both
    queries.requires_grad_(), keys.requires_grad_()

    def call() -> tuple[Tensor, ...]:
        if gathered:
            rows, columns = sharded_logsumexp(queries, keys, similarity, split, columns=True)
        else:
            rows, columns = pairwise_logsumexp(queries, keys, similarity, columns=True)
        assert columns is not None
        return torch.autograd.grad(rows.mean() + columns.mean(), [queries, keys])

    return call


@cache
def _process(dim: int) -> Process:
    sphere = Sphere(dim)
    return Process(
        Uniform(sphere), VonMisesFisher(sphere, 10.0), LeakyMixing(dim, seed=0, draws=100)
    )


def _encoder(dim: int) -> Encoder:
    return Encoder(dim, Sphere(dim))


def _seconds(call: Callable[[], object], repeats: int) -> float:
    dist.barrier()
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
