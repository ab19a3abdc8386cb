"""The fault suite in short: the same series as of `make faults`, a few faults each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from command import BRIEF_ROWS, FEW_DRAWS
from demix import DemixError
from faults import __main__ as suite
from faults import damage, disk, limits, oddities, processes, strangers
from faults.bench import Bench
from faults.kills import kill
from faults.outcome import Outcome
from faults.table import table

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="limits are set by what /proc says"
)


@pytest.fixture(scope="module")
def bench(demix, tmp_path_factory) -> Iterator[Bench]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processes, "CODE", FEW_DRAWS + BRIEF_ROWS + processes.CODE)
        yield Bench(tmp_path_factory.mktemp("faults"), processes.Processes(demix), seed=0)


def check(outcome: Outcome, *, tried: int, refused: int | None = None) -> None:
    assert outcome.problems == []
    assert outcome.lost == 0
    assert outcome.tried == tried
    if refused is not None:
        assert outcome.refused == refused


# A tenth of the usual steps leaves time for a few checkpoints.
SHORTER = """
from demix.estimators.base import Demixer
Demixer._most_steps = 100
"""


@pytest.mark.parametrize("name", ["demix fit", "demix render sprites"])
def test_kills_cost_nothing_that_was_finished(bench, name, monkeypatch):
    monkeypatch.setattr(processes, "CODE", SHORTER + processes.CODE)
    check(kill(bench.works[name], 1, bench), tried=1)


@pytest.mark.parametrize("name", ["demix transform", "demix render sprites"])
def test_without_room_there_is_a_sentence_and_later_the_same_bits(bench, name):
    check(disk.limited(bench.works[name], 1, bench), tried=1, refused=1)


NAMES = ["demix transform", "demix export", "demix evaluate", "demix fit", "demix reproduce"]


@pytest.mark.parametrize("name", [*NAMES, "demix render sprites"])
def test_a_folder_that_may_not_be_written_to_is_told(bench, name):
    check(disk.read_only(bench.works[name], bench), tried=1, refused=1)


def test_no_damage_of_a_model_goes_unnoticed(bench):
    check(damage.model(16, bench), tried=2 * 4 * 16)


def test_every_damage_of_a_rendered_folder_is_mended_or_left_alone(bench):
    check(damage.rendered(1, bench), tried=4 * 4)


@pytest.mark.parametrize(
    "name", ["demix transform", "demix fit", "demix render 3dident", "demix reproduce"]
)
def test_a_limit_on_memory_is_told_before_the_work_starts(bench, name, monkeypatch):
    # It is refused whatever the result would be.
    monkeypatch.setattr(bench, "undisturbed", lambda work: None)
    check(limits.memory(bench.works[name], [8], bench), tried=1, refused=1)


@pytest.mark.parametrize("name", ["demix transform", "demix evaluate", "demix render sprites"])
def test_what_is_planted_in_its_place_is_left_alone(bench, name):
    outcome = strangers.traps(bench.works[name], bench)
    check(outcome, tried=outcome.tried)
    assert outcome.tried >= 3


@pytest.mark.parametrize("name", ["demix evaluate", "demix render sprites", "demix reproduce"])
def test_files_of_others_beside_a_result_stay(bench, name):
    outcome = strangers.beside(bench.works[name], bench)
    check(outcome, tried=outcome.tried, refused=outcome.tried)
    assert outcome.tried >= 2


def test_a_finished_result_stays_unless_it_is_to_be_replaced(bench):
    check(strangers.again(bench.works["demix evaluate"], bench), tried=2, refused=1)


def test_no_input_is_replaced(bench):
    check(strangers.onto_inputs(bench), tried=8, refused=8)


def test_no_pipe_is_waited_for(bench):
    check(strangers.pipes(bench), tried=32, refused=32)


def test_data_that_change_during_a_fit_end_it_with_a_sentence(bench):
    check(strangers.changes(2, bench), tried=2)


def test_nothing_is_written_through_a_link_that_takes_the_place_of_the_output(bench):
    check(strangers.exchanged(2, bench), tried=2)


def test_blocked_signals_keep_no_command_from_its_end(bench):
    check(limits.signals(bench.works["demix reproduce, 2 processes"], bench), tried=1)


def test_files_of_others_under_names_of_demix_stay(bench):
    check(strangers.impostors(bench), tried=2, refused=2)


def test_odd_names_options_and_calls_are_told(bench, monkeypatch):
    monkeypatch.setattr(oddities, "_NAMES", ("[/red]x", "\x1b[31mx", "x" * 300))
    monkeypatch.setattr(oddities, "_WORDS", ("9" * 400,))
    check(oddities.names(bench), tried=3, refused=1)
    outcome = oddities.options(bench)
    check(outcome, tried=len(oddities._OPTIONS), refused=outcome.refused)
    assert outcome.refused >= outcome.tried - 1
    outcome = oddities.calls(bench)
    check(outcome, tried=outcome.tried, refused=outcome.tried)


def test_settings_and_folders_of_strangers_change_nothing(bench, monkeypatch):
    monkeypatch.setattr(oddities, "_SETTINGS", (("MPLBACKEND", "module://evil"),))
    check(oddities.settings(bench), tried=3, refused=0)


def test_results_of_other_data_are_refused(bench):
    check(strangers.other_data(bench), tried=1, refused=1)


def test_what_goes_wrong_is_counted(bench):
    outcome = Outcome("a fault", "some work", tried=3)
    outcome.refusal(bench.processes.run("list"))
    assert outcome.wrong == 1
    outcome.refusal(bench.processes.run("reproduce", "nothing"), "Unknown experiment")
    assert (outcome.refused, outcome.wrong) == (2, 1)
    about = {"cores": 2, "commit": "0123456789abcdef", "command": "python -m faults"}
    shown = table({"series": [outcome.to_dict()], "seconds": 90, "provenance": about})
    assert "| a fault | some work | 3 | 2 | 0 | 1 |" in shown
    assert "3 faults, 0 of them kills; finished work lost: 0; wrong results: 1." in shown


@pytest.mark.parametrize("name", ["faults.json", "table.md"])
def test_files_of_others_stay_where_the_suite_writes(tmp_path, monkeypatch, name):
    (tmp_path / name).write_text("precious")
    monkeypatch.setattr("sys.argv", ["faults", "--out", str(tmp_path)])
    monkeypatch.setattr(suite, "series", lambda *_: [])
    with pytest.raises(DemixError, match=f"{name} holds something else"):
        suite.main()
    assert (tmp_path / name).read_text() == "precious"


def test_files_that_come_while_the_suite_runs_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["faults", "--out", str(tmp_path)])
    monkeypatch.setattr(suite, "serving", nullcontext)  # nothing is run
    monkeypatch.setattr(suite, "series", lambda *_: (tmp_path / "table.md").write_text("x") * [])
    with pytest.raises(DemixError, match="a file that was written meanwhile"):
        suite.main()
    assert (tmp_path / "table.md").read_text() == "x"
