"""A training that ranks share is that of one process, and survives the death of a rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "train_cases.py"


RANKS = 3


@pytest.fixture(scope="module")
def found(ranks_program, tmp_path_factory) -> dict:
    """What trainings on three ranks have shown, and the folder they wrote to."""
    folder = tmp_path_factory.mktemp("ranks")
    ranks_program(PROGRAM, RANKS, folder)
    told = json.loads((folder / "found.json").read_text())
    return told | {"folder": folder}


def test_every_step_is_that_of_one_process(found):
    for name in found["cases"]:
        case = found[name]
        # Adam divides small gradients by their size, rounding included.
        assert case["gap"] < 1e-8, name
        assert case["best"] == case["best alone"] == 2
        for ours, theirs in zip(case["history"], case["alone"], strict=True):
            assert ours == pytest.approx(theirs, rel=1e-8)
            assert ours[1] == pytest.approx(theirs[1], abs=1e-10)


def test_all_ranks_have_the_same_weights_and_history_and_one_has_the_files(found):
    for rank in range(RANKS):
        told = json.loads((found["folder"] / f"found-{rank}.json").read_text())
        for name in found["cases"]:
            assert told[name]["same"]
            assert told[name]["history"] == found[name]["history"]
        kept = (found["folder"] / str(rank)).iterdir()
        files = {file.stem.removesuffix(".previous") for file in kept}
        assert files == (set() if rank else set(found["cases"]))


def test_a_rank_that_dies_ends_the_training_with_a_sentence(found):
    assert found["codes"] == [0, 0, -9]
    for rank in range(RANKS - 1):
        said = (found["folder"] / f"lost-{rank}.txt").read_text()
        assert said == (
            f"Rank {rank} of {RANKS} has lost another rank, which was killed or failed; start the "
            "same command again to continue from its last checkpoint."
        )


def test_a_training_that_lost_a_rank_goes_on_to_the_same_bits(found):
    resumed, name = found["resumed"], found["killed"]
    # After the first or the second of four evaluations, as keeping one costs.
    assert resumed["first"] in (3, 5)
    assert resumed["gap"] == 0
    assert resumed["history"] == found[name]["history"]


def test_trainings_that_ranks_cannot_share_are_refused(found):
    other, unknown, norms = found["refused"]
    assert "but rank 1 has another than rank 0" in other
    assert "derive it from demix.losses.objective.Objective" in unknown
    assert "batch_norm=False" in norms
