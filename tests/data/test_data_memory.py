"""Data on disk are read in the memory of a block."""

from __future__ import annotations

from pathlib import Path

import pytest

# A quarter of a gigabyte of zeros with a single 3 among them; as holes, or compressed, they take
# little space on disk.
PEAK = """
import sys
from pathlib import Path
import numpy as np
import torch
import zarr
from demix.data.data import as_data
from demix.data.checks import check_data
from demix import read_data

def peak():
    # Unlike ru_maxrss, which a process inherits from its parent, this is of this program alone.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

path, kept = sys.argv[1:]
shape = rows, columns = 2**18, 256
if kept == "zarr":
    whole = {"write_empty_chunks": True}
    chunks = (1024, columns)
    written = zarr.create_array(path, shape=shape, chunks=chunks, dtype="f4", config=whole)
    for start in range(0, rows, 1024):
        written[start : start + 1024] = 0
else:
    with open(path, "wb") as file:
        header = {"shape": shape, "fortran_order": kept != "npy", "descr": "<f4"}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 2**28)
    written = np.load(path, mmap_mode="r+")
written[rows // 2, 7] = 3
data = as_data(written) if kept == "column-major memmap" else read_data(path)

before = peak()
if kept == "npy":
    found = check_data(data)
    total = float(found.mean.sum() * rows)
    assert found.duplicated == rows - 2
else:
    total = sum(float(block.sum()) for _, block in data.blocks())
index = torch.randint(rows, (20_000,), generator=torch.Generator().manual_seed(0))
index[5] = rows // 2
taken = float(data.take(index)[5].sum())
print(total, taken, peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
@pytest.mark.parametrize("kept", ["npy", "column-major memmap", "zarr"])
def test_a_large_file_on_disk_is_read_in_little_memory(demix, tmp_path, kept):
    path = tmp_path / ("x.zarr" if kept == "zarr" else "x.npy")
    run = demix.run_python(PEAK, path, kept)
    assert run.returncode == 0, run.stderr
    total, taken, peak = map(float, run.stdout.split())
    assert (total, taken) == (pytest.approx(3), 3)
    assert peak < 160
