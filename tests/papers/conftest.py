"""Trainings of a few steps, for tests in which nothing depends on what is learnt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest


@pytest.fixture
def brief_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train each row for ten steps."""
    from demix import train

    def shorter(encoder: Any, sample: Any, objective: Any, recipe: Any, **more: Any) -> Any:
        return train(encoder, sample, objective, replace(recipe, steps=10), **more)

    monkeypatch.setattr("demix.papers.runner.run.train", shorter)
