"""Whatever was planted in a folder of results, nothing outside it is removed or written."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from alarm import within
from demix import DemixError
from demix.papers.experiments import EXPERIMENTS, experiment_named
from demix.papers.reizinger2024.photographs import about_features
from demix.papers.runner.reproduce import reproduce, write_tables
from demix.papers.runner.scales import scale_named
from demix.papers.runner.store import Board, Store, remove_boards
from demix.report.blocks import Page, write_page

TABLE, SMOKE = experiment_named("clica-table1"), scale_named("smoke")
RECORD = {"experiment": "clica-table1", "row": 1, "seed": 0, "scale": "smoke", "model": "identity"}
SWEEP = f"{1:032x}"
RESULTS = Path(__file__).parents[3] / "results"


@pytest.fixture(autouse=True)
def in_time():
    """End a test that waits for a pipe."""
    with within(10):
        yield


@pytest.fixture
def victim(tmp_path):
    """A folder of somebody else's."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    return folder


@pytest.fixture
def out(tmp_path):
    """A folder of results that holds one finished job, and what was kept of others."""
    folder = tmp_path / "out"
    (folder / "unfinished" / "2-0-supervised").mkdir(parents=True)
    (folder / "results.json").write_text(json.dumps([RECORD]))
    return folder


def snapshot(folder):
    return {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}


@pytest.mark.parametrize(
    "change",
    [
        {"model": "x/../../../victim"},
        {"model": "/../../../victim"},
        {"model": "trained"},
        {"model": ["identity"]},
        {"model": None},
        {"row": "x/../../../victim"},
        {"row": "1"},
        {"row": 1.0},
        {"row": True},
        {"row": 13},
        {"row": [1]},
        {"row": 3},  # which has no such model
        {"seed": "0/../../../victim/x"},
        {"seed": "0"},
        {"seed": 0.0},
        {"seed": False},
        {"seed": -1},
        {"seed": 2**40},
    ],
)
def test_a_record_of_no_job_is_refused_before_anything_is_removed(tmp_path, out, victim, change):
    # Folders that old names would have led through.
    for name in ("1-0-x", "1-0-", "x", "1-0"):
        (out / "unfinished" / name).mkdir()
    (out / "results.json").write_text(json.dumps([RECORD, RECORD | change]))
    before = snapshot(tmp_path)
    with pytest.raises(DemixError, match=r"^Expected results of jobs .*, but found row .*\.$"):
        Store(out, TABLE, SMOKE)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_numbers_that_could_not_be_written_again_are_refused_at_once(out, number):
    raw = json.dumps([RECORD | {"r2": 0.123}]).replace("0.123", number)
    (out / "results.json").write_text(raw)
    with pytest.raises(DemixError, match=r"is not a list of demix results \(Out of range float"):
        Store(out, TABLE, SMOKE)


@pytest.mark.parametrize(
    "path", sorted(RESULTS.glob("*/results.json")), ids=lambda p: p.parent.name
)
def test_results_of_real_runs_are_taken(tmp_path, path):
    shutil.copy(path, tmp_path)
    records = json.loads(path.read_text())
    store = Store(tmp_path, EXPERIMENTS[records[0]["experiment"]], scale_named("laptop"))
    assert store.records == records


def test_what_was_kept_of_a_finished_job_is_removed_and_nothing_else(out):
    (out / "unfinished" / "1-0-identity").mkdir()
    Store(out, TABLE, SMOKE)
    assert [path.name for path in (out / "unfinished").iterdir()] == ["2-0-supervised"]


def pipe(file):
    os.mkfifo(file)


def folder(file):
    file.mkdir()


def huge(file):
    file.write_text(json.dumps([RECORD]) + " " * 2**24)


@pytest.mark.parametrize("plant", [pipe, folder, huge])
def test_results_that_are_no_file_or_too_large_end_in_a_sentence(out, plant):
    store = Store(out, TABLE, SMOKE)
    (out / "results.json").unlink()
    plant(out / "results.json")
    with pytest.raises(DemixError, match=r"results\.json.*\.$"):
        Store(out, TABLE, SMOKE)
    # So does one that takes its place while jobs run.
    with pytest.raises(DemixError, match=r"is not a list of demix results .*\.$"):
        store.add(RECORD | {"row": 2, "model": "unsupervised"})


