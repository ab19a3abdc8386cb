"""Annotations that cannot be used are refused in a sentence that names file and line."""

from __future__ import annotations

import tarfile

import pytest

from demix import DemixError
from demix.papers import kitti_masks
from films import line, rectangle, write

SIZE = (64, 80)
GOOD = [line(t, 2001, rectangle(SIZE, 5 + t, 5, 20, 10)) for t in range(4)]


def refusal(*paths) -> str:
    with pytest.raises(DemixError) as caught:
        kitti_masks(*paths)
    return str(caught.value)


def test_the_good_lines_are_good(tmp_path):
    assert len(kitti_masks(write(tmp_path / "gt.txt", GOOD))) > 0


def test_folders_deep_in_each_other_are_no_trouble(abyss):
    write(abyss / "d" / "gt.txt", GOOD)
    assert len(kitti_masks(abyss)) > 0


OTHER = line(4, 2001, rectangle((64, 90), 5, 5, 20, 10))
LINES = {
    "five fields": ([*GOOD, GOOD[0].rpartition(" ")[0]], "line 5 of {} has 5"),
    "seven fields": ([GOOD[0] + " 1", *GOOD[1:]], "line 1 of {} has 7"),
    "empty line": ([GOOD[0], "", *GOOD[1:]], "line 2 of {} has 0"),
    "text": (["first 2001 2 64 80 a", *GOOD], "line 1 of {} has 'first 2001 2 64 80'"),
    "fraction": (["1.5 2001 2 64 80 a", *GOOD], "Expected whole numbers"),
    "huge": ([f"{10**30} 2001 2 64 80 a", *GOOD], "Expected whole numbers"),
    "id": ([*GOOD, GOOD[0].replace("2001", "1001")], "line 5 of {} has id 1001 and class 2"),
    "negative": (["-" + GOOD[1], *GOOD], "line 1 of {}"),
    "mask": ([*GOOD[:2], GOOD[2][:-1], GOOD[3]], "64 x 80 pixels"),
    "mask line": ([*GOOD[:2], GOOD[2][:-1], GOOD[3]], "line 3 of {} does not decode"),
    "no mask": (["0 2001 2 64 80 ~~~~"], "line 1 of {} does not decode"),
    "sizes": ([*GOOD, OTHER], "64 x 80 as in line 1, but line 5 of {} is 64 x 90"),
    "twice": ([*GOOD, GOOD[1]], "line 5 of {} has object 2001 in frame 1 again"),
    "cars": ([line(0, 1001, rectangle(SIZE, 0, 0, 9, 9))], "none of its 1 files has any"),
    "small": ([line(t, 2001, rectangle(SIZE, 0, 0, 2, 2)) for t in range(5)], "5 masks from {}"),
    "short": (GOOD[:2], "3 frames in a row"),
    "portrait": (
        [line(t, 2001, rectangle((80, 64), 0, 0, 20, 20)) for t in range(5)],
        "{} is 64 wide and 80 high",
    ),
}


@pytest.mark.parametrize(("lines", "words"), LINES.values(), ids=LINES)
def test_lines(tmp_path, lines, words):
    path = write(tmp_path / "gt.txt", lines)
    assert words.replace("{}", str(path)) in refusal(path)


def test_a_file_that_breaks_off_within_a_mask_is_noticed(tmp_path):
    path = write(tmp_path / "gt.txt", GOOD)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 4])
    assert "line 4" in refusal(tmp_path)


def test_paths_that_hold_no_annotations(tmp_path):
    assert "got none" in refusal()
    assert f"{tmp_path / 'gone'} does not exist" in refusal(tmp_path / "gone")
    assert "but there are none; give the folder" in refusal(tmp_path)
    (tmp_path / "gt.txt").write_bytes(b"")
    assert f"{tmp_path / 'gt.txt'} is empty" in refusal(tmp_path)


def test_archives_that_break_off_or_are_none(tmp_path):
    lines = [line(t, 2001, rectangle(SIZE, t % 40, t % 60, 20, 10)) for t in range(400)]
    path, archive = write(tmp_path / "gt.txt", lines), tmp_path / "gt.tar.xz"
    with tarfile.open(archive, "w:xz") as file:
        file.add(path, arcname="gt.txt")
    whole = archive.read_bytes()
    for share in (0.2, 0.9):
        archive.write_bytes(whole[: int(share * len(whole))])
        assert f"{archive} cannot be read as one" in refusal(archive)
    archive.write_bytes(b"not an archive")
    assert f"{archive} cannot be read as one" in refusal(archive)
    with tarfile.open(archive, "w:xz") as file:
        file.add(path, arcname="gt.png")
    assert "but there are none" in refusal(archive)
