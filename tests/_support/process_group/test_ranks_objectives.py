"""Averages over ranks, of losses and gradients, are those of one process with the whole batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "sharded_cases.py"
FAMILIES = (
    "InfoNCE dot",
    "InfoNCE 1 ",
    "InfoNCE 1.5",
    "InfoNCE 2",
    "InfoNCE 3",
    "InfoNCE within",
    "InfoNCE on a sphere",
    "chosen positives",
    "AlignmentUniformity",
    "AnchorInfoNCE",
    "LatentMSE",
    "shaped",
    "potential",
    "narrow noise",
    "shape learnt",
    "classes",
    "DIET",
    "TCL",
    "GCL",
    "SlowVAE",
)


@pytest.fixture(scope="module")
def errors(ranks_program, tmp_path_factory) -> dict[str, float]:
    """The largest error of each case on three ranks."""
    file = tmp_path_factory.mktemp("ranks") / "errors.json"
    ranks_program(PROGRAM, 3, file)
    found: dict[str, float] = json.loads(file.read_text())
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_and_gradients_average_to_those_of_one_process(errors, family):
    own = {name: error for name, error in errors.items() if name.startswith(family)}
    assert own
    assert {name: error for name, error in own.items() if not error < 1e-10} == {}


def test_both_engines_serve(errors):
    assert sum(name.endswith("tiles") for name in errors) > 2
    assert all(name.startswith(FAMILIES) for name in errors)
