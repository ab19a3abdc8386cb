"""Files of strangers: what is none, or claims what it does not hold, is refused at once."""

from __future__ import annotations

import os
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import demix
from alarm import within
from demix import DemixError
from demix.data.names import read_names, table_names
from demix.papers.datasets.annotations import class_labels
from demix.papers.reizinger2024.extraction import onnx_encoder, read_features

# What reads a user's file, and names that it takes.
READERS = {
    "data": (demix.read_data, "x.npy", "x.npz", "x.csv", "x.tsv", "x.parquet", "x.zarr", "x"),
    "factors": (demix.read_factors, "x.npy", "x.csv", "x.parquet"),
    "labels": (demix.read_labels, "x.npy", "x.csv"),
    "time": (demix.read_time, "x.npy", "x.csv"),
    "pairs": (lambda path: demix.read_pairs(path, 9), "x.npy", "x.csv"),
    "names": (read_names, "x.txt", "x.npy", "x.csv", "x.parquet"),
    "features": (read_features, "x.npy"),
    "ONNX": (onnx_encoder, "x.onnx"),
    "ImageNet-X": (demix.papers.imagenet_x, "x.jsonl"),
    "classes": (class_labels, "x.csv"),
    "masks": (demix.papers.kitti_masks, "x.txt", "x.zip", "x.tar"),
    "images": (demix.papers.open_factor_images, "mpi3d_toy.npz", "x.h5", "x.tar.gz", "x"),
}
CASES = [
    pytest.param(read, name, id=f"{kind}, {name}")
    for kind, (read, *names) in READERS.items()
    for name in names
]


@pytest.fixture(autouse=True)
def _guard():
    """End a reader that waits for what never comes."""
    with within(10):
        yield


@pytest.mark.parametrize(("read", "name"), CASES)
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, read, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DemixError, match=r"is a pipe; save what it gives to a file first\.$"):
        read(tmp_path / name)


@pytest.mark.parametrize(
    ("read", "name", "read_from"),
    [
        (demix.papers.kitti_masks, "0000.txt", ""),
        (demix.papers.open_factor_images, "car_1_mesh.mat", ""),
        (read_features, "names.txt", "F.npy"),
    ],
)
def test_a_pipe_among_files_is_refused(tmp_path, read, name, read_from):
    np.save(tmp_path / "F.npy", np.ones((2, 2)))
    os.mkfifo(tmp_path / name)
    with pytest.raises(DemixError, match=f"{name} is a pipe"):
        read(tmp_path / read_from)


def test_a_pipe_has_no_names_of_columns(tmp_path):
    os.mkfifo(tmp_path / "x.csv")
    assert table_names(tmp_path / "x.csv") is None


@pytest.mark.parametrize("folder", ["x" * 300, os.fsdecode(b"\xff"), "\ud800", "file"])
@pytest.mark.parametrize(("read", "name"), CASES)
def test_names_that_cannot_be_are_refused(tmp_path, read, name, folder):
    (tmp_path / "file").touch()
    for path in (tmp_path / folder / name, tmp_path / (folder + name)):
        with pytest.raises(DemixError) as told:
            read(path)
        assert str(told.value).endswith(".")


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".csv", ".parquet"])
def test_names_that_are_no_text_are_read(tmp_path, suffix):
    path = tmp_path / os.fsdecode(b"\xff" + suffix.encode())
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]})
    with path.open("wb") as file:
        if suffix in (".npy", ".npz"):
            (np.save if suffix == ".npy" else np.savez)(file, frame.to_numpy())
        elif suffix == ".csv":
            frame.to_csv(file, index=False)
        else:
            frame.to_parquet(file)
    assert demix.read_factors(path).values.tolist() == [[1, 3], [2, 5]]
    if suffix in (".csv", ".parquet"):
        assert table_names(path) == ["a", "b"]


CLAIM = 1_500_000_000


def claiming_npy(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"\x93NUMPY\x03\x00" + struct.pack("<I", CLAIM))
        file.truncate(CLAIM)  # which takes no room on the disk


def claiming_npz(path: Path) -> None:
    archive = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with archive, archive.open("images.npy", "w") as file:
        file.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", CLAIM))
        for _ in range(400):
            file.write(bytes(2**20))
    assert path.stat().st_size < 4 * 2**20


@pytest.mark.parametrize(
    ("write", "name", "reads"),
    [
        (claiming_npy, "x.npy", [demix.read_data]),
        (claiming_npz, "mpi3d_toy.npz", [demix.read_data, demix.papers.open_factor_images]),
    ],
)
def test_a_header_that_claims_gigabytes_is_not_read(tmp_path, write, name, reads):
    write(tmp_path / name)
    for read in reads:
        tracemalloc.start()
        with pytest.raises(DemixError, match=f"its header claims {CLAIM} bytes"):
            read(tmp_path / name)
        taken = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert taken < 50 * 2**20


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_arrays_of_all_versions_are_read(tmp_path, version):
    with (tmp_path / "x.npy").open("wb") as file:
        np.lib.format.write_array(file, np.eye(3), version)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    for name in ("x.npy", "x.npz"):
        assert demix.read_factors(tmp_path / name).values.tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("kind", ["link", "external", "virtual"])
def test_an_hdf5_file_that_names_other_files_is_refused(kind, tmp_path):
    h5py = pytest.importorskip("h5py")
    other, path = tmp_path / "other", tmp_path / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        for name, shape, dtype in (("images", (4, 2, 2, 3), "u1"), ("labels", (4, 6), "f8")):
            if kind == "link":
                file[name] = h5py.ExternalLink(str(other), "/a")
            elif kind == "external":
                size = int(np.prod(shape)) * np.dtype(dtype).itemsize
                file.create_dataset(name, shape, dtype, external=[(str(other), 0, size)])
            else:
                layout = h5py.VirtualLayout(shape, dtype)
                layout[:] = h5py.VirtualSource(str(other), "a", shape, dtype)
                file.create_virtual_dataset(name, layout)
    if kind == "link":
        os.mkfifo(other)  # which was waited for
    with pytest.raises(DemixError, match=r"it is a link|names other files"):
        demix.papers.open_factor_images(path)


@pytest.mark.parametrize("read", [demix.read_data, table_names, demix.read_labels])
def test_a_line_of_millions_of_cells_is_not_split(tmp_path, read):
    (tmp_path / "x.csv").write_text("1," * 3_000_000 + "1\n")
    tracemalloc.start()
    with pytest.raises(DemixError, match=r"at most 250000 cells in a line .* but .*x\.csv has"):
        read(tmp_path / "x.csv")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e7


def test_bytes_that_follow_an_array_are_refused(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((5, 2)))
    with (tmp_path / "x.npy").open("ab") as file:
        np.save(file, np.zeros((5, 2)))
    with pytest.raises(DemixError, match=r"cannot be read as one \(208 bytes follow its numbers\)"):
        demix.read_data(tmp_path / "x.npy")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.ones((5, 2)))
    with zipfile.ZipFile(tmp_path / "x.npz", "a") as archive, archive.open("a.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros((5, 2)))
    with pytest.raises(DemixError, match="two of its arrays have one name"):
        demix.read_data(tmp_path / "x.npz", key="a")
