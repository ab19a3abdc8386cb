"""Valid files of every format, and what may become of them."""

from __future__ import annotations

import io
import tarfile
import zipfile

import numpy as np
from hypothesis import strategies as st

ARRAY = np.arange(24, dtype=np.float32).reshape(8, 3) / 7


def npy(array: np.ndarray = ARRAY, version: tuple[int, int] | None = None) -> bytes:
    raw = io.BytesIO()
    np.lib.format.write_array(raw, array, version=version)
    return raw.getvalue()


def npz(*, compressed: bool = False) -> bytes:
    raw = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(raw, x=ARRAY, y=np.arange(8))
    return raw.getvalue()


def csv() -> bytes:
    lines = ["a,b,c", *(",".join(f"{x:.4f}" for x in row) for row in ARRAY.tolist())]
    return "\n".join(lines).encode() + b"\n"


def words() -> bytes:
    return b"size;shape\n0.5;cube\n0.25;ball\n1;cube\n"


def parquet() -> bytes:
    import pyarrow as arrow
    from pyarrow import parquet

    raw = io.BytesIO()
    table = arrow.table({"a": ARRAY[:, 0], "b": np.arange(8), "c": ARRAY[:, 2].astype(float)})
    parquet.write_table(table, raw)
    return raw.getvalue()


def mots() -> bytes:
    codes = ["PP2PP2", "Pl1PT2", "Ph1PX2"]
    lines = [f"{frame} 2001 2 64 64 {code}" for frame, code in enumerate(codes)]
    return "\n".join(lines).encode()


def mots_zip() -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("0000.txt", mots())
    return raw.getvalue()


def mots_tar() -> bytes:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        about = tarfile.TarInfo("0000.txt")
        about.size = len(mots())
        archive.addfile(about, io.BytesIO(mots()))
    return raw.getvalue()


def h5() -> bytes:
    import h5py

    raw = io.BytesIO()
    with h5py.File(raw, "w") as file:
        images = np.zeros((8, 2, 2, 3), dtype=np.uint8)
        file.create_dataset("images", data=images, chunks=(4, 2, 2, 3), compression="gzip")
        file.create_dataset("labels", data=np.zeros((8, 6)))
    return raw.getvalue()


def mat(*, compressed: bool) -> bytes:
    from scipy.io import savemat

    raw = io.BytesIO()
    views = np.zeros((2, 2, 3, 24, 4), dtype=np.uint8)
    savemat(raw, {"im": views, "mask": views[:, :, 0]}, do_compression=compressed)
    return raw.getvalue()


def jsonl() -> bytes:
    import json

    from demix.papers import ImageNetX

    row = {"file_name": "a.JPEG", "class": 7} | dict.fromkeys(ImageNetX.factor_names, 0)
    return json.dumps(row).encode()


def coil() -> bytes:
    from PIL import Image

    picture, raw = io.BytesIO(), io.BytesIO()
    Image.fromarray(np.full((4, 4, 3), 9, dtype=np.uint8)).save(picture, "WEBP", lossless=True)
    data = np.frombuffer(picture.getvalue(), dtype=np.uint8)
    offset, one = np.array([0, len(data)]), np.ones(1, dtype=int)
    np.savez(raw, data=data, offset=offset, object_id=one, angle_deg=one * 0.0)
    return raw.getvalue()


def image(kind: str) -> bytes:
    from PIL import Image

    raw, about = io.BytesIO(), Image.Exif()
    about[0x0112] = 6  # lies on its side
    Image.fromarray((ARRAY * 50).astype(np.uint8)).save(raw, kind, exif=about)
    return raw.getvalue()


def zarr_json(version: int) -> bytes:
    """Return the metadata of an array, which a folder of chunks goes with."""
    import tempfile
    from pathlib import Path

    import zarr

    with tempfile.TemporaryDirectory() as folder:
        plain = {"zarr_format": version, "compressors": None, "overwrite": True}
        zarr.create_array(folder, data=ARRAY, chunks=(4, 3), **plain)
        return Path(folder, "zarr.json" if version == 3 else ".zarray").read_bytes()


@st.composite
def spoilt(draw: st.DrawFn, valid: bytes) -> bytes:
    """Draw what may become of a file: flipped, overwritten, cut, doubled or filled with bytes."""
    raw = bytearray(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(0, len(raw) - 1)))
        stop = min(len(raw), start + draw(st.integers(1, 16)))
        match draw(st.sampled_from(["flip", "write", "number", "cut", "double", "insert"])):
            case "flip" if raw:
                raw[start] ^= 1 << draw(st.integers(0, 7))
            case "write":
                raw[start:stop] = draw(st.binary(min_size=stop - start, max_size=stop - start))
            case "number":
                # Lengths and counts stand in files as such.
                size = draw(st.sampled_from([2, 4, 8]))
                value = draw(st.sampled_from([0, 1, 2**15, 2**31 - 1, 2**32 - 1, 2**62, 2**63]))
                raw[start : start + size] = (value % 2 ** (8 * size)).to_bytes(size, "little")
            case "cut":
                raw[start : (len(raw) if draw(st.booleans()) else stop)] = b""
            case "double":
                raw[stop:stop] = raw[start:stop]
            case "insert":
                raw[start:start] = draw(st.binary(max_size=16))
    return bytes(raw)


def files(valid: bytes, beginning: bytes = b"") -> st.SearchStrategy[bytes]:
    """Return spoilt files, and random bytes that begin as the format does."""
    return st.one_of(spoilt(valid), st.binary(max_size=300).map(lambda raw: beginning + raw))
