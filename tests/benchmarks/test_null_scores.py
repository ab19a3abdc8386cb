"""The benchmark of scores by chance counts what it says, on small sizes."""

import numpy as np
import pytest

from benchmarks.null_scores import SCORES, autoregression, covered, null_scores, table, trial


def test_neighbours_correlate_as_asked() -> None:
    x = autoregression(np.random.default_rng(0), 20_000, 2, 0.9)
    assert np.std(x) == pytest.approx((1 - 0.81) ** -0.5, rel=0.1)
    assert np.corrcoef(x[1:, 0], x[:-1, 0])[0, 1] == pytest.approx(0.9, abs=0.02)


def test_a_trial_gives_intervals_of_both_scores() -> None:
    found = trial(200, 2, 0.9, 1)
    assert set(found) == set(SCORES)
    assert all(low <= value <= high for value, low, high, _ in found.values())


def test_shares_are_counted() -> None:
    trials = [{"MCC (Pearson)": [0.2, low, 0.3, 0.1]} for low in (0.0, 0.15, 0.05, 0.1)]
    assert covered(trials, "MCC (Pearson)") == 0.75


def test_a_table_is_written(tmp_path) -> None:
    null_scores(tmp_path / "out", seeds="1-2", rows="100", latents="1", jobs=1)
    text = (tmp_path / "out/table.md").read_text(encoding="utf-8")
    assert text.count("| 100 | 1 |") == 5
    assert "Medians and shares of 2 trials." in text
    assert table([{**cell(), "trials": 7}]).count(" 7 trials") == 1


def cell() -> dict:
    both = dict.fromkeys(SCORES, 0.95)
    return {"rows": 10, "latents": 1, "phi": 0.5, "median": both, "covered": both}
