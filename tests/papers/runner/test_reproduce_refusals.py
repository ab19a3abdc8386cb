"""What is not demix's own is refused and stays as it is."""

from __future__ import annotations

import json

import pytest

from demix import DemixError
from demix.papers.experiments import experiment_named
from demix.papers.runner.reproduce import reproduce
from demix.papers.runner.scales import scale_named
from demix.papers.runner.store import Store

TABLE = experiment_named("clica-table1")
RECORD = {"experiment": "clica-table1", "row": 1, "seed": 0, "scale": "smoke", "model": "identity"}


def run(folder, **settings):
    return reproduce(TABLE, folder, **{"rows": [2], "scale": scale_named("smoke"), **settings})


def snapshot(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("thesis.tex", "mine", "is not empty and has no results.json"),
        ("results.json", "", "is not a list of demix results"),
        ("results.json", '[{"row": 1', "is not a list of demix results"),
        ("results.json", "{}", "is not a list of demix results"),
        ("results.json", '"mine"', "is not a list of demix results"),
        ("results.json", '""', "is not a list of demix results"),
        ("results.json", "[1, 2]", "is not a list of demix results"),
        ("results.json", '[{"score": 1}]', "is not a list of demix results"),
        ("results.json", "\ufeff[]", "is not a list of demix results"),
        (
            "results.json",
            json.dumps([RECORD | {"experiment": "clica-table2"}]),
            "holds results of clica-table2 at smoke scale, not of clica-table1",
        ),
    ],
)
def test_a_folder_of_something_else_is_refused_and_stays_as_it_is(tmp_path, name, content, words):
    (tmp_path / name).write_text(content, encoding="utf-8")
    before = snapshot(tmp_path)
    with pytest.raises(DemixError, match=words):
        run(tmp_path)
    assert snapshot(tmp_path) == before


def test_results_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "results.json").write_bytes(b"\x80\x81\xff")
    with pytest.raises(DemixError, match="is not a list of demix results"):
        run(tmp_path)


@pytest.mark.parametrize("below", ["", "folder", "folder/deeper"])
def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path, below):
    (tmp_path / "file").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(DemixError, match="file"):
        run(tmp_path / "file" / below)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("rows", [[0], [1, 13], [-1]])
def test_an_unknown_row_is_refused_before_anything_is_written(tmp_path, rows):
    with pytest.raises(DemixError, match=rf"has rows 1 to 12, but got {rows[-1]}\."):
        run(tmp_path / "new", rows=rows)
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize("seed", [-1, 2**32, 2**40, 10**20])
def test_a_seed_that_repeats_another_is_refused_before_anything_is_written(tmp_path, seed):
    with pytest.raises(DemixError, match=f"from 0 to .* but got {seed}"):
        run(tmp_path / "new", seeds=[0, seed])
    assert snapshot(tmp_path) == {}


def test_finished_jobs_of_two_runs_into_one_folder_are_all_kept(tmp_path):
    first, second = (
        Store(tmp_path, TABLE, scale_named("smoke")),
        Store(tmp_path, TABLE, scale_named("smoke")),
    )
    for row, store in enumerate([first, second, first], start=1):
        store.add(RECORD | {"row": row, "model": "unsupervised"})
    assert [record["row"] for record in Store(tmp_path, TABLE, scale_named("smoke")).records] == [
        1,
        2,
        3,
    ]


def test_the_command_says_so_in_one_sentence(demix, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    before = snapshot(tmp_path)
    told = demix.refusal("reproduce", "clica-table1", "--scale", "smoke", "--out", tmp_path)
    assert f"{tmp_path} holds something else" in told
    assert snapshot(tmp_path) == before


def test_results_of_another_scale_are_refused(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps([{**RECORD, "scale": "laptop"}]))
    with pytest.raises(DemixError, match=r"clica-table1 at laptop scale, not of .* smoke scale"):
        run(tmp_path)


def test_records_that_make_no_table_are_refused_before_jobs_are_run(demix, tmp_path):
    record = {"experiment": "clica-table1", "row": 1, "seed": 0, "scale": "smoke"}
    record |= {"model": "identity"}
    (tmp_path / "results.json").write_text(json.dumps([record]))
    scale = ["--rows", 2, "--scale", "smoke"]
    told = demix.refusal("reproduce", "clica-table1", *scale, "--out", tmp_path)
    assert "make no table (KeyError" in told
    assert json.loads((tmp_path / "results.json").read_text()) == [record]
