"""A training in stages: each has its pairs and checkpoint, and a kill changes nothing."""

from __future__ import annotations

import pytest
import torch

from demix import Box, Encoder, InfoNCE, LeakyMixing, Normal, Process, Real, Recipe, Uniform
from demix.papers.runner.run import Monitor, Run
from demix.papers.runner.scales import scale_named
from demix.papers.runner.slow_start import take_over

BOX = Box(2)
MIXING = LeakyMixing(2, seed=0, draws=100)
WIDE, NARROW = (Process(Uniform(BOX), Normal(BOX, sigma), MIXING).sample for sigma in (0.3, 0.05))
STEPS = (24, 40)


def a_run(monitor=None):
    return Run(0, scale_named("smoke"), "unsupervised", monitor=monitor or Monitor())


class Killed(Exception):
    """Raised in the middle of a stage."""


def run(sample_late=NARROW, monitor=None, stages=2):
    torch.manual_seed(0)
    plans = [
        (Encoder(2, space, hidden=(8,)), InfoNCE(2), Recipe(steps=steps, batch=32))
        for space, steps in zip((Real(5), BOX), STEPS, strict=True)
    ]
    both = list(zip(plans, (WIDE, sample_late), strict=True))[:stages]
    training = a_run(monitor).train_in_stages(both, lambda encoder: {})
    return [encoder for encoder, _, _ in plans], training


def test_steps_and_seconds_add_up():
    told = []
    _, training = run(monitor=Monitor(lambda step, steps, record: told.append((step, steps))))
    assert training.steps == 64
    steps, seconds = ([entry[name] for entry in training.history] for name in ("step", "seconds"))
    assert steps == sorted(steps)
    assert {24, 64} <= set(steps)
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(training.seconds)
    assert told == [(step, 64) for step in range(1, 65)]


def test_the_second_stage_starts_from_the_slowest_outputs_for_pairs_of_its_own():
    drawn = []

    def late(size, *, generator):
        pairs = NARROW(size, generator=generator)
        drawn.append(pairs)
        return pairs

    (first, _), _ = run(stages=1)
    torch.manual_seed(0)
    second = Encoder(2, BOX, hidden=(8,))
    slow = Recipe(steps=1, batch=32, rate=1e-12, matrix_rate=1e-12)
    stages = [((first, InfoNCE(2), slow), WIDE), ((second, InfoNCE(2), slow), late)]
    a_run().train_in_stages(stages, lambda encoder: {})
    pairs = drawn[0]
    wanted = take_over(Encoder(2, BOX, hidden=(8,)), first, pairs.x, pairs.x_tilde)
    for name, value in wanted.state_dict().items():
        torch.testing.assert_close(second.state_dict()[name], value, msg=name)


def test_killed_in_the_second_stage_it_goes_on_to_the_same_weights(tmp_path):
    (_, whole), _ = run()
    left = iter(range(30))

    def until_killed(size, *, generator):
        if next(left, None) is None:
            raise Killed
        return NARROW(size, generator=generator)

    monitor = Monitor(checkpoint=tmp_path / "checkpoint.safetensors")
    with pytest.raises(Killed):
        run(until_killed, monitor)
    kept = {file.name for file in tmp_path.iterdir()}
    assert {"checkpoint.safetensors", "checkpoint-1.safetensors"} <= kept
    (_, again), training = run(monitor=monitor)
    assert training.steps == 64
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
