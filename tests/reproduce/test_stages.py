"""A training in stages: each has its pairs and checkpoint, and a kill changes nothing."""

from __future__ import annotations

import pytest
import torch

from demix import Box, Encoder, InfoNCE, LeakyMixing, Normal, Process, Real, Recipe, Uniform
from demix.reproduce.trial import Report, trained_in_stages

BOX = Box(2)
MIXING = LeakyMixing(2, seed=0, draws=100)
WIDE, NARROW = (Process(Uniform(BOX), Normal(BOX, sigma), MIXING).sample for sigma in (0.3, 0.05))
STEPS = (24, 40)
RECIPE = Recipe(steps=sum(STEPS), batch=32)


class Killed(Exception):
    """Raised in the middle of a stage."""


def run(sample_late, report=None):
    torch.manual_seed(0)
    encoder = Encoder(2, Real(2), hidden=(8,))
    plan = encoder, InfoNCE(2), RECIPE
    stages = [(WIDE, STEPS[0]), (sample_late, STEPS[1])]
    return encoder, trained_in_stages(plan, stages, 0, lambda encoder: {}, report)


def test_steps_and_seconds_add_up():
    told = []
    _, training = run(NARROW, Report(lambda step, steps, record: told.append((step, steps))))
    assert training.steps == 64
    steps, seconds = ([entry[name] for entry in training.history] for name in ("step", "seconds"))
    assert steps == sorted(steps)
    assert {24, 64} <= set(steps)
    assert seconds == sorted(seconds)
    assert seconds[-1] == pytest.approx(training.seconds)
    assert told == [(step, 64) for step in range(1, 65)]


def test_the_second_stage_starts_from_the_weights_of_the_first():
    torch.manual_seed(0)
    alone = Encoder(2, Real(2), hidden=(8,))
    plan = alone, InfoNCE(2), RECIPE
    trained_in_stages(plan, [(WIDE, STEPS[0])], 0, lambda encoder: {}, None)
    found = []

    def late(size, *, generator):
        if not found:
            found.append({name: value.clone() for name, value in encoder.state_dict().items()})
        return NARROW(size, generator=generator)

    torch.manual_seed(0)
    encoder = Encoder(2, Real(2), hidden=(8,))
    stages = [(WIDE, STEPS[0]), (late, STEPS[1])]
    trained_in_stages((encoder, InfoNCE(2), RECIPE), stages, 0, lambda encoder: {}, None)
    for name, value in alone.state_dict().items():
        assert torch.equal(value, found[0][name]), name
        assert not torch.equal(value, encoder.state_dict()[name]) or "whiten" in name, name


def test_killed_in_the_second_stage_it_goes_on_to_the_same_weights(tmp_path):
    whole, _ = run(NARROW)
    left = iter(range(30))

    def until_killed(size, *, generator):
        if next(left, None) is None:
            raise Killed
        return NARROW(size, generator=generator)

    report = Report(checkpoint=tmp_path / "checkpoint.safetensors")
    with pytest.raises(Killed):
        run(until_killed, report)
    kept = {file.name for file in tmp_path.iterdir()}
    assert {"checkpoint.safetensors", "checkpoint-1.safetensors"} <= kept
    again, training = run(NARROW, report)
    assert training.steps == 64
    for name, value in whole.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name
