"""What will not fit into memory is refused before it begins; what fits is not."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from demix._support.memory import available_memory

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from /proc"
)

# Functions for programs that run in a process of their own.
COMMON = """
import resource, sys
from pathlib import Path
import torch
from demix import Encoder, InfoNCE, Recipe, Sphere, train
from demix.papers import Order, render_folder
from demix import DemixError

class Pairs:
    def __init__(self, x, x_tilde):
        self.x, self.x_tilde = x, x_tilde

def status(name):
    text = Path("/proc/self/status").read_text()
    return 1024 * int(text.partition(f"{name}:")[2].split()[0])

def limit(room):
    most = status("VmSize") + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))

def run(encoder, recipe, **more):
    shape = encoder.settings["dim_in"]
    shape = shape if isinstance(shape, list) else [shape]
    def sample(size, *, generator):
        return Pairs(*(torch.randn(size, *shape, generator=generator) for _ in range(2)))
    return train(encoder, sample, InfoNCE(), recipe, **more)

def told(work):
    try:
        work()
    except DemixError as error:
        return str(error)
    return "done"
"""

LIMITED = """
limit(300 << 20)
encoder = Encoder(100, Sphere(3), hidden=(64,))
print(told(lambda: run(encoder, Recipe(steps=1, batch=10**6))))
print(told(lambda: run(encoder, Recipe(steps=1, batch=10**5, chunk=256))))
print(told(lambda: run(encoder, Recipe(steps=1, batch=256))))
print(told(lambda: render_folder(Order("sprites", n=4, size=1024), sys.argv[1], jobs=1)))
print(told(lambda: render_folder(Order("sprites", n=4, size=8), sys.argv[1], jobs=1)))
"""


def test_a_limit_is_told_before_the_work_starts(demix, tmp_path):
    done = demix.run_python(COMMON + LIMITED, tmp_path / "images")
    assert done.returncode == 0, done.stderr
    large, chunked, small, images, image = done.stdout.splitlines()
    needs = r"Training with a batch of 1000000 needs about 9\.\d+ GB of memory, but 3\d\d MB are"
    assert re.match(needs, large)
    assert "available (limit of the address space, ulimit -v); take a smaller batch" in large
    assert chunked.startswith("Training with a batch of 100000 needs about")
    assert small == "done"
    assert images.startswith("Rendering needs about 2.")
    assert image == "done"
    assert (tmp_path / "images" / "images.npy").stat().st_size == 128 + 4 * 8 * 8 * 3


HONEST = """
from demix.training.memory import training_bytes
kind = sys.argv[1]
encoder = {
    "mlp": lambda: Encoder(50, Sphere(3), hidden=(512,) * 3),
    "compact": lambda: Encoder((3, 64, 64), Sphere(3), body="compact"),
}[kind]()
recipe = Recipe(steps=1, batch={"mlp": 4096, "compact": 48}[kind], whiten=False)
run(Encoder(3, Sphere(2)), Recipe(steps=1, batch=8))  # whatever is set up once
guess = training_bytes(encoder, InfoNCE(), recipe)
Path("/proc/self/clear_refs").write_text("5")
before = status("VmRSS")
run(encoder, recipe)
print((status("VmHWM") - before) / guess)
"""


@pytest.mark.parametrize("kind", ["mlp", "compact"])
def test_the_estimate_is_neither_far_below_nor_far_above_the_peak(demix, kind):
    done = demix.run_python(COMMON + HONEST, kind)
    assert done.returncode == 0, done.stderr
    # A third is added to the estimate before it is compared.
    assert 0.3 < float(done.stdout) < 1.3


def test_a_machine_has_some():
    assert 2**20 < available_memory() < math.inf
