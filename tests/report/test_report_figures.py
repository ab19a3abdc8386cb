"""The figures, by what they hold."""

from __future__ import annotations

import numpy as np
from fits import curve

from demix.report.figures import correlation_heatmap, recovered_scatter
from demix.report.style import PALETTE
from demix.report.training import training_sections


def titles(figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def test_scatter_draws_a_sample_but_correlates_all():
    factors = np.random.default_rng(0).normal(size=(4000, 2))
    latents = np.column_stack([factors[:, 0], np.random.default_rng(1).normal(size=4000)])
    figure = recovered_scatter(factors, latents, ["a<b", "c"])
    assert [trace.x.size for trace in figure.data] == [2000, 2000]
    expected = np.corrcoef(factors[:, 1], latents[:, 1])[0, 1]
    assert titles(figure)[0] == "a&lt;b<br>r = 1.000"
    assert titles(figure)[1].replace("−", "-").endswith(f"r = {expected:.3f}")


def test_scatter_of_many_factors_stays_drawable():
    factors = np.random.default_rng(0).normal(size=(2000, 40))
    figure = recovered_scatter(factors, factors, [str(j) for j in range(40)])
    assert sum(trace.x.size for trace in figure.data) <= 15_000


def test_scatter_of_a_constant_latent_has_no_correlation():
    assert titles(recovered_scatter([[0.0], [1.0]], [[2.0], [2.0]], ["a"])) == ["a<br>r = –"]


def test_heatmap_writes_numbers_only_where_there_is_room():
    def drawn(n: int):
        names = [str(i) for i in range(n)]
        return correlation_heatmap(np.eye(n), names, names, "Correlation").data[0]

    assert drawn(12).texttemplate == "%{text}"
    assert drawn(13).texttemplate is None
    assert drawn(12).zmin == -1
    assert drawn(12).zmax == 1


def test_heatmap_leaves_undefined_cells_empty():
    figure = correlation_heatmap([[np.nan, -0.001]], ["z"], ["same", "same"], "Correlation")
    assert figure.data[0].text.tolist() == [["–", "0.00"]]


def test_training_curve_leaves_gaps_out_and_draws_the_optimum():
    history = [
        {"step": 0, "seconds": 0.0, "loss": 6.0, "optimum": 4, "score": None},
        {"step": 10, "seconds": None, "loss": float("nan"), "score": 50.0},
        {"step": 20, "seconds": 2.0, "loss": 5.0, "optimum": 4, "score": 90.0},
    ]
    by_name = {trace.name: trace for trace in curve(history).data}
    assert by_name["loss"].x.tolist() == [0, 20]
    assert by_name["lowest possible loss"].y.tolist() == [4, 4]
    assert by_name["R²"].y.tolist() == [50, 90]
    assert list(by_name["R²"].customdata) == ["time unknown", "2.0 s"]


def test_training_curve_without_scores_is_one_panel():
    figure = curve([{"step": 0, "seconds": 0.0, "loss": 1.0}])
    assert len(figure.data) == 1
    assert "yaxis2" not in figure.layout
    assert training_sections([{"step": 0, "seconds": 0.0, "loss": None}]) == []


def test_no_two_light_colours_are_equal_so_that_each_has_one_dark_partner():
    light = [pair[0] for pair in PALETTE.values()]
    assert len(set(light)) == len(light)
