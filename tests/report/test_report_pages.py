"""The two kinds of page: of one recovery, and of a table."""

from __future__ import annotations

from copy import copy

import numpy as np
import pytest
from fits import blocks, titles

from demix._support.errors import DemixError
from demix.report.blocks import Facts, Figure, Table
from demix.report.recovery import recovery_page


def test_recovery_page_orders_the_columns_by_the_assignment(run):
    page = recovery_page(**run)
    _, before, after, _ = blocks(page, Figure)
    correlation = np.corrcoef(run["factors"].T, run["latents"].T)[:3, 3:]
    np.testing.assert_allclose(before.figure.data[0].z, correlation)
    np.testing.assert_allclose(np.abs(np.diag(after.figure.data[0].z)), 1)
    assert list(after.figure.layout.xaxis.ticktext) == ["3", "1", "2"]
    matching, certified = blocks(page, Table)
    assert [row[1:3] for row in matching.rows] == [["3", "1.000"], ["1", "−1.000"], ["2", "1.000"]]
    assert certified.rows[1][:4] == ["MCC (Pearson)", "0.9910", "0.9850 to 0.9935", "0.4100"]
    tiles = {"held-out R²": "99.31 %", "held-out MCC": "99.10 %", "chance level of R²": "10.00 %"}
    assert blocks(page, Facts)[0].facts == tiles
    assert page.provenance == {"seed": 0}


def test_latents_matched_to_no_factor_stand_behind_the_others(run):
    spare = np.random.default_rng(1).normal(size=(200, 1))
    latents = np.hstack([spare, run["latents"]])
    score = copy(run["scores"]["mean_correlation"])
    score.assignment = score.assignment + 1
    changed = {"latents": latents, "scores": {**run["scores"], "mean_correlation": score}}
    after = blocks(recovery_page(**{**run, **changed}), Figure)[2].figure
    assert list(after.layout.xaxis.ticktext) == ["4", "2", "3", "1"]


def test_recovery_page_without_history_or_scores(run):
    page = recovery_page(**{**run, "history": []})
    assert titles(page)[-2:] == [
        "Which latent is which factor",
        "What is certified, and what is not",
    ]
    assert len(blocks(page, Figure)) == 3
    assert titles(recovery_page(**{**run, "history": [], "scores": {}})) == ["Result"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"names": ["one"]}, "one name per factor, 3 in all"),
        ({"latents": np.zeros(3)}, "filled matrix"),
    ],
)
def test_recovery_page_refuses_what_does_not_fit(run, changed, message):
    with pytest.raises(DemixError, match=message):
        recovery_page(**{**run, **changed})
