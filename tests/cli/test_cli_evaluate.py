"""`demix evaluate` scores files of any model, and refuses what it cannot score."""

from __future__ import annotations

import io
import json
import re

import numpy as np
import pytest

SCORES = {"affine_r2", "orthogonal_r2", "mean_correlation", "mean_correlation_spearman"}
OTHERS = {"dci_completeness", "mutual_information_gap", "infomec_modularity", "factor_vae_score"}


def arrays(samples: int = 300):
    """Three factors, and latents that are the same in another order, one of them turned round."""
    factors = np.random.default_rng(0).uniform(size=(samples, 3))
    return factors[:, [2, 0, 1]] * [1, -2, 3], factors


def save(folder, latents, factors):
    """Write two arrays, or raw bytes in the place of one, and return the options for them."""
    options = []
    for name, content in (("latents", latents), ("factors", factors)):
        path = folder / f"{name}.npy"
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            np.save(path, content, allow_pickle=True)
        options += [f"--{name}", path]
    return options


@pytest.fixture(scope="module")
def evaluated(demix, tmp_path_factory):
    """What the command says and writes into a folder whose name is long and looks like markup."""
    folder = tmp_path_factory.mktemp("evaluate")
    out = folder / "a rather long name, longer than any line of a terminal is [red]"
    done = demix.run("evaluate", *save(folder, *arrays()), "--out", out)
    assert done.returncode == 0, done
    return out, done


def test_scores_and_a_report_are_written(evaluated):
    out, _ = evaluated
    assert {path.name for path in out.iterdir()} == {"scores.json", "report.html"}
    written = json.loads((out / "scores.json").read_text(encoding="utf-8"))
    assert set(written) >= {"r2", "mcc", "samples", "scores", "provenance"}
    assert set(written["scores"]) >= SCORES | OTHERS
    assert written["samples"] == 300
    assert written["categorical"] == []
    assert written["r2"] == pytest.approx(1)
    assert written["mcc"] == pytest.approx(1)
    assert written["scores"]["mean_correlation"]["assignment"] == [1, 2, 0]
    assert written["scores"]["orthogonal_r2"]["value"] < 0.95
    assert all(written["scores"][name]["baseline"] < 0.2 for name in SCORES)
    for score in written["scores"].values():
        assert score["low"] <= score["value"] <= score["high"]
        assert score["factors"] == ["factor 1", "factor 2", "factor 3"]


def test_a_table_is_shown_and_where_the_report_is(evaluated):
    out, done = evaluated
    for label in ("affine R²", "MCC (Spearman)", "MIG", "InfoCompactness", "FactorVAE score"):
        assert label in done.stdout
    assert "leaves open" in done.stdout
    assert f"Wrote {out}/scores.json and report.html\n" in done.stdout
    assert done.stderr == ""


def test_the_report_has_its_figures(evaluated):
    page = (evaluated[0] / "report.html").read_text(encoding="utf-8")
    # Factors, correlation before and after; there was no training.
    assert len(re.findall(r'<div class="plot(?=[ "])', page)) == 3
    assert "100.00 %" in page


def test_without_out_nothing_is_written_and_json_is_all_that_is_said(demix, tmp_path):
    latents, factors = arrays()
    options = save(tmp_path, latents[:, :1].astype("float16"), factors)
    done = demix.run_briefly("evaluate", *options, "--json")
    doubt = "DCI completeness (a latent for each factor, but here 1 latents for 3 factors)"
    said = f"warning  Scores that cannot be trusted here: {doubt}.\n"
    assert (done.returncode, done.stderr) == (0, said)
    scores = json.loads(done.stdout)["scores"]
    assert scores["affine_r2"]["trusted"] is True
    assert scores["dci_completeness"]["trusted"] is False
    assert "1 latents for 3 factors" in scores["dci_completeness"]["doubts"]
    # One latent cannot be rotated onto three factors.
    assert set(scores) >= SCORES - {"orthogonal_r2"}
    assert "orthogonal_r2" not in scores
    assert scores["mean_correlation"]["assignment"] == [-1, -1, 0]
    assert {path.name for path in tmp_path.iterdir()} == {"latents.npy", "factors.npy"}


def series(folder, rows: int = 600):
    """Latents and factors that drift and share nothing."""
    drift = np.cumsum(np.random.default_rng(0).normal(size=(2, rows, 1)), axis=1)
    return save(folder, *drift)


def test_rows_in_time_order_are_scored_in_blocks(demix, tmp_path):
    options = series(tmp_path)
    done = demix.run("evaluate", *options, "--blocks", "auto", "--out", tmp_path / "out")
    assert done.returncode == 0, done
    written = json.loads((tmp_path / "out/scores.json").read_text(encoding="utf-8"))
    assert 1 < written["effective_rows"] < 60
    worth = f"About {written['effective_rows']:.0f} independent rows of 600."
    assert worth in done.stdout
    assert worth in (tmp_path / "out/report.html").read_text(encoding="utf-8")
    assert written["provenance"]["blocks"] == "auto"
    r2 = written["scores"]["affine_r2"]
    assert r2["low"] <= r2["baseline"] <= r2["high"]
    assert r2["trusted"] is False
    assert "alike" not in done.stderr


