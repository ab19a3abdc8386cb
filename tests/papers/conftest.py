"""Trainings of a few steps, for tests in which nothing depends on what is learnt."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest


def _shorten(patch: pytest.MonkeyPatch) -> None:
    from demix import train

    def shorter(encoder: Any, sample: Any, objective: Any, recipe: Any, **more: Any) -> Any:
        return train(encoder, sample, objective, replace(recipe, steps=10), **more)

    patch.setattr("demix.papers.runner.run.train", shorter)


@pytest.fixture
def brief_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train each row for ten steps, in one test."""
    _shorten(monkeypatch)


@pytest.fixture(scope="module")
def brief_module() -> Iterator[None]:
    """Train each row for ten steps, in all tests of a file."""
    with pytest.MonkeyPatch.context() as patch:
        _shorten(patch)
        yield
