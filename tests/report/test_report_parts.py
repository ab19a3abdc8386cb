"""Small parts of pages, each on one example."""

from __future__ import annotations

import math

import numpy as np
import pytest
from fits import GAIN, curve, titles

from demix import all_scores
from demix.report.blocks import (
    Example,
    Gallery,
    Page,
    Section,
    Table,
    Text,
    inline_svg,
    render,
    write_page,
)
from demix.report.checkup import checkup_page
from demix.report.compare import compare_page
from demix.report.examples import nearest_examples
from demix.report.figures import (
    correlation_heatmap,
    gain_of,
    interval_dots,
    pair_plot,
    recovered_scatter,
    thinned,
    time_courses,
)
from demix.report.fit import fit_page
from demix.report.probe import bars_svg, probe_page
from demix.report.recovery import recovery_page
from demix.report.style import number, shown

NAMES = ["a", "b", "c"]
ENDS = {"value": 0.8, "low": 0.7, "high": 0.9}
FACTOR = {
    **{"name": "size", "kind": "continuous", "testable": True, "measure": "r"},
    **ENDS,
    "chance": {"value": 0.0, "low": -0.1, "high": 0.1},
    **{"p": 0.001, "bonferroni": 0.001, "benjamini_hochberg": 0.001},
    "scores": {"r": ENDS},
}


def test_numbers_in_words():
    assert [number(x) for x in (-0.5, -0.001, math.nan)] == ["−0.50", "0.00", "–"]
    written = [shown(-0.5), shown(12), shown(None), shown(99.3125, ".2f")]
    assert written == ["−0.5", "12", "–", "99.31"]


def test_a_thinned_line_keeps_its_peaks():
    values = np.zeros(1000)
    values[333] = 1.0
    kept = thinned(values, 20)
    assert len(kept) <= 20
    assert 333 in kept


def test_an_end_that_is_none_is_infinite():
    assert gain_of({**GAIN, "high": None})["high"] == math.inf


def test_blocks_render_themselves(tmp_path):
    assert Text("First.\n\nSecond & last.").html(1) == "\n<p>First.</p>\n<p>Second &amp; last.</p>"
    assert Table(["space", "R2"], [["box", "99.1"]], "Scores.").numeric == [False, True]
    png = b"\x89PNG\r\n\x1a\n..."
    gallery = Gallery({"size": [Example(png, "small", alt="A small circle.")]}, "Circles.")
    assert "<span>small</span>" in gallery.html(1)
    page = Page("a < b", "What happened.", [Section("Result", [Text("It works.")])])
    assert page.title == "a < b"
    assert "<h1>a &lt; b</h1>" in render(page)
    assert write_page(page, tmp_path / "demo.html").name == "demo.html"


def test_a_picture_takes_the_colours_and_ids_of_its_page():
    svg = '<svg viewBox="0 0 9 5"><rect id="a" style="fill: #ffffff"/></svg>'
    contents = '<rect id="one-a" style="fill: var(--paper)" />'
    assert inline_svg(svg, "one-") == ("0 0 9 5", contents)
    drawn = bars_svg([FACTOR], 0.05)
    assert "size" in drawn
    assert "shuffled rows" in drawn


def test_figures_of_latents():
    z = np.random.default_rng(0).normal(size=(50, 3))
    assert recovered_scatter(z, -2 * z, NAMES).layout.annotations[0].text == "a<br>r = −1.000"
    kinds = [trace.type for trace in pair_plot(z, NAMES).data]
    assert kinds == ["bar", "scatter", "bar", "scatter", "scatter", "bar"]
    time = np.arange(300)
    courses = time_courses(np.sin(time / 20)[:, None], time, ["swing"])
    assert courses.layout.yaxis.title.text == "swing"
    heatmap = correlation_heatmap([[1.0, -0.2]], ["z1"], ["h1", "h2"], "Correlation")
    assert heatmap.data[0].text.tolist() == [["1.00", "−0.20"]]