@pytest.mark.parametrize("kind", ["a link", "a file", "a pipe"])
def test_what_stands_in_the_place_of_unfinished_is_refused(tmp_path, out, victim, kind):
    store = Store(out, TABLE, SMOKE)
    shutil.rmtree(out / "unfinished")
    for name in ("1-0-identity", f"sweep-{SWEEP}", f"gone-sweep-{SWEEP}"):
        (victim / name).mkdir()
    plants = {"a link": lambda f: f.symlink_to(victim), "a file": Path.touch, "a pipe": os.mkfifo}
    plants[kind](out / "unfinished")
    before = snapshot(tmp_path)
    for act in (
        lambda: Store(out, TABLE, SMOKE),
        lambda: store.begin(2, 0, "unsupervised"),
        lambda: Board(store.unfinished, SWEEP),
        lambda: remove_boards(store.unfinished),
    ):
        with pytest.raises(
            DemixError, match=f"unfinished to be a folder of demix, but it is {kind}"
        ):
            act()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    "name", ["1-0-identity", "2-0-unsupervised", f"sweep-{SWEEP}", f"gone-sweep-{SWEEP}"]
)
def test_a_link_in_unfinished_leads_nowhere(out, victim, name):
    (victim / "checkpoint.safetensors").write_text("precious")
    before = snapshot(victim)
    (out / "unfinished" / name).symlink_to(victim)
    store = Store(out, TABLE, SMOKE)
    if name == "2-0-unsupervised":
        with pytest.raises(DemixError, match=f"{name} to be a folder of demix, but it is a link"):
            store.begin(2, 0, "unsupervised")
    board = Board(store.unfinished, SWEEP[::-1])
    store.add(RECORD | {"row": 2, "model": "unsupervised"})
    board.close()
    assert snapshot(victim) == before
    assert not board.folder.exists()


def told(board):
    note = board.note("1-0-identity")
    note(1, 60, {"loss": 0.5})
    return [*board.read()]


def test_a_note_is_written_through_no_link_and_into_no_pipe(tmp_path, victim):
    board, thesis = Board(tmp_path / "unfinished", SWEEP), victim / "thesis.tex"
    file = board.folder / "1-0-identity.json"
    for plant in (file.symlink_to, file.hardlink_to, lambda _: os.mkfifo(file)):
        plant(thesis)
        assert told(board) == []
        assert thesis.read_text() == "precious"
        board.wipe("1-0-identity")
        assert not os.path.lexists(file)
    assert told(board) == [("1-0-identity", 1, 60, {"loss": 0.5})]
    board.wipe("1-0-identity")
    file.mkdir()
    assert told(board) == []
    board.wipe("1-0-identity")  # which is no reason to end a sweep


@pytest.mark.parametrize("content", ["7", "[1, 2]", "[1, 2, 3]", '["1", 2, {}]', "{}", "[" * 10**5])
def test_a_note_that_is_none_is_not_read(tmp_path, content):
    board = Board(tmp_path / "unfinished", SWEEP)
    (board.folder / "1-0-identity.json").write_text(content)
    assert [*board.read()] == []


def test_a_shorter_note_takes_the_place_of_a_longer_one(tmp_path):
    board = Board(tmp_path / "unfinished", SWEEP)
    note = board.note("1-0-identity")
    note(10**9, 10**9, {"loss": 0.123456789})
    note.written = 0.0
    note(1, 60, {})
    assert [*board.read()] == [("1-0-identity", 1, 60, {})]


@pytest.mark.parametrize(
    "told",
    [
        {"seconds": [1]},
        {"seconds": {"trained": "long"}},
        {"seconds": {"trained": float("nan")}},
        {"seconds": {"trained": 10**400}},
        {"encoder": float("nan")},
        {"top1": 0.7},
        {"top1": {"share": 0.7}},
        {"top1": {"share": "0.7", "images": 10}},
    ],
)
def test_features_that_tell_nonsense_of_themselves_tell_nothing(tmp_path, told):
    good = {"encoder": "a net", "seconds": {"trained": 1.5}, "top1": {"share": 0.7, "images": 10}}
    (tmp_path / "about.json").write_text(json.dumps(good))
    assert about_features(tmp_path) == good
    (tmp_path / "about.json").write_text(json.dumps(good | told))
    assert about_features(tmp_path) == {}


def test_features_beside_a_pipe_tell_nothing(tmp_path):
    np.save(tmp_path / "trained.npy", np.zeros((2, 2)))
    os.mkfifo(tmp_path / "about.json")
    assert about_features(tmp_path) == {}


def test_a_job_is_recorded_once(out):
    store = Store(out, TABLE, SMOKE)
    store.add(RECORD | {"seconds": 1.0})
    assert store.records == [RECORD | {"seconds": 1.0}]
    (out / "results.json").write_text(json.dumps([RECORD, RECORD]))
    with pytest.raises(DemixError, match=r"Expected each job once in .*, but one is there twice"):
        Store(out, TABLE, SMOKE)


