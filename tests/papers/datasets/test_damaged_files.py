"""Files that are cut off, altered, or something else are refused in one sentence."""

from __future__ import annotations

import bz2
import gzip
import lzma
import struct
import sys
import tarfile
import tracemalloc
import zipfile
import zlib
from functools import partial
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from alarm import within
from demix import DemixError
from demix.data.reading import read_data
from demix.papers import FactorColumn, FactorImages, open_factor_images
from demix.papers.datasets.factor_images import Pixels
from demix.papers.datasets.mots import read_mots
from refusals import refusal

sys.path.insert(0, str(Path(__file__).resolve().parent))

import official

h5py = pytest.importorskip("h5py", reason="the extra `papers` is not installed")


def cut(path: Path, share: float) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])


def flip(path: Path, share: float) -> None:
    data = bytearray(path.read_bytes())
    for place in range(int(share * len(data)), int(share * len(data)) + 40):
        data[place] ^= 0xFF
    path.write_bytes(data)


def read_all(path: Path) -> None:
    """Damage of what is lazy is found out when it is read."""
    known = open_factor_images(path)
    known.read(np.arange(len(known)))


def refused(path: Path) -> str:
    text = refusal(read_all, path)
    assert str(path.name) in text
    return text


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_truncated_npz(tmp_path, share, compressed):
    path = tmp_path / official.DSPRITES
    official.write_dsprites(path, compressed=compressed)
    cut(path, share)
    assert "is empty" in refused(path) if share == 0 else "truncated" in refused(path)


def test_an_altered_npz(tmp_path):
    path = tmp_path / official.DSPRITES
    official.write_dsprites(path, n=300)
    flip(path, 0.5)
    assert "fetch it again" in refused(path)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_a_truncated_h5(tmp_path, share):
    official.write_shapes3d(tmp_path / "3dshapes.h5")
    cut(tmp_path / "3dshapes.h5", share)
    assert "truncated or damaged" in refused(tmp_path / "3dshapes.h5")


def test_an_altered_h5(tmp_path):
    official.write_shapes3d(tmp_path / "3dshapes.h5")
    flip(tmp_path / "3dshapes.h5", 0.5)
    assert "damaged" in refused(tmp_path / "3dshapes.h5")


@pytest.mark.parametrize("damage", [cut, flip])
def test_a_damaged_mesh(tmp_path, damage):
    official.write_cars(tmp_path)
    damage(tmp_path / "car_002_mesh.mat", 0.5)
    assert "car_002_mesh.mat in" in refused(tmp_path)


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_truncated_archive_of_meshes(tmp_path, share):
    official.write_cars(tmp_path / "cars")
    tar = official.as_tar(tmp_path / "cars", tmp_path / "nips2015-analogy-data.tar.gz")
    cut(tar, share)
    assert "truncated or damaged" in refused(tar)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", ["dat", "cat", "info"])
def test_a_truncated_matrix(tmp_path, packed, kind):
    official.write_norb(tmp_path, 5, packed=packed)
    file = next(tmp_path.glob(f"*training-{kind}*"))
    cut(file, 0.6)
    with pytest.raises(DemixError, match=f"{file.name} is truncated or damaged"):
        open_factor_images(tmp_path)


def test_matrices_that_do_not_belong_together(tmp_path):
    official.write_norb(tmp_path, 5)
    names = {kind: tmp_path / f"smallnorb-{official.NORB[0]}-{kind}.mat" for kind in ("cat", "dat")}
    names["cat"].write_bytes(official.matrix(np.zeros(4, dtype=np.int32)))
    assert "categories of shape (4,)" in _told(tmp_path)
    names["cat"].unlink()
    assert "-cat.mat or -cat.mat.gz beside the images" in _told(tmp_path)
    names["dat"].write_bytes(b"\0" * 100)
    assert "begins otherwise" in _told(tmp_path)
    huge = official.matrix(np.zeros((2, 2, 2, 2), dtype=np.uint8))[:16] + b"\xff\xff\xff\x7f" * 2
    packed = names["dat"].with_suffix(".mat.gz")
    names["dat"].unlink()
    packed.write_bytes(gzip.compress(huge))  # promises more than there is
    assert "truncated or damaged" in _told(tmp_path)


