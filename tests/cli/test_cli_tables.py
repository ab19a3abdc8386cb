"""From a table as other programs write it to a report and a check-up, without an edit."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

ROWS = 700
COLUMNS = np.random.default_rng(0).normal(size=(ROWS, 4)).cumsum(axis=0) * [1, 10, 100, 1000]
START = datetime(2024, 12, 31, 13, 40)


def lines(separator, header, clock, number) -> str:
    """Return the columns as text, with the time of each row first."""
    moments = [(START + row * timedelta(minutes=10)).strftime(clock) for row in range(ROWS)]
    cells = [[at, *map(number, row)] for at, row in zip(moments, COLUMNS.tolist(), strict=True)]
    return "\n".join(separator.join(row) for row in [header, *cells]) + "\n"


def comma(number: float) -> str:
    return f"{number:.4f}".replace(".", ",")


def german(folder: Path) -> tuple[Path, str, str]:
    text = lines(";", ["Zeit", "Höhe", "Druck", "Wind", "Last"], "%d.%m.%Y %H:%M", comma)
    path = folder / "messung.csv"
    path.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    return path, "Zeit", "';', decimal comma"


def american(folder: Path) -> tuple[Path, str, str]:
    header = ["Timestamp", "Level", "Flow", "Load", "Price"]
    text = lines(",", header, "%m/%d/%Y %I:%M %p", lambda x: f'"{x:,.3f}"')
    path = folder / "export.csv"
    path.write_text(text)
    return path, "Timestamp", "',', marks of thousands"


def tabbed(folder: Path) -> tuple[Path, str, str]:
    path = folder / "log.tsv"
    path.write_text(lines("\t", ["t", "a", "b", "c", "d"], "%Y-%m-%dT%H:%M:%S", "{:.5e}".format))
    return path, "t", "tab"


def french(folder: Path) -> tuple[Path, str, str]:
    header = ["Date", "Température", "Débit", "Énergie", "Coût"]
    path = folder / "relevé.csv"
    path.write_bytes(lines(";", header, "%d/%m/%Y %H:%M:%S", comma).encode("latin-1"))
    return path, "Date", "';', decimal comma, Windows-1252"


def packed(folder: Path) -> tuple[Path, str, str]:
    path = folder / "daily.csv.gz"
    text = lines(",", ["time", "x", "y", "z", "w"], "%Y-%m-%d %H:%M:%S+00:00", repr)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    return path, "time", "','"


@pytest.mark.parametrize("write", [german, american, tabbed, french, packed])
def test_two_commands_lead_from_a_table_to_a_check_up(demix, tmp_path, write):
    path, column, form = write(tmp_path)
    model, check = tmp_path / "model", tmp_path / "check"
    fit = ["fit", path, "--time-column", column, "--n-latents", 2, "--steps", 30, "--out", model]
    done = demix.run(*fit)
    assert done.returncode == 0, done.stderr
    read = f"{ROWS} rows, 4 columns, {form}, time in column '{column}', every 10 min"
    assert read in done.stderr.splitlines()
    done = demix.run("checkup", model, path, "--no-refits", "--out", check, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["checks"]
    assert (model / "report.html").exists()
    assert (check / "checkup.html").exists()
    about = json.loads((model / "model.json").read_text(encoding="utf-8"))["about"]
    assert len(about["feature_names"]) == 4
    assert column not in about["feature_names"]
    assert about["parameters"]["recipe"]["steps"] == 30
    written = np.load(model / "latents.npy")
    assert demix.run("transform", model, path, "--out", tmp_path / "z.npy").returncode == 0
    assert np.array_equal(np.load(tmp_path / "z.npy"), written)


def test_labels_are_a_column_of_the_table(demix, tmp_path):
    path, model = tmp_path / "x.csv.bz2", tmp_path / "model"
    rows = [f"{a:.4f},{b:.4f},{'dry' if a < 0 else 'wet'}" for a, b in COLUMNS[:, :2]]
    path.write_bytes(bz2.compress("\n".join(["a,b,state", *rows]).encode()))
    fit = ["fit", path, "--label-column", "state", "--n-latents", 1, "--steps", 30, "--out", model]
    done = demix.run(*fit, "--validation", 0.4, "--components", 1, "--threads", 1, "--json")
    assert done.returncode == 0, done.stderr
    assert "700 rows, 2 columns, ',', labels in column 'state'" in done.stderr
    given = json.loads(done.stdout)["parameters"]
    assert (given["validation"], given["encoder"]) == (0.4, {"components": 1})
    check = ["checkup", model, path, "--no-refits", "--out", tmp_path / "check"]
    assert "give --labels or --label-column" in demix.refusal(*check)
    done = demix.run(*check, "--label-column", "state")
    assert done.returncode == 0, done.stderr


def test_a_gap_in_time_is_told(demix, tmp_path):
    path, column, _ = tabbed(tmp_path)
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([first, *rest[:50], *rest[60:]]))
    fit = ["fit", path, "--time-column", column, "--steps", 5, "--out", tmp_path / "model"]
    done = demix.run(*fit)
    assert done.returncode == 0, done.stderr
    assert "mostly every 10 min" in done.stderr
    assert "1 of 689 steps of time" in done.stderr
    assert "are not the usual 10 min, the first of them after row 49" in done.stderr


def test_a_consensus_takes_a_table_and_settings_as_a_fit_does(demix, tmp_path):
    path, column, form = german(tmp_path)
    agree = ["consensus", path, "--time-column", column, "--seeds", 2, "--steps", 5]
    done = demix.run(*agree, "--out", tmp_path / "agreed")
    assert done.returncode == 0, done.stderr
    read = f"{ROWS} rows, 4 columns, {form}, time in column '{column}', every 10 min"
    assert done.stderr.splitlines().count(read) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--time-column", "when"], "Expected one column 'when' in"),
        (["--label-column", "a", "--lag", 2], "got --lag and --label-column; choose one"),
        (["--steps", 0], "steps of a recipe must be a whole number of at least 1, but got 0"),
        (["--validation", 1], "validation must be a number in [0, 1), but got 1.0"),
        (["--validation", 0.5, "--instances"], "leave --validation out"),
        (["--device", "abacus"], "a device that torch can use here"),
        (["--components", 9], "components must be between 1 and the 4 dimensions"),
        (["--encoder", "abacus"], "abacus"),
    ],
)
def test_settings_that_do_not_fit_are_refused(demix, tmp_path, options, words):
    path, column, _ = tabbed(tmp_path)
    time = [] if "--time-column" in options else ["--time-column", column]
    assert words in demix.refusal("fit", path, *time, *options, "--out", tmp_path / "model")
    assert not (tmp_path / "model").exists()
