"""The page that compares runs, by what it holds."""

from __future__ import annotations

import math

import numpy as np
from fits import GAIN, blocks, runs, titles

from demix.report.blocks import Figure, Table, Text
from demix.report.compare import agreement_of, compare_page


def test_what_differs_is_in_the_table_and_the_rest_in_a_sentence():
    page = compare_page(runs("first", "second"), agreement=np.eye(2))
    assert titles(page) == ["Side by side", "Training", "Agreement"]
    assert blocks(page, Text)[0].text == "The same for all runs: conditional Laplace, seed 0."
    (table,) = blocks(page, Table)
    assert table.header == [
        *("Run", "space", "information (bits)", "95 % interval", "at most", "loss (nats)")
    ]
    assert table.rows[1] == ["second", "space 1", "1.000", "1.800 to 2.100", "9.000", "4.850"]


def test_a_fact_that_only_some_runs_have_is_a_difference():
    first, second = runs("first", "second")
    first = {**first, "facts": {"space": "box", "lag": 3}}
    second = {**second, "facts": {"space": "box"}, "gain": {**GAIN, "high": None}}
    (table,) = blocks(compare_page([first, second]), Table)
    assert table.header[:4] == ["Run", "lag", "information (bits)", "95 % interval"]
    assert [row[3] for row in table.rows] == ["1.800 to 2.100", "1.800 to inf"]
    assert [row[1] for row in table.rows] == ["3", "–"]


def test_figures_hold_gains_with_intervals_and_held_out_curves():
    first, second = runs("first", "second")
    page = compare_page([first, {**second, "history": None}])
    dots, curves = (block.figure for block in blocks(page, Figure))
    assert dots.data[0].x.tolist() == [2.0, 1.0]
    # An interval that leaves its gain out is drawn as far as it can be.
    np.testing.assert_allclose(dots.data[0].error_x.array, [0.1, 1.1])
    np.testing.assert_allclose(dots.data[0].error_x.arrayminus, [0.2, 0.0])
    (line,) = curves.data
    assert line.name == "first"
    np.testing.assert_allclose(line.y[2], 9 - 4.85 / math.log(2))


def test_only_names_and_gains_are_needed():
    page = compare_page([{"name": name, "gain": GAIN} for name in "ab"])
    assert titles(page) == ["Side by side"]
    assert not blocks(page, Text)


def test_agreement_is_measured_on_the_same_rows_only():
    z = np.random.default_rng(0).normal(size=(50, 2))
    np.testing.assert_allclose(agreement_of([z, 2 * z[:, ::-1] + 1]), 1, atol=1e-6)
    assert agreement_of([z, z[:40]]) is None
    assert agreement_of([z[:9], z[:9]]) is None
