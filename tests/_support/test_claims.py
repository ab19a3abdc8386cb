"""What somebody else puts into a place that a command has claimed stays."""

from __future__ import annotations

import os

import pytest

from demix._support.errors import DemixError
from demix._support.files import claiming, new_array, put_new, write_atomic


def test_what_comes_to_a_claimed_place_stays(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("of before")
    with claiming(tmp_path):
        for place in (old, new):
            write_atomic(place, "ours")
            write_atomic(place, "ours again")
            (tmp_path / "theirs").write_text("of others")
            (tmp_path / "theirs").replace(place)
            with pytest.raises(DemixError, match="a file that was written meanwhile"):
                write_atomic(place, "ours")
            assert place.read_text() == "of others"
    assert write_atomic(new, "ours").read_text() == "ours"


def test_a_link_to_a_folder_that_comes_to_a_claimed_place_is_not_followed(tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    for folder in (out / "seed-1", victim):
        folder.mkdir(parents=True)

    def plant():
        (out / "seed-1").rename(tmp_path / "away")
        (out / "seed-1").symlink_to(victim)

    with claiming(out):
        with (
            pytest.raises(DemixError, match=r"seed-1 to be free .* a link; remove it"),
            new_array(out / "seed-1" / "z.npy", (1, 1)),
        ):
            plant()
        for place in ("z.npy", "deeper/z.npy"):
            with pytest.raises(DemixError, match=r"seed-1 to be free .* a link; remove it"):
                write_atomic(out / "seed-1" / place, "ours")
    assert list(victim.iterdir()) == []


@pytest.mark.parametrize("place", ["out", "out/z.npy"])
@pytest.mark.parametrize("link", [True, False])
def test_a_folder_that_is_exchanged_while_it_is_claimed_is_left_alone(link, place, tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    for folder in (out, victim):
        folder.mkdir()

    def exchange():
        out.rename(tmp_path / "away")
        out.symlink_to(victim) if link else victim.rename(out)

    with claiming(tmp_path / place):
        with (
            pytest.raises(DemixError, match=r"out to be free .* another folder than before"),
            new_array(out / "z.npy", (1, 1)),
        ):
            exchange()
        with pytest.raises(DemixError, match=r"out to be free .* another folder than before"):
            write_atomic(out / "z.npy", "ours")
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("links", [True, False])
def test_a_name_that_is_taken_at_the_last_moment_is_not_given(links, tmp_path, monkeypatch):
    def none(*_: object) -> None:
        raise PermissionError("no links on this disk")

    if not links:
        monkeypatch.setattr(os, "link", none)
    mine, taken = tmp_path / "mine", tmp_path / "taken"
    mine.write_text("ours")
    taken.write_text("of others")
    with pytest.raises(DemixError, match=r"written meanwhile|File exists"):
        put_new(mine, taken)
    assert taken.read_text() == "of others"
    put_new(mine, tmp_path / "free")
    assert (tmp_path / "free").read_text() == "ours"
    assert write_atomic(tmp_path / "other", "text").stat().st_nlink == 1


def test_what_is_moved_within_a_claimed_folder_stays(tmp_path):
    for name in ("notes.txt", "result.json"):
        (tmp_path / name).write_text(name)
    with claiming(tmp_path):
        (tmp_path / "notes.txt").rename(tmp_path / "result.json")
        with pytest.raises(DemixError, match=r"result\.json to be free"):
            write_atomic(tmp_path / "result.json", "new")
    assert (tmp_path / "result.json").read_text() == "notes.txt"


def test_what_was_there_may_be_moved_and_replaced(tmp_path):
    file, before = tmp_path / "a", tmp_path / "b"
    file.write_text("one")
    with claiming(tmp_path):
        write_atomic(file, "two", before=before)
        write_atomic(file, "three", before=before)
    assert (file.read_text(), before.read_text()) == ("three", "two")


def test_a_file_that_is_gone_leaves_no_empty_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        put_new(tmp_path / "gone.tmp", tmp_path / "result")
    assert not (tmp_path / "result").exists()
