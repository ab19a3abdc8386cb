"""Small files that claim to be large are refused before memory is taken for them."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from files import npy, parquet

import demix.papers

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from /proc"
)

READ = """
import resource, sys
from pathlib import Path
import pyarrow
import demix.papers
from demix import DemixError

def status(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{name}:")[2].split()[0])

masks = demix.papers.kitti_masks
readers = {".txt": masks, ".zip": masks, "": demix.load_encoder}
pyarrow.array([1.0])  # which takes a large part of the address space once
room = int(sys.argv[2])
most = status("VmSize") + room
resource.setrlimit(resource.RLIMIT_AS, (most, most))
before = status("VmRSS")
for path in sorted(Path(sys.argv[1]).iterdir()):
    try:
        readers.get(path.suffix, demix.read_data)(path)
        print(path.name, "read")
    except DemixError as error:
        print(path.name, error)
print((status("VmHWM") - before) / room)
"""
ROOM = 200 << 20


def claiming(shape: tuple[int, ...]) -> bytes:
    """Return an ``.npy`` file with a few numbers and a header of many."""
    raw = io.BytesIO()
    about = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(raw, about)
    return raw.getvalue() + bytes(64)


def zipped(name: str, parts: list[bytes]) -> bytes:
    raw = io.BytesIO()
    packed = zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=1)
    with packed as archive, archive.open(name, "w") as file:
        for part in parts:
            file.write(part)
    return raw.getvalue()


def run_length(pixels: int) -> str:
    """Return the code of one run, as COCO writes it."""
    code = ""
    while True:
        digit, pixels = pixels & 31, pixels >> 5
        goes_on = pixels > 0 or digit & 16
        code += chr(48 + digit + (32 if goes_on else 0))
        if not goes_on:
            return code


@pytest.fixture
def large(tmp_path) -> Path:
    """A folder of such files; none is larger than a few hundred kB."""
    from pyarrow import parquet as writer
    from pyarrow import table

    folder = tmp_path / "large"
    folder.mkdir()
    zeros = [claiming((12_000_000, 1)), *[bytes(2**20)] * 92]
    files = {
        "claims.npy": claiming((10**12, 8)),
        "overflows.npy": claiming((2**62, 2**62)),
        "claims.npz": zipped("x.npy", [claiming((10**12, 8))]),
        "unpacks.npz": zipped("x.npy", zeros),
        "unpacks.zip": zipped("0000.txt", [b"0 2001 2 64 64 PP2PP2\n" * 2**16] * 32),
        "wide.txt": f"0 2001 2 1 32768 {run_length(32768)}\n".encode(),
        "wider.txt": b"0 2001 2 1 999999999 P\n",
    }
    for name, raw in files.items():
        (folder / name).write_bytes(raw)
    writer.write_table(table({"x": np.zeros(2 * 10**7, dtype=np.int8)}), folder / "long.parquet")
    demix.save_encoder(demix.Encoder(3, demix.Sphere(2), hidden=(4,)), folder / "model")
    weights = (folder / "model" / "model.safetensors").read_bytes()
    header = json.dumps({"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    forged = struct.pack("<Q", len(header)) + header.encode()
    (folder / "model" / "model.safetensors").write_bytes(forged.ljust(len(weights)))
    assert sum(file.stat().st_size for file in folder.rglob("*")) < 2**20
    return folder


def test_what_claims_too_much_is_refused_in_little_memory(demix, large):
    done = demix.run_python(READ, large, ROOM)
    assert done.returncode == 0, done.stderr
    *lines, taken = done.stdout.splitlines()
    told = dict(line.split(" ", 1) for line in lines)
    assert set(told) == {path.name for path in large.iterdir()}
    assert "read" not in told.values()
    needs = {name for name, line in told.items() if "of memory, but" in line}
    assert needs == {"unpacks.npz", "unpacks.zip", "long.parquet", "wide.txt"}
    assert float(taken) < 0.5


def test_what_is_honest_is_read_in_the_same_memory(demix, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy())
    (tmp_path / "a.npz").write_bytes(zipped("x.npy", [npy()]))
    (tmp_path / "a.parquet").write_bytes(parquet())
    done = demix.run_python(READ, tmp_path, ROOM)
    assert done.stdout.splitlines()[:3] == ["a.npy read", "a.npz read", "a.parquet read"]
