"""The page of a consensus, by what it holds and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from demix._support.errors import DemixError
from demix.report.blocks import Facts, Figure, Table, Verdict
from demix.report.consensus import consensus_page, stability_dots
from demix.report.page import render

GAIN = {"bits": 2.0, "low": 1.8, "high": 2.1, "loss": 4.0, "null": 5.4}


def page(n: int = 2, **changed: Any):
    random = np.random.default_rng(0)
    z = random.normal(size=(300, n))
    given: dict[str, Any] = {
        "title": "Three runs",
        "summary": "What they agree on.",
        "verdict": Verdict("neutral", "Dimension 2 of 2 is not stable."),
        "stability": {
            "values": np.linspace(0.95, 0.5, n),
            "low": np.linspace(0.9, 0.4, n),
            "high": np.linspace(0.97, 0.6, n),
            "null": np.full(n, -0.01),
            "untrained": 0.31,
            "threshold": 0.8,
            "stable": [True] + [False] * (n - 1),
        },
        "runs": [{"name": f"seed {s}", "r2": 0.7, "gain": GAIN} for s in range(3)],
        "pair": (z, z + 0.1 * random.normal(size=z.shape)),
        "pair_names": ("seed 0", "seed <2>"),
        "latents": z,
        "facts": {"space": "box"},
        "provenance": {"seed": 0},
        "time": np.arange(300),
        "notes": ["Column 3 is constant."],
    }
    return consensus_page(**{**given, **changed})


def blocks(page, kind):
    return [block for section in page.sections for block in section.body if type(block) is kind]


def test_every_part_has_its_section():
    made = page()
    titles = [section.title for section in made.sections]
    assert titles == ["Result", "Stability", "Two runs", "Latents", "Time courses", "Notes"]
    (facts,) = blocks(made, Facts)
    assert facts.facts["stable dimensions"] == "1 of 2"
    assert facts.facts["of untrained encoders"] == "0.310"
    _, dimensions, runs = blocks(made, Table)
    assert dimensions.rows[1][:3] == ["dimension 2", "0.500", "0.400 to 0.600"]
    assert dimensions.rows[1][3:] == ["−0.010", "not stable"]
    assert [row[0] for row in runs.rows] == ["seed 0", "seed 1", "seed 2"]
    dots, scatter, *_ = blocks(made, Figure)
    assert dots.figure.data[0].x.tolist() == [0.95, 0.5]
    assert scatter.figure.layout.yaxis.title.text == "seed &lt;2&gt;"
    assert "<2>" not in render(made)


def test_of_many_dimensions_some_are_compared():
    made = page(n=14)
    scatter = blocks(made, Figure)[1]
    assert len(scatter.figure.data) == 10
    assert "Shown are the first 10 of 14 dimensions." in scatter.caption


def test_an_r2_far_below_zero_does_not_squeeze_the_rest():
    figure = stability_dots(["a"], [-50.0], [-80.0], [-20.0], [-0.1], threshold=0.8)
    assert tuple(figure.layout.xaxis.range) == (-1.04, 1.04)


def test_a_number_for_each_dimension_is_needed():
    stability = {"values": [0.9], "low": [0.8], "high": [1.0], "null": [0.0]}
    rest = {"untrained": 0.3, "threshold": 0.8, "stable": [True, False]}
    with pytest.raises(DemixError, match="one number per dimension, 2 in all"):
        page(stability={**stability, **rest})
