"""What tests of data share: one sentence about what is refused, and all rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from demix import Data, DemixError


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> str:
    """Return the one sentence with which a call is refused."""
    with pytest.raises(DemixError) as caught:
        call(*arguments, **options)
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert not sentence.endswith("..")
    assert "\n" not in sentence
    return sentence


def everything(data: Data) -> np.ndarray:
    """Return all rows."""
    return data.take(torch.arange(len(data))).numpy()


def written(path: Path, text: str) -> Path:
    """Return a file of text."""
    path.write_text(text, encoding="utf-8")
    return path
