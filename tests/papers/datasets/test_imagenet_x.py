"""Annotations of ImageNet-X are read as they are, or refused with file and line."""

from __future__ import annotations

import json
import sys

import pytest

from demix import DemixError
from demix.papers import ImageNetX, imagenet_x
from demix.papers.datasets.annotations import class_labels
from pictures import annotation, write_lines

ROWS = [annotation("a.JPEG", 3, pose=1), annotation("val/b.JPEG", 700, pose=1, color=1)]


def test_rows_are_factors_and_the_half_of_imagenet(tmp_path):
    found = imagenet_x(write_lines(tmp_path / "x.jsonl", ROWS))
    assert found.names == ("a.JPEG", "b.JPEG")
    assert len(found) == 2
    assert found.classes.tolist() == [3, 700]
    told = [
        [n for n, on in zip(ImageNetX.target_names, row, strict=True) if on]
        for row in found.targets
    ]
    assert told == [["pose", "class < 500"], ["color", "pose"]]


def test_without_a_file_that_of_the_installed_package_is_read(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "imagenet_x", None)
    with pytest.raises(DemixError, match="pip install imagenet-x"):
        imagenet_x()
    monkeypatch.delitem(sys.modules, "imagenet_x")
    package = tmp_path / "imagenet_x"
    (package / "annotations").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('it must not be imported')")
    write_lines(package / "annotations" / "imagenet_x_val_multi_factor.jsonl", ROWS)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(imagenet_x()) == 2


BROKEN = {
    "cut off": ('{"file_name": "a', "line 3 of {} cannot be read"),
    "list": ("[1, 2]", "line 3 of {} is [1, 2]"),
    "no pose": (
        json.dumps({k: v for k, v in annotation("c").items() if k != "pose"}),
        "line 3 of {} has no 'pose'",
    ),
    "no name": (json.dumps(annotation("")), "Expected a file_name, but line 3 of {} has ''"),
    "unknown": (
        json.dumps(annotation("c", colour=1)),
        "Unknown factor 'colour' in line 3 of {}; known are multiple_objects",
    ),
    "two": (json.dumps(annotation("c", pose=2)), "Expected 0 or 1 as 'pose', but line 3 of {}"),
    "class": (json.dumps(annotation("c", 1000)), "from 0 to 999, but line 3 of {} has 1000"),
    "text": (json.dumps(annotation("c") | {"class": "cat"}), "line 3 of {} has 'cat'"),
    "twice": (json.dumps(ROWS[0]), "a.JPEG is there twice"),
}


@pytest.mark.parametrize(("line", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_line_is_named(tmp_path, line, words):
    path = write_lines(tmp_path / "x.jsonl", ROWS)
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(DemixError) as caught:
        imagenet_x(path)
    assert words.replace("{}", str(path)) in str(caught.value)


def test_more_lines_than_memory_are_not_read(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", ROWS * 20)
    with path.open("r+b") as file:
        file.truncate(2**43)
    with pytest.raises(DemixError, match=r"^Reading .*x\.jsonl needs about"):
        imagenet_x(path)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "x.jsonl"
    with pytest.raises(DemixError, match="is no file"):
        imagenet_x(path)
    path.write_text("\n\n", encoding="utf-8")
    with pytest.raises(DemixError, match="has no lines"):
        imagenet_x(path)
    path.write_bytes(b"\x93NUMPY and so on")
    with pytest.raises(DemixError, match="looks like a numpy array"):
        imagenet_x(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name,label\na,1\n", "one column 'file_name'"),
        ("file_name,label\na,1\na,2\n", "a is there twice"),
        ("file_name,label\na,1\nb\n", "2 cells in every line of {}, but line 3 has 1"),
        ("file_name,label\na,cat\n", "line 2 of {} has 'cat'"),
        ("file_name,label\na,-1\n", "line 2 of {} has -1"),
    ],
)
def test_labels_that_cannot_be_used_are_refused(tmp_path, text, words):
    path = tmp_path / "labels.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DemixError) as caught:
        class_labels(path)
    assert words.replace("{}", str(path)) in str(caught.value)


def test_labels_are_known_by_their_names_whatever_stands_beside(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("label;file_name;who\n7;a.JPEG;me\n999;b.JPEG;me\n", encoding="utf-8")
    assert class_labels(path) == {"a.JPEG": 7, "b.JPEG": 999}
