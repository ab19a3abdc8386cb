"""Data on disk are fitted and transformed in the memory of a few blocks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from demix import ClassifierDemixer, ContrastiveDemixer, DemixError, InstanceDemixer

# Half a gigabyte, most of which are zeros that take little space on disk.
PEAK = """
import sys, warnings
from pathlib import Path
import numpy as np
import zarr
from demix import ContrastiveDemixer, Recipe, load_model
from demix.cli.transform import transform

def peak():
    # Unlike ru_maxrss, which a process inherits from its parent, this is of this program alone.
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024

def fit(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        recipe = Recipe(steps=3, batch=64)
        return ContrastiveDemixer(2, encoder={"hidden": (8,)}, recipe=recipe).fit(x)

path, model, out = sys.argv[1:]
shape = rows, columns = 2**17, 512
noise = np.random.default_rng(0).normal(size=(512, columns))
whole = {"write_empty_chunks": True}
x = zarr.create_array(path, shape=shape, chunks=(512, columns), dtype="f8", config=whole)
for start in range(0, rows, 512):
    x[start : start + 512] = noise if start % (rows // 32) == 0 else 0.0

fit(noise)  # whatever is imported or set up once
before = peak()
demixer = fit(x)
fitted = peak() - before
demixer.save(model)
transform(Path(model), Path(path), Path(out))
assert np.load(out, mmap_mode="r").shape == (rows, 2)
assert np.array_equal(np.load(out, mmap_mode="r")[:512], load_model(model).transform(noise))
print(fitted, peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_half_a_gigabyte_on_disk_is_fitted_and_transformed_in_little_memory(demix, tmp_path):
    run = demix.run_python(PEAK, *(tmp_path / name for name in ("x.zarr", "model", "z.npy")))
    assert run.returncode == 0, run.stderr
    fitted, transformed = map(float, run.stdout.splitlines()[-1].split())
    # In MB, about 170; half a gigabyte in single precision would be 256 more than that of a start.
    assert fitted < 230
    assert transformed < 230


@pytest.mark.parametrize("kind", [ClassifierDemixer, ContrastiveDemixer, InstanceDemixer])
def test_an_encoder_that_does_not_fit_into_memory_is_not_built(kind, monkeypatch):
    monkeypatch.setattr("demix._support.memory._limits", lambda: iter([(2e8, "for this test")]))
    x = np.random.default_rng(0).normal(size=(60, 3))
    wide = kind(2, encoder={"hidden": (5_000_000,), "residual": False})  # 120 MB
    with pytest.raises(DemixError, match=r"The encoder needs about 2.* MB .* narrower layers"):
        wide.fit(x, np.arange(60) % 3)
