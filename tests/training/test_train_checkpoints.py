"""A training that was killed continues from its checkpoint, to the same bits."""

from __future__ import annotations

import signal
from functools import cache
from pathlib import Path

import pytest
import torch

from demix import (
    Classification,
    DemixError,
    Encoder,
    InfoNCE,
    InstanceDiscrimination,
    Real,
    Recipe,
    train,
)
from small_processes import sphere_labels, sphere_pairs

PAIRS, LABELS = sphere_pairs(), sphere_labels()
CASES = {
    "pairs, muon": (PAIRS, InfoNCE, {}),
    "pairs, adam": (PAIRS, InfoNCE, {"optimizer": "adam"}),
    "pairs, both": (PAIRS, InfoNCE, {"optimizer": "muon_last"}),
    "pairs, averaged": (PAIRS, InfoNCE, {"average": 0.9, "weight_decay": 0.1}),
    "labels": (LABELS, lambda: Classification(20, 2, bias=True), {}),
    "sampled": (LABELS, lambda: InstanceDiscrimination(20, 2, sampled=5), {}),
}
pytestmark = pytest.mark.usefixtures("all_checkpoints")


def run(case, *, stop_at: int | None = None, **settings):
    """Return all weights and the history of a training of 40 steps, cut off after some."""
    process, make, options = case
    encoder, objective = Encoder(2, Real(2), hidden=(16, 16)), make()

    def cut(step, record):
        if step == stop_at:
            raise KeyboardInterrupt

    training = train(
        encoder,
        process.sample,
        objective,
        Recipe(steps=40, batch=32, **options),
        seed=3,
        eval_every=4,
        callback=cut,
        **settings,
    )
    weights = [value for made in (encoder, objective) for value in made.state_dict().values()]
    return weights, training


@cache
def undisturbed_run(name: str):
    return run(CASES[name])


def same(first, second) -> bool:
    return all(map(torch.equal, first, second))


@pytest.mark.parametrize(("name", "stop_at"), [*((name, 20) for name in CASES), ("labels", 5)])
def test_it_goes_on_to_the_same_bits(name, stop_at, tmp_path):
    undisturbed, whole = undisturbed_run(name)
    case = CASES[name]
    path = tmp_path / "run" / "checkpoint.safetensors"
    cut, first = run(case, stop_at=stop_at, checkpoint=path)
    assert first.interrupted
    assert not same(cut, undisturbed)
    weights, training = run(case, checkpoint=path)
    assert same(weights, undisturbed)
    assert [r["loss"] for r in training.history] == [r["loss"] for r in whole.history]
    assert training.steps == 40


def test_a_finished_training_is_not_run_again(tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    case = CASES["labels"]
    weights, _ = run(case, checkpoint=path)
    before = path.stat().st_mtime_ns
    again, training = run(case, checkpoint=path)
    assert same(weights, again)
    assert training.steps == 40
    assert path.stat().st_mtime_ns == before


def worse_after(step: int):
    """A validation that falls until ``step`` and then rises."""
    losses = []

    def validate(encoder):
        losses.append(1)
        return abs(4 * len(losses) - step)

    return validate


def test_the_best_weights_are_taken_back_and_patience_ends_it():
    best, _ = run(CASES["labels"], stop_at=12)
    weights, training = run(CASES["labels"], validate=worse_after(12), patience=3)
    assert same(weights, best)
    assert (training.best_step, training.steps) == (12, 24)
    assert [r["validation"] for r in training.history] == [8, 4, 0, 4, 8, 12]


def test_without_patience_it_goes_on_and_still_takes_the_best(tmp_path):
    case = CASES["labels"]
    best, _ = run(case, stop_at=12)
    weights, training = run(case, validate=worse_after(12))
    assert same(weights, best)
    assert training.steps == 40
    # The best weights survive a restart, too.
    path = tmp_path / "checkpoint.safetensors"
    run(case, validate=worse_after(12), checkpoint=path, stop_at=30)
    weights, _ = run(case, validate=lambda encoder: 99.0, checkpoint=path)
    assert same(weights, best)


@pytest.mark.parametrize("change", [{"about": {"data": "other"}}, {"patience": 2}])
def test_the_checkpoint_of_another_training_is_refused(change, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    run(CASES["labels"], checkpoint=path, stop_at=20)
    with pytest.raises(DemixError, match="checkpoint of another training; remove it"):
        run(CASES["labels"], checkpoint=path, **change)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"\x00" * 100, b"a,b\n1,2\n"])
def test_what_is_no_checkpoint_is_refused(content, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(content)
    with pytest.raises(DemixError, match=r"no checkpoint of demix .*; choose another file"):
        run(CASES["labels"], checkpoint=path)
    assert path.read_bytes() == content


SCRIPT = """
import sys, torch
sys.path.insert(0, sys.argv[2])
from small_processes import sphere_labels
from demix import Classification, Encoder, Real, Recipe, train
encoder, objective = Encoder(2, Real(2), hidden=(16, 16)), Classification(20, 2)
train(encoder, sphere_labels().sample, objective, Recipe(steps=120, batch=64), eval_every=5,
      checkpoint=sys.argv[1] or None, callback=lambda step, record: print(step, flush=True))
print(torch.cat([p.detach().flatten() for p in [*encoder.parameters(), objective.weight]])
      .numpy().tobytes().hex()[-4000:])
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_with_the_same_weights(demix, tmp_path):
    here, path = Path(__file__).parents[1], tmp_path / "checkpoint.safetensors"
    undisturbed = demix.run_python(SCRIPT, "", here).stdout.splitlines()[-1]
    demix.start_python(SCRIPT, path, here)
    demix.send(signal.SIGKILL, lambda: len(demix.said()) >= 50)  # of 120 steps
    assert demix.wait().returncode == -signal.SIGKILL
    assert path.exists()
    assert demix.run_python(SCRIPT, path, here).stdout.splitlines()[-1] == undisturbed
