"""What `train` promises besides learning: repeatable, recorded, and stopped with words."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import torch

from demix import DemixError, Encoder, InfoNCE, Recipe, train
from demix.papers.runner.original import LatentMSE


def weights_after(circle, seed: int, **settings) -> torch.Tensor:
    torch.manual_seed(time.time_ns())  # the global generator must not matter
    encoder = Encoder(2, circle.space, hidden=(16, 16), scale=3.0)
    recipe = Recipe(steps=20, batch=32, **settings)
    train(encoder, circle.sample, InfoNCE(), recipe, seed=seed)
    return torch.nn.utils.parameters_to_vector(encoder.parameters()).detach()


@pytest.mark.parametrize("optimizer", ["muon", "muon_last", "adam"])
def test_the_same_seed_gives_the_same_weights_to_the_bit(circle, optimizer):
    first, again, other = (weights_after(circle, seed, optimizer=optimizer) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other)


def test_muon_can_be_left_to_the_last_layer(circle):
    encoder = Encoder(2, circle.space, hidden=(16, 16))
    before = [p.detach().clone() for p in encoder.parameters()]
    recipe = Recipe(
        steps=1, batch=32, optimizer="muon_last", matrix_rate=0.1, rate=1e-3, warmup=0.0,
        whiten=False, initialise=False,
    )  # fmt: skip
    train(encoder, circle.sample, InfoNCE(), recipe, seed=0)
    steps = [(p - q).detach() for p, q in zip(encoder.parameters(), before, strict=True)]
    matrices = [step for step in steps if step.ndim == 2]
    # Muon turns: singular values of its step are near the rate. Adam moves every weight by it.
    assert torch.linalg.svdvals(matrices[-1]).sub(0.1).abs().max() < 0.04
    for step in [*matrices[:-1], *(step for step in steps if step.ndim < 2)]:
        assert step.abs().max() == pytest.approx(1e-3, rel=0.01)


def test_evaluation_does_not_change_the_weights(circle, tiny):
    train(**tiny, seed=3, evaluate=lambda encoder: {"size": float(encoder.scale)}, eval_every=4)
    found = torch.nn.utils.parameters_to_vector(tiny["encoder"].parameters()).detach()
    assert torch.equal(found, weights_after(circle, 3))


def test_records_hold_step_seconds_loss_and_what_evaluate_returned(tiny):
    told = []
    losses = []

    def objective(encoder, pairs):
        losses.append(InfoNCE()(encoder, pairs))
        return losses[-1]

    training = train(
        **tiny | {"objective": objective},
        evaluate=lambda encoder: {"score": 7.0},
        eval_every=5,
        callback=lambda step, record: told.append((step, record)),
    )
    assert [record["step"] for record in training.history] == [5, 10, 15, 20]
    for i, record in enumerate(training.history):
        assert set(record) == {"step", "seconds", "loss", "score"}
        assert record["score"] == 7.0
        since = torch.stack(losses[5 * i : 5 * i + 5]).mean().item()
        assert record["loss"] == pytest.approx(since, rel=1e-5)
    seconds = [record["seconds"] for record in training.history]
    assert seconds == sorted(seconds)
    assert training.seconds == seconds[-1] > 0
    assert (training.steps, training.interrupted) == (20, False)
    assert [step for step, _ in told] == list(range(1, 21))
    assert all(set(record) == {"loss"} for _, record in told[:4])
    assert all(record is training.history[step // 5 - 1] for step, record in told[4:])


@pytest.mark.parametrize(
    ("steps", "eval_every"), [(20, 1), (20, 20), (20, 3), (39, 2), (3, 1), (3, 5), (39, None)]
)
def test_there_is_a_record_of_every_nth_step_and_of_the_last(tiny, steps, eval_every):
    tiny["recipe"] = replace(tiny["recipe"], steps=steps)
    found = [record["step"] for record in train(**tiny, eval_every=eval_every).history]
    every = eval_every or 2  # by default there are at most 20 records
    assert found == sorted({*range(every, steps + 1, every), steps})


@pytest.mark.parametrize("eval_every", [0, -3])
def test_evaluations_must_be_at_least_a_step_apart(tiny, eval_every):
    with pytest.raises(DemixError, match=f"eval_every .* >= 1, but got {eval_every}"):
        train(**tiny, eval_every=eval_every)


def test_seconds_leave_evaluations_out(tiny):
    start = time.perf_counter()
    training = train(**tiny, evaluate=lambda encoder: time.sleep(0.1) or {}, eval_every=5)
    assert training.seconds < time.perf_counter() - start - 4 * 0.1


def test_evaluations_happen_in_evaluation_mode_and_without_gradients(tiny):
    seen = []

    def evaluate(encoder):
        seen.append((encoder.training, torch.is_grad_enabled()))
        return {}

    def objective(encoder, pairs):
        seen.append((encoder.training, torch.is_grad_enabled()))
        return InfoNCE()(encoder, pairs)

    train(**tiny | {"objective": objective}, evaluate=evaluate, eval_every=20)
    assert seen == 20 * [(True, True)] + [(False, False)]
    assert not tiny["encoder"].training


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_with_the_step_and_the_rates(tiny, value):
    losses = iter([1.0, 1.0, value])

    def objective(encoder, pairs):
        return LatentMSE()(encoder, pairs) * next(losses)

    with pytest.raises(DemixError, match=rf"became {value} at step 3; lower the rates.*0\.02"):
        train(**tiny | {"objective": objective})
    assert all(torch.isfinite(p).all() for p in tiny["encoder"].parameters())