def _told(path: Path) -> str:
    with pytest.raises(DemixError) as told:
        open_factor_images(path)
    return str(told.value)


def test_arrays_that_do_not_line_up_or_are_no_images(tmp_path):
    path = tmp_path / official.DSPRITES
    arrays = official.write_dsprites(path, 10)
    np.savez(path, **arrays | {"imgs": arrays["imgs"][:9]})
    assert "9 images and values of shape (10, 6)" in _told(path)
    np.savez(path, **arrays | {"latents_classes": arrays["latents_classes"][:, :5]})
    assert "(10, 6) and (10, 5)" in _told(path)
    np.savez(path, **arrays | {"imgs": arrays["imgs"].astype(float)})
    assert "holds float64" in _told(path)
    np.savez(path, **arrays | {"imgs": np.array([{}])})
    assert "pickled objects, which demix never opens" in _told(path)
    np.savez_compressed(path, **arrays | {"imgs": 7 * arrays["imgs"]})
    assert "zeros and ones" in _told(path)
    np.savez(tmp_path / "mpi3d_real.npz", images=np.zeros((7, 1, 1, 3), dtype=np.uint8))
    assert "1036800 or 460800 images" in _told(tmp_path / "mpi3d_real.npz")
    np.savez(tmp_path / "unreal-world.npz", images=np.zeros((7, 1, 1, 3), dtype=np.uint8))
    assert "rename it" in _told(tmp_path / "unreal-world.npz")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = np.zeros((2, 4, 4, 3))
    assert "it holds images" in _told(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5", "a") as file:
        file["labels"] = np.zeros((2, 6))
    assert "found float64" in _told(tmp_path / "a.h5")


def test_something_else_altogether(tmp_path):
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    (tmp_path / "3dshapes.h5").write_text("hello", encoding="utf-8")
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    assert "does not exist" in _told(tmp_path / "none.npz")
    for name in ("notes.txt", "other.npz", "."):
        assert "is none of them" in _told(tmp_path / name)
    assert "looks like a text file" in _told(tmp_path / "3dshapes.h5")
    (tmp_path / "cars").mkdir()
    (tmp_path / "cars" / "car_1_mesh.mat").write_bytes(b"")
    assert "car_1_mesh.mat" in _told(tmp_path / "cars")


def test_coil_whose_parts_do_not_fit(tmp_path):
    path = tmp_path / "coil.npz"
    official.write_coil(path, 2, 4)
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, **arrays | {"angle_deg": arrays["angle_deg"][:3]})
    assert "8 objects and 3 angles" in _told(path)
    np.savez(path, **arrays | {"offset": arrays["offset"][::-1]})
    assert "where the images begin" in _told(path)
    odd = {"object_id": np.array(7), "angle_deg": np.array(["a"] * 8), "offset": np.array([], int)}
    for name, array in odd.items():
        np.savez(path, **arrays | {name: array})
        assert f"a list of numbers as '{name}'" in _told(path)


def test_coil_that_would_fill_the_memory(tmp_path):
    path, packed, claimed = tmp_path / "coil.npz", BytesIO(), 10**6
    Image.new("RGB", (500, 500)).save(packed, "PNG")
    data = np.frombuffer(packed.getvalue(), np.uint8)
    offset, ones = np.full(claimed, len(data)), np.ones(claimed, int)
    offset[0] = 0
    np.savez_compressed(path, data=data, offset=offset, object_id=ones, angle_deg=ones)
    assert "Decoding" in _told(path)


