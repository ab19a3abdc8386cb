"""The page of a consensus, by what it holds."""

from __future__ import annotations

from typing import Any

import numpy as np
from fits import GAIN, blocks, titles

from demix.report.blocks import Facts, Figure, Table, render
from demix.report.consensus import consensus_page
from demix.report.figures import interval_dots


def page(n: int = 2, **changed: Any):
    random = np.random.default_rng(0)
    z = random.normal(size=(300, n))
    found: dict[str, Any] = {
        "verdict": "Dimension 2 of 2 is not stable.",
        "theorem": "Theorem 2",
        "rows": 300,
        "held_out_rows": 80,
        "stability": np.linspace(0.95, 0.5, n),
        "low": np.linspace(0.9, 0.4, n),
        "high": np.linspace(0.97, 0.6, n),
        "null": np.full(n, -0.01),
        "untrained": 0.31,
        "stable": [True] + [False] * (n - 1),
        "per_run": [[0.7] * n, [0.8] * n, [0.6] * n],
        "seeds": [0, 1, "<2>"],
        "gains": [GAIN] * 3,
    }
    return consensus_page(
        found | changed,
        z,
        {"estimator": "InstanceDemixer", "runs may differ by": "a rotation"},
        threshold=0.8,
        runs=z + 0.1 * random.normal(size=(3, *z.shape)),
        in_time=True,
        notes=["Column 3 is constant."],
        provenance={"seed": 0},
    )


def test_every_part_has_its_section():
    made = page()
    expected = ["Result", "Stability", "Two runs", "Latents", "Time courses", "Notes"]
    assert titles(made) == expected
    (facts,) = blocks(made, Facts)
    assert facts.facts["stable dimensions"] == "1 of 2"
    assert facts.facts["R² of untrained encoders"] == "0.310"
    _, dimensions, runs = blocks(made, Table)
    assert dimensions.rows[1][:3] == ["dimension 2", "0.500", "0.400 to 0.600"]
    assert dimensions.rows[1][3:] == ["−0.010", "not stable"]
    assert [row[:2] for row in runs.rows] == [
        ["seed 0", "0.700"],
        ["seed 1", "0.800"],
        ["seed <2>", "0.600"],
    ]
    dots, scatter, *_ = blocks(made, Figure)
    assert dots.figure.data[0].x.tolist() == [0.95, 0.5]
    assert scatter.figure.layout.xaxis.title.text == "seed 1"
    assert scatter.figure.layout.yaxis.title.text == "seed &lt;2&gt;"
    assert "<2>" not in render(made)


def test_of_many_dimensions_some_are_compared():
    made = page(n=14)
    scatter = blocks(made, Figure)[1]
    assert len(scatter.figure.data) == 10
    assert "Shown are the first 10 of 14 dimensions." in scatter.caption


def test_an_r2_far_below_zero_does_not_squeeze_the_rest():
    figure = interval_dots(["a"], [-50.0], [-80.0], [-20.0], title="R²", line=0.8, null=[-0.1])
    assert tuple(figure.layout.xaxis.range) == (-1.04, 1.04)
