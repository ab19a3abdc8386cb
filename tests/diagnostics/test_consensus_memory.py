"""A million rows are agreed on in little more memory than one fit takes."""

from __future__ import annotations

from pathlib import Path

import pytest

PEAK = """
import sys, warnings
from pathlib import Path
import numpy as np
from demix import ContrastiveDemixer, Recipe, consensus

def peak():
    # Unlike ru_maxrss, which a process inherits from its parent, this is of this program alone.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

warnings.simplefilter("ignore")
rows, folder = 1_000_000, Path(sys.argv[1])
x = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype="f4", shape=(rows, 5))
x[:] = np.random.default_rng(0).normal(size=(rows, 5)).astype("f4")
x.flush()
x = np.load(folder / "x.npy", mmap_mode="r")
recipe = Recipe(steps=3, batch=256)
demixer = ContrastiveDemixer(10, encoder={"hidden": (16,)}, recipe=recipe)
z = np.lib.format.open_memmap(folder / "z.npy", mode="w+", dtype="f4", shape=(rows, 10))
assert consensus(demixer, x, 2, out=z).latents is z
print(peak())
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_a_million_rows_stay_below_four_gigabytes(demix, tmp_path):
    run = demix.run_python(PEAK, tmp_path)
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 1500  # MB; the promise is 4 GB