def linked(path: Path, first: str, second: str) -> Path:
    """Write an archive of two links that point at each other, and of one into nowhere."""
    with tarfile.open(path, "w") as archive:
        for name, target in ((first, second), (second, first), (f"x{first}", "nowhere")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return path


def test_links_in_archives_are_not_followed(tmp_path):
    cars = linked(tmp_path / "cars.tar", "car_1_mesh.mat", "car_2_mesh.mat")
    assert "Expected car_..._mesh.mat files" in _told(cars)
    with pytest.raises(DemixError, match=r"Expected \.txt files of MOTS annotations"):
        read_mots(linked(tmp_path / "mots.tar", "0000.txt", "0001.txt"))


def test_a_mesh_of_gigabytes_is_not_read(tmp_path):
    with (tmp_path / "car_1_mesh.mat").open("wb") as file:
        file.truncate(2**40)
    assert "car_1_mesh.mat" in refused(tmp_path)


@pytest.mark.parametrize("header", ["{'descr':(", "'''", "shape"])
def test_headers_that_are_no_python(tmp_path, header):
    shape = {"descr": "|u1", "fortran_order": False, "shape": (-1, 64, 64, 3)}
    text = f"{shape if header == 'shape' else header}".encode().ljust(117) + b"\n"
    for name, array in (("mpi3d_real.npz", "images"), (official.DSPRITES, "imgs")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in {array, "imgs", "latents_values", "latents_classes"}:
                raw = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
                archive.writestr(f"{member}.npy", raw)
        refused(tmp_path / name)
    with pytest.raises(DemixError, match="cannot be read as one"):
        read_data(tmp_path / "mpi3d_real.npz", key="images")


def test_numbers_that_are_none(tmp_path):
    path = tmp_path / official.DSPRITES
    arrays = official.write_dsprites(path, 10)
    values = arrays["latents_values"]
    np.savez(path, **arrays | {"latents_values": values.astype(str)})
    assert "of <U32 and int64; fetch it again" in _told(path)
    np.savez(path, **arrays | {"latents_values": values * np.nan})
    assert "a finite number for each factor of dsprites" in _told(path)
    np.savez(path, **arrays | {"imgs": 200 * arrays["imgs"]})  # which 255 times would wrap
    assert "numbers up to 1, but one has 200" in refusal(read_all, path)


def test_parts_of_smallnorb_of_two_sizes(tmp_path):
    official.write_norb(tmp_path, 5)
    small = np.zeros((5, 2, 48, 48), dtype=np.uint8)
    (tmp_path / f"smallnorb-{official.NORB[1]}-dat.mat").write_bytes(official.matrix(small))
    assert "of one size in" in _told(tmp_path)


@pytest.mark.parametrize("side", [0, 1, 6, 130, 400])
def test_meshes_of_other_sizes(tmp_path, side):
    if side == 400:  # 46 MB, a few kilobytes when compressed
        views = {"im": np.zeros((side, side, 3, 24, 4), dtype=np.uint8)}
        savemat(tmp_path / "car_2_mesh.mat", views, do_compression=True)
    else:
        official.write_cars(tmp_path, ["car_2_mesh"], side=side)
    official.write_cars(tmp_path, ["car_1_mesh"])
    told = _told(tmp_path)
    assert "car_2_mesh.mat" in told
    assert ("another size" if side == 6 else "damaged" if side == 400 else f"({side}, ") in told


def test_cars_that_come_twice(tmp_path):
    for folder in (tmp_path, tmp_path / "cars"):
        official.write_cars(folder, ["car_1_mesh"])
    assert "each once, but car_1_mesh.mat is one more" in _told(tmp_path)


@pytest.mark.parametrize("shape", [(480_000, 64, 64, 3), (2, 10**5, 10**5, 3)])
def test_an_h5_that_claims_more_than_it_holds(tmp_path, shape):
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file.create_dataset("images", shape, np.uint8, chunks=(1, 64, 64, 3))
        file["labels"] = np.zeros((shape[0] if shape[0] < 9 else 2, 6))
    assert "numbers that are not there" in _told(tmp_path / "3dshapes.h5")


def test_more_images_than_memory_are_not_read():
    class Huge(Pixels):
        shape = (2, 2**24, 2**24, 3)

        def read(self, rows):
            pytest.fail("It reads.")

    column = FactorColumn("x", "continuous")
    known = FactorImages("huge", Huge(), (column,), np.zeros((2, 1), dtype=np.float32))
    with pytest.raises(DemixError, match="Reading 2 images of huge needs about"):
        known.only([0, 1])


def test_labels_that_are_lists_are_not_read(tmp_path):
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file["images"] = np.zeros((2, 4, 4, 3), dtype=np.uint8)
        file.create_dataset("labels", (2, 6), h5py.vlen_dtype(np.uint8))
    assert "of numbers in" in _told(tmp_path / "3dshapes.h5")


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
@pytest.mark.parametrize("opened", [_told, lambda path: refusal(read_mots, path)])
def test_a_name_of_gigabytes_is_not_read(tmp_path, kind, opened):
    member = tarfile.TarInfo("name")
    member.type, member.size = kind, 2**33
    with (tmp_path / "cars.tar").open("wb") as file:
        file.write(member.tobuf(tarfile.GNU_FORMAT))
        file.truncate(2**34)
    assert "a name in it claims 8589934592 bytes" in opened(tmp_path / "cars.tar")


def test_chunks_larger_than_their_array_are_not_unpacked(tmp_path):
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file["labels"] = np.zeros((2, 6))
        more = {"maxshape": (None,) * 4, "chunks": (1000, 1000, 1000, 3), "compression": "gzip"}
        file.create_dataset("images", (2, 4, 4, 3), "u1", **more)
    assert "Expected chunks within the arrays of" in _told(tmp_path / "3dshapes.h5")


@pytest.mark.parametrize("opened", [_told, lambda path: refusal(read_mots, path)])
@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_SPARSE, tarfile.REGTYPE])
def test_a_list_of_holes_in_an_archive_is_not_read(tmp_path, kind, opened):
    holes = b"4\n" + 8 * b"1\n"  # of which there may be any number
    member = tarfile.TarInfo("car_1_mesh.mat")
    member.type, member.size = kind, len(holes)
    if kind == tarfile.REGTYPE:
        version = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
        member.pax_headers = version | {"GNU.sparse.name": "x", "GNU.sparse.realsize": "4"}
    with tarfile.open(tmp_path / "cars.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(member, BytesIO(holes))
    assert "a file in it has holes" in opened(tmp_path / "cars.tar")


def element(kind: int, content: bytes) -> bytes:
    """An element of a MATLAB file, compressed or filled up to eight bytes."""
    content = zlib.compress(content, 9) if kind == 15 else content + bytes(-len(content) % 8)
    return struct.pack("<II", kind, len(content)) + content


def mesh(*elements: bytes) -> bytes:
    return b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM" + b"".join(elements)


def test_a_mesh_is_not_unpacked_again_and_again(tmp_path):
    each = element(15, element(14, bytes(2**25 - 64)))  # within the bounds
    (tmp_path / "car_1_mesh.mat").write_bytes(mesh(each * 1000))
    with within(5):
        assert "they are too large" in refused(tmp_path)


def test_the_parts_of_an_array_take_no_memory(tmp_path):
    (tmp_path / "car_1_mesh.mat").write_bytes(mesh(element(14, element(1, b"") * 2**20)))
    tracemalloc.start()
    try:
        assert "there is none" in refused(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_a_mesh_of_very_many_arrays_is_not_gone_through(tmp_path):
    views = np.zeros((8, 8, 3, 24, 4), dtype=np.uint8)
    savemat(tmp_path / "car_1_mesh.mat", {"im": views})
    raw = (tmp_path / "car_1_mesh.mat").read_bytes()
    assert len(open_factor_images(tmp_path)) == 96
    (tmp_path / "car_1_mesh.mat").write_bytes(raw[:128] + 1000 * element(1, b"") + raw[128:])
    assert "there is none" in refused(tmp_path)


def test_what_nobody_reads_is_not_unpacked_without_end(tmp_path):
    member = tarfile.TarInfo("readme")
    member.size = 2**24
    unpacked, path = member.tobuf(tarfile.GNU_FORMAT) + bytes(2**24), tmp_path / "cars.tar.gz"
    for compress, words in (
        (bz2.compress, "damaged|cannot be read as one"),
        (partial(lzma.compress, preset=0), "claims 16777728 bytes that are not there"),
        (partial(gzip.compress, compresslevel=1), "but there are none"),  # a thousand to one
    ):
        path.write_bytes(compress(unpacked))
        for read in (open_factor_images, read_mots):
            with pytest.raises(DemixError, match=words):
                read(path)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("name", ["mpi3d_real.npz", official.DSPRITES, "masks.zip"])
def test_zip_archives_inflate_to_no_more_than_they_claim(name, packing, tmp_path):
    image, rows = ((64, 64, 3), 4) if name == "mpi3d_real.npz" else ((64, 64), 4)
    shape = {"descr": "|u1", "fortran_order": False, "shape": (rows, *image)}
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, shape)
    start = b"0 2001 2 64 64 PP2PP2\n" if name == "masks.zip" else header.getvalue()
    members = ["0000.txt"] if name == "masks.zip" else ["images.npy", "imgs.npy"]
    members += ["latents_values.npy", "latents_classes.npy"] if name == official.DSPRITES else []
    path, forged = tmp_path / name, struct.pack("<I", 60_000)
    with zipfile.ZipFile(path, "w", packing, compresslevel=1) as archive:
        for member in members:
            archive.writestr(member, start + bytes(2**24))
    path.write_bytes(path.read_bytes().replace(struct.pack("<I", len(start) + 2**24), forged))
    tracemalloc.start()
    try:
        words = refusal(read_mots if name == "masks.zip" else read_all, path)
        assert tracemalloc.get_traced_memory()[1] < 2**23
    finally:
        tracemalloc.stop()
    assert packing == zipfile.ZIP_DEFLATED or "packed in another way" in words


@pytest.mark.parametrize("chunks", [(10, 8, 8, 3), None])
def test_numbers_that_were_never_written_are_no_zeros(tmp_path, chunks):
    path = tmp_path / "3dshapes.h5"
    with h5py.File(path, "w") as file:
        file["labels"] = np.zeros((99, 6))
        images = file.create_dataset("images", (99, 8, 8, 3), np.uint8, chunks=chunks)
        if chunks:
            images[:90] = 1
    assert "some of its numbers were never written" in refused(path)
    with h5py.File(path, "a") as file:
        file["images"][:] = 1
    assert len(open_factor_images(path)) == 99


@pytest.mark.parametrize("number", [-5, 3, 0.5])
def test_shapes_without_a_name_are_refused(tmp_path, number):
    path = tmp_path / official.DSPRITES
    arrays = official.write_dsprites(path, 10)
    classes = arrays["latents_classes"].astype(float)
    classes[4, 1] = number
    np.savez(path, **arrays | {"latents_classes": classes})
    assert "whole numbers below 3 as 'shape' of dsprites" in _told(path)


def test_numbers_too_large_for_float32_end_in_one_sentence(tmp_path):
    path = tmp_path / official.DSPRITES
    arrays = official.write_dsprites(path, 10)
    arrays["latents_values"][3, 2] = 1e300
    np.savez(path, **arrays)
    assert "a finite number for each factor of dsprites" in _told(path)  # and in no warning


def _header(name: str, size: int, kind: bytes = b"0") -> bytes:
    """Return a header that tarfile would not write: with any size."""
    member = tarfile.TarInfo(name)
    member.type = kind
    block = bytearray(member.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


@pytest.mark.parametrize("opened", [_told, lambda path: refusal(read_mots, path)])
def test_archives_that_never_end_are_refused(tmp_path, opened):
    path = tmp_path / "cars.tar"
    path.write_bytes(_header("d/", 0, b"5") + _header("0000.bin", -512) + bytes(1024))
    assert "its files do not follow each other" in opened(path)
    facts = b"29 GNU.sparse.size=123456789\n"
    path.write_bytes(_header("x", 29, b"x") + facts.ljust(512, b"\0") + _header("a.jpg", 0))
    assert "a file in it has holes" in opened(path)
    facts = b"13 size=-512\n"
    member = _header("x", 13, b"x") + facts.ljust(512, b"\0") + _header("a.jpg", 0)
    path.write_bytes(_header("d/", 0, b"5") + member + bytes(1024))
    assert opened(path)