def test_images_stand_in_the_order_of_their_latent():
    brightness = np.linspace(0, 1, 51)
    images = np.broadcast_to(brightness[:, None, None, None], (51, 1, 8, 8))
    gallery = nearest_examples(images, brightness[:, None])
    labels = [example.label for example in gallery.rows["latent 1"]]
    assert labels == ["0.020", "0.180", "0.340", "0.500", "0.660", "0.820", "0.980"]


def test_lines_and_dots_have_names():
    dots = interval_dots(["a"], [0.9], [0.8], [0.95], title="R²", line=0.8, null=[0.1])
    assert [trace.name for trace in dots.data] == ["runs", "shuffled rows"]
    history = [{"step": 0, "seconds": 0.0, "loss": 6.2, "validation": 6.3}]
    names = [trace.name for trace in curve(history, guess=6.9).data]
    assert names == ["a guess", "training loss", "held-out loss"]


def test_a_comparison_draws_held_out_gains_if_there_are_any():
    flat = [{"step": 0, "validation": 9 * math.log(2)}]
    runs = [{"name": name, "gain": GAIN, "history": flat} for name in "ab"]
    assert compare_page(runs).sections[1].body[0].figure.data[0].y.tolist() == [0.0]
    assert titles(compare_page([{**run, "history": []} for run in runs])) == ["Side by side"]
    facts = [{"space": "box", "seed": 0}, {"space": "sphere", "seed": 0}]
    told = [{**run, "facts": entry} for run, entry in zip(runs, facts, strict=True)]
    text, table, _ = compare_page(told).sections[0].body
    assert text.text == "The same for all runs: seed 0."
    assert table.header[:2] == ["Run", "space"]


def test_a_fit_and_a_recovery_have_their_sections():
    about = {
        **{"estimator": "InstanceDemixer", "gain": GAIN, "best_step": 0, "notes": []},
        **{"data": "12ab", "parameters": {"random_state": 0}, "provenance": {}, "time_order": True},
        "history": [{"step": 0, "seconds": 0.0, "loss": 6.2, "validation": 6.3}],
    }
    z = np.random.default_rng(0).normal(size=(40, 2))
    page = fit_page(about, {"space": "Box(2)", "latents": 2}, z)
    assert titles(page) == ["Result", "Training", "Latents", "Time courses"]
    scores = all_scores(z[:, ::-1], z, only=["affine_r2", "mean_correlation"])
    page = recovery_page("Demo", "Two factors.", z[:, ::-1], z, scores, provenance={})
    assert titles(page)[:2] == ["Result", "True against recovered"]


@pytest.mark.parametrize("verdict", ["pass", "warn", "fail"])
def test_a_checkup_has_a_claim_and_checks(verdict):
    check = {
        **{"name": "shape", "verdict": verdict, "statistic": 0.1, "unit": "|log p|"},
        **{"allowed": 0.3, "margin": 0.2, "null": [0.0, 0.1]},
        **{"sentence": "The noise is normal.", "advice": "Take another shape."},
    }
    found = {"supported": "affine", "theorem": "Theorem 5", "sentence": "It holds."}
    found["grade"] = {"information": 2.5, "stability": 0.98}
    page = checkup_page(found | {"checks": [check]}, provenance={})
    assert page.sections[0].body[1].facts["information, bits per sample"] == "2.500"
    assert page.sections[1].body[0].rows[0][-1] == "Take another shape."
    assert titles(page) == ["What may be claimed", "Checks", "Each check against chance"]


def test_a_probe_has_a_result_numbers_and_a_method():
    rows = {"train": 50, "validation": 20, "test": 30}
    found = {"features": 5, "rows": rows, "permutations": 999, "level": 0.05, "factors": [FACTOR]}
    found |= {"effective_rows": 37.4, "provenance": {}}
    page = probe_page(found, features="x.npy", factors="f.csv")
    assert titles(page) == ["Result", "Numbers", "Method"]
    assert ("independent rows", "37") in page.sections[0].body[1].facts.items()
