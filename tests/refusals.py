"""Refusals: one sentence that says what was expected, what came and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from demix import DemixError


def refusal(call: Callable[..., object], *given: object) -> str:
    """Return the sentence of the DemixError that a call raises."""
    with pytest.raises(DemixError) as raised:
        call(*given)
    words = str(raised.value)
    assert "\n" not in words
    assert words.endswith(".")
    assert len(words) < 1000
    return words
