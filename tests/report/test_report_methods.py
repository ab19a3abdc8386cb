"""Results write their own pages: a fit, a check-up and a consensus."""

from __future__ import annotations

import numpy as np
import pytest

from demix import ContrastiveDemixer, DemixError, Recipe, checkup, consensus

RECIPE = Recipe(steps=20, batch=64)


@pytest.fixture(scope="module")
def x() -> np.ndarray:
    """A walk on a circle."""
    angle = np.cumsum(np.random.default_rng(0).normal(0, 0.5, 400))
    return np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle)], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def demixer(x) -> ContrastiveDemixer:
    return ContrastiveDemixer(2, recipe=RECIPE, random_state=0).fit(x)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_fit_reports_itself(demixer, x, tmp_path):
    page = demixer.report(tmp_path / "alone.html")
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / "alone.html"
    assert "<h1>2 latents</h1>" in text
    assert ">Latents</h2>" not in text
    factors = {"factors": x[:, :2], "factor_names": ["cosine", "sine"]}
    text = demixer.report(page, x, time_order=True, **factors).read_text(encoding="utf-8")
    assert "<h1>2 latents of 400 rows</h1>" in text
    for title in ("Latents", "Time courses", "True against recovered"):
        assert f">{title}</h2>" in text
    assert "cosine" in text


def test_a_page_of_others_is_not_replaced(demixer, tmp_path):
    (tmp_path / "thesis.html").write_text("<html>thesis</html>")
    with pytest.raises(DemixError, match="than demix writes"):
        demixer.report(tmp_path / "thesis.html")
    assert (tmp_path / "thesis.html").read_text() == "<html>thesis</html>"


def test_a_checkup_reports_itself(demixer, x, tmp_path):
    found = checkup(demixer, np.concatenate([x, x]), refits=False)
    text = found.report(tmp_path / "checkup.html", title="Mine").read_text(encoding="utf-8")
    assert "<h1>Mine</h1>" in text
    assert all(check.name in text for check in found.checks)


@pytest.mark.filterwarnings("ignore::demix.DemixWarning")
def test_a_consensus_reports_itself(x, tmp_path):
    agreed = consensus(ContrastiveDemixer(2, recipe=RECIPE), x, 2)
    text = agreed.report(tmp_path / "alone.html").read_text(encoding="utf-8")
    assert "What 2 runs agree on" in text
    assert ">Two runs</h2>" not in text
    text = agreed.report(tmp_path / "rows.html", x, time_order=True).read_text(encoding="utf-8")
    assert ">Two runs</h2>" in text
    assert ">Time courses</h2>" in text
