"""The page of a fit, by what it holds and what it refuses."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import numpy as np
import pytest
from fits import GAIN, HISTORY, about, blobs, blocks, curve, fit, titles

from demix._support.errors import DemixError
from demix.report.blocks import Facts, Figure, Gallery, Table, Text, Verdict, render
from demix.report.examples import nearest_examples
from demix.report.figures import pair_plot, time_courses
from demix.report.fit import fit_page

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(1)'>"


def test_every_part_has_its_section():
    page = fit_page(**fit(n=2, images=blobs(400)["images"], factor_names=["across", "down"]))
    assert titles(page) == [
        "Result",
        "Training",
        "Latents",
        "Time courses",
        "Examples",
        "True against recovered",
        "Which latent is which factor",
        "What is certified, and what is not",
        "Notes",
    ]
    assert page.title == "2 latents of 400 rows"
    (facts,) = blocks(page, Facts)
    assert facts.facts["information, bits per sample"] == "2.000"
    assert facts.facts["95 % interval"] == "1.800 to 2.100"
    settings, matching, _ = blocks(page, Table)
    assert settings.rows == [["space", "real"], ["latents", "2"], ["rows", "400"]]
    assert [row[0] for row in matching.rows] == ["across", "down"]
    assert blocks(page, Text)[-1].text == "Column 3 is constant."
    assert list(blocks(page, Gallery)[0].rows) == ["latent 1", "latent 2"]
    assert page.provenance == {"data": "sha256 12ab", "seed": 0, "demix": "1.0"}


@pytest.mark.usefixtures("few_draws")
def test_the_verdict_says_whether_the_gain_is_above_zero():
    (verdict,) = blocks(fit_page(**fit()), Verdict)
    assert verdict.kind == "good"
    assert "2.000 of at most 9.00 bits per sample (95 % interval 1.800 to 2.100)" in verdict.text
    nothing = about(gain={**GAIN, "low": None})
    (verdict,) = blocks(fit_page(**fit(about=nothing)), Verdict)
    assert verdict.kind == "bad"
    assert "(95 % interval -inf to 2.100)" in verdict.text


def test_only_the_facts_of_the_fit_are_needed():
    page = fit_page(about(history=[], notes=[]), {"space": "real", "latents": 1})
    assert titles(page) == ["Result"]
    assert page.title == "1 latents"
    plain = about(rows=2, history=[], notes=[], time_order=False)
    page = fit_page(plain, {"space": "real", "latents": 1}, [[0.0], [1.0]])
    assert titles(page) == ["Result", "Latents"]
    assert blocks(page, Figure)[0].caption == "Histogram of the latent over 2 rows."


def test_the_training_figure_holds_a_guess_and_the_step_that_was_kept():
    by_name = {trace.name: trace for trace in curve(HISTORY, 300, guess=6.24).data}
    assert by_name["held-out loss"].x.tolist() == [0, 200, 300, 400]
    assert by_name["training loss"].x.size == 5
    assert set(by_name["a guess"].y) == {6.24}
    assert by_name["kept: step 300"].x.tolist() == [300, 300]
    one_held_out_loss = [{"step": 5, "seconds": None, "loss": None, "validation": 1.0}]
    assert [trace.name for trace in curve(one_held_out_loss).data] == ["held-out loss"]


def test_pair_plot_draws_some_points_but_counts_and_correlates_all():
    latents = np.random.default_rng(0).normal(size=(5000, 9))
    latents[:, 1] += latents[:, 0]
    figure = pair_plot(latents, ["z"] * 9)
    kinds = [trace.type for trace in figure.data]
    assert kinds.count("bar") == 6
    assert kinds.count("scatter") == 15
    assert sum(trace.x.size for trace in figure.data if trace.type == "scatter") <= 15_000
    assert all(trace.y.sum() == 5000 for trace in figure.data if trace.type == "bar")
    assert len(figure.layout.annotations) == 15
    expected = np.corrcoef(latents[:, 0], latents[:, 1])[0, 1]
    assert figure.layout.annotations[0].text == f"r = {expected:.2f}"
    assert max(t.x.size for t in pair_plot(latents[:, :2], ["a", "b"]).data) == 2000
    page = fit_page(**fit(n=9, factors=None))
    assert blocks(page, Figure)[1].caption.endswith("Shown are the first 6 of 9 latents.")


def test_constant_latents_can_be_drawn():
    figure = pair_plot(np.zeros((10, 2)), ["a", "b"])
    assert figure.layout.annotations[0].text == "r = –"
    render(fit_page(**fit(latents=np.zeros((400, 3)), factors=None)))


def test_time_courses_keep_peaks():
    values = np.zeros((50_000, 1))
    values[31_234] = 9.0
    (line,) = time_courses(values, np.arange(50_000), ["swing"]).data
    assert line.x.size <= 2000
    assert line.y[np.flatnonzero(line.x == 31_234)] == [9.0]
    assert len(time_courses(np.zeros((5, 20)), np.arange(5), ["z"] * 20).data) == 12


def test_examples_grow_along_their_latent_while_the_other_stays():
    from PIL import Image

    data = blobs(2000)
    gallery = nearest_examples(data["images"], data["latents"])
    for column, strip in enumerate(gallery.rows.values()):
        rows = [int(re.match(r"Image (\d+), where", example.alt)[1]) for example in strip]
        latents = data["latents"][rows]
        assert len(rows) == 7
        assert np.all(np.diff(latents[:, column]) > 0)
        assert np.ptp(latents[:, column]) > 1.7
        assert np.abs(latents[:, 1 - column]).max() < 0.15
        drawn = np.asarray(Image.open(io.BytesIO(strip[0].png)))
        np.testing.assert_allclose(
            drawn / 255, np.moveaxis(data["images"][rows[0]], 0, -1), atol=0.003
        )


@pytest.mark.parametrize("count", [1, 2, 6, 7, 8, 20])
def test_few_grey_images_are_shown_once_each(count):
    data = blobs(count, channels=1)
    for strip in nearest_examples(data["images"], data["latents"]).rows.values():
        assert len({example.alt for example in strip}) == len(strip) == min(count, 7)


@pytest.mark.parametrize(("channels", "mode"), [(1, "L"), (2, "L"), (3, "RGB"), (4, "RGBA")])
def test_images_of_any_channels_and_brightness_are_shown(channels, mode):
    from PIL import Image

    images = np.random.default_rng(0).integers(0, 255, (20, channels, 8, 8))
    gallery = nearest_examples(images, np.arange(20.0)[:, None])
    modes = {Image.open(io.BytesIO(example.png)).mode for example in gallery.rows["latent 1"]}
    assert modes == {mode}


@pytest.mark.parametrize("span", [1e-6, 1.0, 1e6])
def test_values_below_images_differ_whatever_their_scale(span):
    data = blobs(100)
    data["latents"] = span * data["latents"]
    for strip in nearest_examples(data["images"], data["latents"]).rows.values():
        labels = [example.label for example in strip]
        assert len(set(labels)) == 7
        assert max(map(len, labels)) <= 11


@pytest.mark.usefixtures("few_draws")
def test_a_large_fit_stays_below_six_megabytes():
    rng = np.random.default_rng(0)
    long = [
        {"step": step, "seconds": step / 3, "loss": rng.normal(), "validation": rng.normal()}
        for step in range(20_000)
    ]
    images = rng.random((80, 3, 200, 160), dtype=np.float32)
    told = about(rows=100_000, history=long, best_step=19_999)
    page = fit_page(**fit(rows=100_000, n=12, images=images, about=told, factors=None))
    # As many points are drawn of more, and what chance gives is not drawn.
    known = fit_page(**fit(rows=2000, n=12)).sections[-4:-1]
    page = replace(page, sections=[*page.sections, *known])
    assert len(render(page).encode()) < 6_000_000


@pytest.mark.usefixtures("few_draws")
def test_names_and_words_are_escaped_wherever_they_stand():
    told = about(estimator=HOSTILE, notes=[HOSTILE], data=HOSTILE, provenance={HOSTILE: HOSTILE})
    facts = {"space": HOSTILE, "latents": 2, HOSTILE: HOSTILE}
    images = blobs(400)["images"]
    page = fit_page(**fit(n=2, images=images, about=told, facts=facts, factor_names=[HOSTILE, "b"]))
    html = render(page)
    assert "alert(1)</script>" not in html
    text = re.sub(r"<script\b.*?</script>", "", html, flags=re.DOTALL)
    assert "<img src=x" not in text
    assert set(re.findall(r'\bsrc="(.{22})', text)) == {"data:image/png;base64,"}


@pytest.mark.usefixtures("few_draws")
def test_rendering_is_repeatable():
    arguments = fit(n=2, images=blobs(400)["images"])
    assert render(fit_page(**arguments)) == render(fit_page(**arguments))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"latents": np.zeros(3)}, "must be a matrix"),
        ({"latents": [["a", "b"]]}, "latents must be an array of numbers"),
        ({"latents": np.full((400, 3), np.nan)}, "finite"),
        ({"factor_names": ["a"]}, "3 names, one per factor, not 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(given, message):
    with pytest.raises(DemixError, match=message) as caught:
        fit_page(**fit(**given))
    assert "\n" not in str(caught.value)
    assert ". " not in str(caught.value)
