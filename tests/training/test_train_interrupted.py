"""Ctrl-C ends a training early and keeps what it learned."""

from __future__ import annotations

import signal
import time

import pytest
import torch

from demix import InfoNCE, train

SCRIPT = """
import torch
from demix import Encoder, InfoNCE, LeakyMixing, Process, Recipe, Sphere, Uniform, VonMisesFisher
from demix import train

sphere = Sphere(2)
mixing = LeakyMixing(2, seed=0, draws=10)
process = Process(Uniform(sphere), VonMisesFisher(sphere, 10.0), mixing)
encoder = Encoder(2, sphere, hidden=(16, 16))
training = train(
    encoder, process.sample, InfoNCE(), Recipe(steps=10**6, batch=32), eval_every=10,
    callback=lambda step, record: print(f"{step}\\n", end="", flush=True) if step == 30 else None,
)
finite = all(torch.isfinite(p).all() for p in encoder.parameters())
kept = len(training.history) == training.steps // 10 and training.steps >= 30
print(training.interrupted, encoder.training, bool(finite), kept)
"""


def raise_at(step: int, count: list[int]) -> None:
    count.append(1)
    if len(count) == step:
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["objective", "callback", "evaluate"])
def test_what_was_learned_until_then_is_kept(tiny, where):
    count: list[int] = []

    def objective(encoder, pairs):
        if where == "objective":
            raise_at(13, count)
        return InfoNCE()(encoder, pairs)

    def callback(step, record):
        if where == "callback":
            raise_at(12, count)

    def evaluate(encoder):
        if where == "evaluate":
            raise_at(3, count)
        return {"score": 1.0}

    settings = tiny | {"objective": objective}
    training = train(**settings, evaluate=evaluate, eval_every=4, callback=callback)
    assert training.interrupted
    assert training.steps == 12
    # An interrupted evaluation leaves no record.
    kept = [4, 8] if where == "evaluate" else [4, 8, 12]
    assert [record["step"] for record in training.history] == kept
    assert not tiny["encoder"].training
    assert all(torch.isfinite(p).all() for p in tiny["encoder"].parameters())


@pytest.mark.parametrize("where", ["objective", "evaluate"])
def test_seconds_count_no_time_twice(tiny, where):
    count: list[int] = []

    def objective(encoder, pairs):
        time.sleep(0.01)
        if where == "objective":
            raise_at(12, count)
        return InfoNCE()(encoder, pairs)

    def evaluate(encoder):
        if where == "evaluate":
            raise_at(2, count)
        return {}

    start = time.perf_counter()
    training = train(**tiny | {"objective": objective}, evaluate=evaluate, eval_every=10)
    assert 0.1 < training.seconds < time.perf_counter() - start


def test_a_real_interrupt_is_survived(demix):
    demix.start_python(SCRIPT)
    demix.send(signal.SIGINT, lambda: demix.said() == ["30"])
    done = demix.wait()
    assert (done.stdout, done.stderr, done.returncode) == ("30\nTrue False True True\n", "", 0)