def test_records_are_read_while_the_folder_is_locked(tmp_path, monkeypatch):
    locked = []

    class Watched(Store):
        def __init__(self, *given) -> None:
            locked.append((tmp_path / ".demix.lock").exists())
            raise KeyError

    monkeypatch.setattr("demix.papers.runner.reproduce.Store", Watched)
    with pytest.raises(KeyError):
        reproduce(TABLE, tmp_path, rows=[1], scale=SMOKE)
    assert locked == [True]


@pytest.mark.parametrize(
    "change",
    [
        {"r2": [0.5] * 9},
        {"r2": "0.5"},  # times 100, a long one would fill memory
        {"seconds": {}},
        {"seconds": "1"},
        {"objective": "x" * 1001},
        {"accuracies": ["x", 0.5]},
        {"readouts": {"x": {"r2": [0.5, "x", 0.7]}}},
        {"mcc": [[]]},
        {"provenance": {"cores": "2 | <b>"}},
        {"provenance": {"cores": True}},
        {"provenance": {"commit": "[x](http://"}},
        {"provenance": [1]},
    ],
    ids=lambda change: str(change)[:60],
)
def test_values_that_no_job_writes_are_refused(out, change):
    (out / "results.json").write_text(json.dumps([RECORD | change]))
    with pytest.raises(DemixError, match="is not a list of demix results"):
        Store(out, TABLE, SMOKE)


@pytest.mark.parametrize("name", ["table.html", "table.md", "figure.svg", "figure.png"])
def test_tables_and_figures_of_others_beside_copied_results_stay(out, name):
    if name.startswith("figure"):  # a page of demix beside it does not make it ours
        write_page(Page("Table", "", []), out / "table.html")
    (out / name).write_bytes(b"\x89PNG <svg precious")
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        reproduce(TABLE, out, rows=[1], scale=SMOKE)
    assert (out / name).read_bytes() == b"\x89PNG <svg precious"


@pytest.mark.parametrize("start", ["My notes on\n\n", "#", "## Results\n\n"])
def test_notes_that_name_the_table_stay(out, start):
    notes = f"{start}# {TABLE.title} (smoke scale)\n\n| row |\n"
    (out / "table.md").write_text(notes)
    with pytest.raises(DemixError, match=r"table\.md holds something else"):
        reproduce(TABLE, out, rows=[1], scale=SMOKE)
    assert (out / "table.md").read_text() == notes


def test_a_table_of_others_that_came_while_jobs_ran_stays(tmp_path):
    records = json.loads((RESULTS / TABLE.name / "results.json").read_text())
    write_tables(TABLE, records, tmp_path)
    (tmp_path / "table.md").write_text("precious")
    with pytest.raises(DemixError, match=r"table\.md holds something else"):
        write_tables(TABLE, records, tmp_path)
    assert (tmp_path / "table.md").read_text() == "precious"


def test_nothing_of_others_in_unfinished_is_removed(out):
    kept = out / "unfinished"
    notes = ["sweep-a/1-0-x.json", "gone-x/1-0-x.json", f"sweep-{SWEEP}0/1-0-x.json"]
    for name in [*notes, "1-0-identity/checkpoint-of-mine.safetensors", f"sweep-{SWEEP}/1-2-3"]:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_text("precious")
    Board(kept, SWEEP[::-1]).close()
    Store(out, TABLE, SMOKE)
    assert sum(file.is_file() for file in kept.rglob("*")) == 5


def test_files_of_others_under_names_of_demix_in_unfinished_stay(out):
    kept = out / "unfinished"
    board = f"sweep-{SWEEP}"
    theirs = {
        "1-0-identity/checkpoint.safetensors": "precious",
        "1-0-identity/checkpoint-1.previous.safetensors": '{"__metadata__":{}}',
        f"{board}/1-0-identity.json": '{"precious": 1}',
        f"{board}/2-0-supervised.json": "[1, 2, 3]",
    }
    ours = {f"{board}/3-0-supervised.json": '[1, 60, {"loss": 0.5}]', f"{board}/4-0-x.json": ""}
    for name, content in (theirs | ours).items():
        (kept / name).parent.mkdir(exist_ok=True)
        (kept / name).write_text(content)
    Store(out, TABLE, SMOKE)
    remove_boards(kept)
    found = {file.name: file.read_text() for file in kept.rglob("*") if file.is_file()}
    assert found == {Path(name).name: content for name, content in theirs.items()}
