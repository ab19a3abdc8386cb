"""Every reader of data, on spoilt files: refused in a sentence or read, never anything else."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle

import numpy as np
import pytest
from files import (
    ARRAY,
    coil,
    csv,
    files,
    h5,
    image,
    jsonl,
    mat,
    mots,
    mots_tar,
    mots_zip,
    npy,
    npz,
    parquet,
    words,
    zarr_json,
)
from hypothesis import given
from hypothesis import strategies as st
from reading import fuzzed, read_or_refused

import demix.papers


def rows(path, **choice) -> None:
    for _ in demix.read_data(path, **choice).blocks():
        pass


def pictures(path) -> None:
    found = demix.papers.open_factor_images(path)
    found.read(range(min(8, len(found))))


def chunks(path) -> None:
    """Read an array whose metadata lie in a folder without chunks, which may be put there."""
    keys = ("c/0/0", "c/1/0") if (path / "zarr.json").exists() else ("0.0", "1.0")
    for key in keys:
        (path / key).parent.mkdir(parents=True, exist_ok=True)
        (path / key).write_bytes(ARRAY[:4].tobytes())
    rows(path)


# A valid file, the name it has, and who reads it.
READERS = {
    "npy": (npy(), "a.npy", rows),
    "npy, version 2": (npy(version=(2, 0)), "a.npy", rows),
    "npy, columns first": (npy(np.asfortranarray(ARRAY)), "a.npy", rows),
    "npy of factors": (npy(np.array([["a"], ["bc"]])), "a.npy", demix.read_factors),
    "npy of labels": (npy(np.arange(9)), "a.npy", demix.read_labels),
    "npy of pairs": (
        npy(np.arange(8).reshape(4, 2)),
        "a.npy",
        lambda path: demix.read_pairs(path, 9),
    ),
    "npy of time": (npy(np.arange(9.0)), "a.npy", demix.read_time),
    "npz": (npz(), "a.npz", lambda path: rows(path, key="x")),
    "npz, compressed": (npz(compressed=True), "a.npz", lambda path: rows(path, key="x")),
    "csv": (csv(), "a.csv", rows),
    "csv, a header": (csv(), "a.csv", lambda path: rows(path, header="yes")),
    "csv, gzip": (gzip.compress(csv(), mtime=0), "a.csv.gz", rows),
    "csv, bzip2": (bz2.compress(csv()), "a.csv.bz2", rows),
    "csv, xz": (lzma.compress(csv()), "a.csv.xz", rows),
    "csv of time": (b"t\n31.12.2024 13:45\n31.12.2024 13:55\n", "a.csv", demix.read_time),
    "csv of factors": (words(), "a.csv", demix.read_factors),
    "csv of labels": (words(), "a.csv", lambda path: demix.read_labels(path, column="shape")),
    "parquet": (parquet(), "a.parquet", rows),
    "MOTS": (mots(), "a.txt", demix.papers.kitti_masks),
    "MOTS, zip": (mots_zip(), "a.zip", demix.papers.kitti_masks),
    "MOTS, tar": (mots_tar(), "a.tgz", demix.papers.kitti_masks),
    "h5": (h5(), "3dshapes.h5", pictures),
    "mat": (mat(compressed=False), "cars/car_1_mesh.mat", lambda path: pictures(path.parent)),
    "mat, compressed": (
        mat(compressed=True),
        "cars/car_1_mesh.mat",
        lambda path: pictures(path.parent),
    ),
    "npz of pictures": (coil(), "a.npz", pictures),
    "jsonl": (jsonl(), "a.jsonl", demix.papers.imagenet_x),
    **{
        f"image, {kind}": (image(kind), f"images/a.{kind}", lambda path: rows(path.parent))
        for kind in ("png", "jpeg", "webp", "tiff", "bmp")
    },
    "zarr 3": (zarr_json(3), "x.zarr/zarr.json", lambda path: chunks(path.parent)),
    "zarr 2": (zarr_json(2), "x.zarr/.zarray", lambda path: chunks(path.parent)),
}
every_reader = pytest.mark.parametrize("name", READERS)


@every_reader
def test_spoilt_files_are_refused_or_read(name, tmp_path):
    valid, file, read = READERS[name]
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(valid)
    assert read_or_refused(lambda: read(path)) is None

    @fuzzed
    @given(files(valid, valid[:4]))
    def check(raw: bytes) -> None:
        path.write_bytes(raw)
        read_or_refused(lambda: read(path))

    check()


# Everything that some program takes for a number, for a header or for an end of a line.
CELLS = ["1", "2.5", "-3", "1e999", "nan", "-inf", "1_000", "0x1f", "१", "٣.٥", "½", "1\u00a0"]
CELLS += ["9" * 30, "1" * 5000, "", " ", '"', '""', '"a', "a", "b", "é", "#", "0", "\ufeff"]
CELLS += ["\x0c", "\x85", "1,5", "1.234", "1,234.5", "1.234.567,8", '"1,5"', '"2,345"']
CELLS += ["20241231", "31.12.2024", "1/2/2024", "2024-12-31", "0001-01-01T00:00+23:59"]
LINES = st.lists(st.lists(st.sampled_from(CELLS), min_size=1, max_size=3), max_size=5)
TEXT = st.builds(
    lambda lines, mark, end: end.join(map(mark.join, lines)).encode(),
    LINES,
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["\n", "\r\n", "\r", "\u2028"]),
)
TABLES = {
    "rows": rows,
    "some columns": lambda path: rows(path, columns=["a"]),
    "factors": demix.read_factors,
    "labels": demix.read_labels,
    "time": demix.read_time,
    "pairs": lambda path: demix.read_pairs(path, 9),
}


@pytest.mark.parametrize("name", TABLES)
def test_odd_tables_are_refused_or_read(name, tmp_path):
    path = tmp_path / "a.csv"

    @fuzzed
    @given(TEXT)
    def check(raw: bytes) -> None:
        path.write_bytes(raw)
        read_or_refused(lambda: TABLES[name](path))

    check()


NUMBERS = st.sampled_from(
    ["0", "1", "2", "64", "2001", "-5", "99999999999", "9" * 30, "x", "32769"]
)
CODES = st.sampled_from(["PP2PP2", "Pl1PT2", "0", "P", "~~~~", "oooooooooo", "QW1", "\x85"])
FIELDS = st.one_of(
    st.tuples(*[NUMBERS] * 5, CODES),
    st.tuples(st.sampled_from("012"), st.just("2001"), st.just("2"), st.just("64"), NUMBERS, CODES),
)


def test_odd_annotations_are_refused_or_read(tmp_path):
    path = tmp_path / "a.txt"

    @fuzzed
    @given(st.lists(FIELDS, max_size=5))
    def check(lines: list[tuple[str, ...]]) -> None:
        path.write_text("\n".join(map(" ".join, lines)), encoding="utf-8")
        read_or_refused(lambda: demix.papers.kitti_masks(path))

    check()


class Bomb:
    """Opens a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("kind", ["npy", "npz", "bare"])
def test_nothing_that_a_file_holds_is_run(kind, tmp_path):
    mark, path = tmp_path / "it ran", tmp_path / ("a.npz" if kind == "npz" else "a.npy")
    objects = np.array([[Bomb(str(mark))] * 2], dtype=object)
    if kind == "bare":
        path.write_bytes(pickle.dumps(objects))
    else:
        (np.save if kind == "npy" else np.savez)(path, objects)
    assert read_or_refused(lambda: rows(path)) is not None
    assert not mark.exists()
    pickle.loads(pickle.dumps(objects[0, 0])).close()
    assert mark.exists()  # it would have been seen
