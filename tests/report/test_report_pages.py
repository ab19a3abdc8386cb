"""The two kinds of page: of one recovery, and of a table."""

from __future__ import annotations

import numpy as np
import pytest

from demix._support.errors import DemixError
from demix.report.blocks import Facts, Figure, Table
from demix.report.recovery import recovery_page


def blocks(page, kind):
    return [block for section in page.sections for block in section.body if type(block) is kind]


def test_recovery_page_orders_the_columns_by_the_assignment(run):
    page = recovery_page(**run)
    _, before, after, _ = blocks(page, Figure)
    np.testing.assert_allclose(before.figure.data[0].z, run["correlation"])
    np.testing.assert_allclose(np.abs(np.diag(after.figure.data[0].z)), 1)
    assert list(after.figure.layout.xaxis.ticktext) == ["3", "1", "2"]
    matching, certified = blocks(page, Table)
    assert [row[1:3] for row in matching.rows] == [["3", "1.000"], ["1", "−1.000"], ["2", "1.000"]]
    assert certified.rows[0][:4] == ["MCC", "0.9910", "0.9850 to 0.9935", "0.4100"]
    assert blocks(page, Facts)[0].facts == {"R²": "99.31", "MCC": "99.1 %"}
    assert page.provenance == {"seed": "0"}


def test_latents_matched_to_no_factor_stand_behind_the_others(run):
    spare = np.random.default_rng(1).normal(size=(200, 1))
    latents = np.hstack([spare, run["latents"]])
    correlation = np.corrcoef(run["factors"].T, latents.T)[:3, 3:]
    shifted = [column + 1 for column in run["assignment"]]
    changed = {"latents": latents, "correlation": correlation, "assignment": shifted}
    after = blocks(recovery_page(**{**run, **changed}), Figure)[2].figure
    assert list(after.layout.xaxis.ticktext) == ["4", "2", "3", "1"]


def test_recovery_page_without_history_or_certificate(run):
    page = recovery_page(**{**run, "history": [], "certificate": []})
    assert [section.title for section in page.sections][-1] == "Which latent is which factor"
    assert len(blocks(page, Figure)) == 3


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"assignment": [0, 1]}, "assignment must name one latent"),
        ({"assignment": [0, 1, 3]}, "from 0 to 2"),
        ({"correlation": np.eye(2)}, r"\(3, 3\)"),
        ({"latents": np.zeros(3)}, "must be matrices"),
    ],
)
def test_recovery_page_refuses_what_does_not_fit(run, changed, message):
    with pytest.raises(DemixError, match=message):
        recovery_page(**{**run, **changed})