def test_blocks_are_a_length_or_a_file_and_asked_for_if_rows_are_alike(demix, tmp_path):
    options = [*series(tmp_path, 100), "--json"]
    (tmp_path / "films.txt").write_text("\n".join(f"film {i // 10}" for i in range(100)))
    assert "--blocks auto" in demix.run_briefly("evaluate", *options).stderr
    worth = []
    for blocks in ("10", tmp_path / "films.txt"):
        done = demix.run_briefly("evaluate", *options, "--blocks", blocks)
        assert done.returncode == 0, done
        worth.append(json.loads(done.stdout)["effective_rows"])
    assert worth[0] != worth[1]
    for blocks, words in (
        ("30", "a length from 1 to 25, of which 100 rows hold 4, but got 30"),
        (tmp_path / "none.txt", "none.txt"),
    ):
        done = demix.run("evaluate", *options, "--blocks", blocks, "--out", tmp_path / "out")
        assert done.returncode == 2
        assert words in done.stderr
        assert not (tmp_path / "out").exists()


def test_factors_may_be_text(demix, tmp_path):
    latents, factors = arrays()
    shape = np.array(["cube", "ball", "cone"])[(3 * factors[:, 2]).astype(int)]
    np.save(tmp_path / "Z.npy", latents)
    lines = [f"{x},{y},{kind}" for (x, y, _), kind in zip(factors, shape, strict=True)]
    (tmp_path / "F.csv").write_text("\n".join(["x,y,shape", *lines]))
    files = ["--latents", tmp_path / "Z.npy", "--factors", tmp_path / "F.csv"]
    done = demix.run_briefly("evaluate", *files, "--out", tmp_path / "out", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["categorical"] == ["shape"]
    assert found["scores"]["affine_r2"]["factors"] == ["x", "y"]
    assert found["scores"]["linear_accuracy"]["factors"] == ["shape"]
    assert found["accuracy"] > 0.9
    assert found["r2"] == pytest.approx(1)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "2 continuous and 1 categorical factors" in page


def test_factors_that_are_all_categories(demix, tmp_path):
    latents, factors = arrays()
    options = save(tmp_path, latents, (4 * factors[:, :2]).astype(int))
    done = demix.run_briefly("evaluate", *options, "--json", "--out", tmp_path / "out")
    found = json.loads(done.stdout)
    assert found["r2"] is None
    assert found["accuracy"] > 0.9
    assert "linear accuracy" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_which_factors_are_categories_can_be_said(demix, tmp_path):
    latents, factors = arrays(60)
    options = save(tmp_path, latents, (4 * factors).astype(int))
    command = ["evaluate", *options, "--json", "--categorical"]
    found = json.loads(demix.run_briefly(*command, "1").stdout)
    assert found["categorical"] == ["factor 2"]
    assert found["scores"]["affine_r2"]["factors"] == ["factor 1", "factor 3"]
    found = json.loads(demix.run_briefly(*command, "none").stdout)
    assert found["accuracy"] is None
    told = demix.refusal("evaluate", *options, "--categorical", "0,shape")
    assert "their numbers from 0, or none, but got 'shape'" in told


def archive(**content) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **content)
    return buffer.getvalue()


def spoilt(value: float):
    latents, _ = arrays()
    latents[7, 1] = value
    return latents


LATENTS, FACTORS = arrays()


@pytest.mark.parametrize(
    ("latents", "factors", "words"),
    [
        (spoilt(np.nan), FACTORS, "latents must be finite, but 1 of its 300 rows"),
        (LATENTS, spoilt(-np.inf), "factors must be finite, but 1 of its 300 rows"),
        (LATENTS[:, 0], FACTORS, "has shape (300,); reshape a single dimension"),
        (LATENTS[:9], FACTORS[:9], "needs at least 10 rows, but got 9"),
        (LATENTS[:200], FACTORS, "must have one row per sample, but have 200 and 300"),
        (LATENTS, FACTORS * [1, 0, 1], "column 1 of factors (counted from 0) is constant"),
        (np.array([{}, None]), FACTORS, "pickled"),
        (b"not an array at all", FACTORS, "Expected a numpy array (.npy), as its name says"),
        (b"PK\x03\x04 but no archive", FACTORS, "looks like a zip archive (.npz)"),
        (archive(z=LATENTS), FACTORS, "looks like a zip archive (.npz)"),
        (LATENTS, None, "factors.npy does not exist"),
    ],
    ids=[
        "NaN",
        "infinity",
        "vector",
        "few samples",
        "lengths",
        "constant factor",
        "pickled objects",
        "text",
        "broken archive",
        "archive",
        "missing file",
    ],
)
def test_what_cannot_be_scored_is_refused_and_nothing_is_written(
    demix, tmp_path, latents, factors, words
):
    options = save(tmp_path, latents, factors)
    assert words in demix.refusal("evaluate", *options, "--out", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_of_something_else_stays_as_it_is(demix, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "report.html").write_text("mine")
    told = demix.refusal("evaluate", *save(tmp_path, *arrays()), "--out", folder)
    assert "it is not empty and has no scores.json" in told
    assert (folder / "report.html").read_text() == "mine"


def test_a_users_own_scores_are_not_overwritten(demix, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "Z.npy", rng.normal(size=(50, 2)))
    out = tmp_path / "out"
    out.mkdir()
    (out / "scores.json").write_text('{"mine": 1}')
    files = ["--latents", tmp_path / "Z.npy", "--factors", tmp_path / "Z.npy"]
    assert "holds something else" in demix.refusal("evaluate", *files, "--out", out)
    assert (out / "scores.json").read_text() == '{"mine": 1}'
