"""A small step takes one thread, a large one all; the caller's number comes back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from demix import Encoder, InfoNCE, Pairs, Recipe, Sphere, train
from demix._support.errors import DemixError
from demix.training.threads import step_threads


@pytest.fixture
def three() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three")
def test_threads_follow_the_work_of_a_step() -> None:
    small, large = Encoder(50, Sphere(3)), Encoder(50, Sphere(3), hidden=(512,) * 4)
    assert step_threads(small, 1024) == 1
    assert step_threads(small, 4096) == 2
    assert step_threads(large, 1024) == 3
    # Whitening multiplies, too.
    assert step_threads(Encoder(1000, Sphere(3)), 1024) == 3
    assert step_threads(Encoder((3, 32, 32), Sphere(3), body="compact"), 16) == 3


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("broken", [False, True])
def test_a_training_gives_the_threads_back(broken: bool) -> None:
    seen = []

    def sample(size: int, *, generator: torch.Generator) -> Pairs:
        x = torch.randn(size, 3, generator=generator)
        return Pairs(x, x, x, x * float("nan") if broken and seen else x + 0.1)

    def note(*_: object) -> None:
        seen.append(torch.get_num_threads())

    encoder, recipe = Encoder(3, Sphere(3)), Recipe(steps=2, batch=64)
    if broken:
        with pytest.raises(DemixError, match="The loss became"):
            train(encoder, sample, InfoNCE(), recipe, callback=note)
    else:
        train(encoder, sample, InfoNCE(), recipe, callback=note)
    assert set(seen) == {1}
    assert torch.get_num_threads() == 3
