"""The page of a recovery, by what it holds and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from fits import blocks, titles

from demix._support.errors import DemixError
from demix.metrics.regression import mean_correlation
from demix.report.blocks import Facts, Figure, Table
from demix.report.recovery import recovery_page


def test_recovery_page_orders_the_columns_by_the_assignment(run):
    page = recovery_page(**run)
    _, before, after, _ = blocks(page, Figure)
    correlation = np.corrcoef(run["factors"].T, run["latents"].T)[:3, 3:]
    np.testing.assert_allclose(before.figure.data[0].z, correlation)
    np.testing.assert_allclose(np.abs(np.diag(after.figure.data[0].z)), 1, atol=0.01)
    assert list(after.figure.layout.xaxis.ticktext) == ["3", "1", "2"]
    matching, certified = blocks(page, Table)
    assert [row[1] for row in matching.rows] == ["3", "1", "2"]
    assert [float(row[2].replace("−", "-")) for row in matching.rows] == [
        round(correlation[i, j], 3) for i, j in enumerate([2, 0, 1])
    ]
    r2, mcc = run["scores"].values()
    interval = f"{mcc.low:.4f} to {mcc.high:.4f}"
    assert certified.rows[1][:4] == [
        *("MCC (Pearson)", f"{mcc:.4f}", interval, f"{mcc.baseline:.4f}")
    ]
    assert blocks(page, Facts)[0].facts == {
        "held-out R²": f"{100 * r2:.2f} %",
        "held-out MCC": f"{100 * mcc:.2f} %",
        "chance level of R²": f"{100 * r2.baseline:.2f} %",
    }
    assert page.provenance == {"seed": 0}


def test_latents_matched_to_no_factor_stand_behind_the_others(run):
    spare = np.random.default_rng(1).normal(size=(200, 1))
    latents = np.hstack([spare, run["latents"]])
    scores = {"mean_correlation": mean_correlation(latents, run["factors"])}
    changed = {"latents": latents, "scores": scores}
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
        ({"names": ["one"]}, "3 names, one per factor"),
        ({"latents": np.zeros(3)}, "must be a matrix"),
    ],
)
def test_recovery_page_refuses_what_does_not_fit(run, changed, message):
    with pytest.raises(DemixError, match=message):
        recovery_page(**{**run, **changed})
