"""What is known of held-out targets: closed forms, ceilings, intervals and an honest test."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.datasets import load_wine

from demix import (
    Classification,
    ClassifierDemixer,
    ContrastiveDemixer,
    DemixWarning,
    Encoder,
    Gain,
    InfoNCE,
    Real,
    Recipe,
    Sphere,
)
from demix.data.data import as_data
from demix.estimators.fitting import HeldOut
from demix.estimators.gain import (
    Prediction,
    block_mean,
    fitted_sharpness,
    held_out_gain,
    mean_loss,
)
from demix.estimators.sources import GivenPairs, LabelledRows

LN2 = math.log(2)


def predicted(log_p, own, blocks=None, guess=None) -> Prediction:
    keys = log_p.shape[1]
    guess = torch.full((keys,), 1 / keys).double() if guess is None else guess.double()
    guess = (guess / guess.sum()).log()
    blocks = torch.arange(len(own)) if blocks is None else blocks
    return Prediction(log_p.log_softmax(dim=1), own, blocks, guess)


def guesses(size: int = 400, keys: int = 8, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return labels, and logits that are right in a part of the cases and far too sure."""
    random = np.random.default_rng(seed)
    own = random.integers(keys, size=size)
    seen = np.where(random.random(size) < 0.6, own, random.integers(keys, size=size))
    return torch.from_numpy(30.0 * np.eye(keys)[seen]), torch.from_numpy(own)


def test_information_is_the_loss_of_a_guess_less_the_own():
    log_p, own = torch.tensor([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8]]).log(), [0, 1, 2]
    gain = held_out_gain([predicted(log_p, torch.tensor(own))], 1.0)
    each = np.log2([0.7, 0.5, 0.8]) + np.log2(3)
    assert gain.bits == pytest.approx(each.mean(), abs=1e-6)
    assert gain.ceiling == pytest.approx(np.log2(3))
    assert gain.loss == pytest.approx(-np.log([0.7, 0.5, 0.8]).mean())
    reach = stats.t.ppf(0.975, 2) * stats.sem(each)
    assert gain.low == pytest.approx(each.mean() - reach, abs=1e-6)
    assert gain.high == pytest.approx(min(each.mean() + reach, np.log2(3)), abs=1e-6)


def test_overconfidence_is_tempered_and_does_not_raise_it():
    log_p, own = guesses()
    prediction = predicted(log_p, own)
    assert mean_loss([prediction]) > math.log(8)  # worse than a uniform guess
    assert held_out_gain([prediction], 1.0).bits < 0
    sharpness = fitted_sharpness([prediction])
    gain = held_out_gain([predicted(*guesses(seed=1))], sharpness)
    # A channel of 8 letters that is right with the probability 0.6 + 0.4 / 8.
    right = 0.6 + 0.4 / 8
    capacity = 3 + right * math.log2(right) + (1 - right) * math.log2((1 - right) / 7)
    assert gain.bits == pytest.approx(capacity, abs=0.25)
    assert gain.low < capacity < gain.high
    assert gain.p_value == 0.01


@pytest.mark.parametrize("scale", [0.1, 10.0, 1e3])
def test_no_model_knows_more_than_there_is_to_know(scale):
    own = torch.randint(5, (300,), generator=torch.Generator().manual_seed(0))
    own[:200] = 0
    perfect = scale * torch.eye(5)[own]
    share = torch.bincount(own, minlength=5) / 300
    gain = held_out_gain([predicted(perfect, own, guess=share)], 1.0)
    entropy = float(-(share * share.log2()).sum())
    assert gain.ceiling == pytest.approx(entropy, rel=1e-6)
    assert gain.bits <= gain.high <= gain.ceiling
    assert gain.bits == pytest.approx(entropy, rel=1e-3) or scale < 1


def test_the_sharpness_makes_a_model_as_sure_as_it_is_right():
    sure, own = torch.tensor([[0.999, 0.001]] * 80).log(), torch.tensor([0, 0, 0, 1] * 20)
    guess = torch.full((2,), 0.5, dtype=torch.float64).log()
    beta = fitted_sharpness([Prediction(sure, own, torch.arange(80), guess)])
    assert float((beta * sure[0]).softmax(dim=0)[0]) == pytest.approx(0.75, abs=5e-4)


def test_the_best_sharpness_has_no_slope_and_is_zero_for_noise():
    log_p, own = guesses()
    beta = fitted_sharpness([predicted(log_p, own)])
    losses = [mean_loss([predicted(log_p, own)], beta + step) for step in (-1e-3, 0, 1e-3)]
    assert losses[1] <= min(losses)
    assert fitted_sharpness([predicted(-log_p, own)]) == 0
    nothing = held_out_gain([predicted(-log_p, own)], 0.0)
    assert (nothing.bits, nothing.low, nothing.high, nothing.p_value) == (0, 0, 0, 1)
    assert not nothing.above_zero


def test_without_sharpness_the_guess_is_what_is_left():
    own, share = torch.arange(4), torch.tensor([0.4, 0.3, 0.2, 0.1])
    prediction = predicted(torch.randn(4, 4), own, guess=share)
    assert mean_loss([prediction], 0.0) == pytest.approx(-float(share.log().mean()))


def test_samples_of_one_block_count_once_in_the_interval():
    means = torch.tensor([1.0, 2.0, 4.0, 5.0], dtype=torch.float64)
    alone = block_mean(means, torch.arange(4))
    copies = block_mean(means.repeat_interleave(100), torch.arange(4).repeat_interleave(100))
    assert copies == pytest.approx(alone)
    unaware = block_mean(means.repeat_interleave(100), torch.arange(400))
    assert unaware[1] < 0.1 * copies[1]


def test_the_names_and_the_order_of_blocks_do_not_matter():
    own = torch.randn(60, generator=torch.Generator().manual_seed(0))
    blocks = torch.arange(60) // 7
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    first = block_mean(own, blocks)
    assert first == pytest.approx(block_mean(own[order], -1000 * blocks[order] + 3))


def test_large_blocks_weigh_more_in_the_mean_and_one_block_has_no_spread():
    mean, _ = block_mean(torch.tensor([1.0, 1.0, 4.0]), torch.tensor([0, 0, 1]))
    assert mean == pytest.approx(2)
    assert block_mean(torch.ones(5), torch.zeros(5, dtype=torch.int64)) == (1, math.inf)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        # 12 blocks of 5 samples that have most of their spread in common.
        own = random.normal(size=(12, 1)) + 0.3 * random.normal(size=(12, 5)) + 1
        mean, reach = block_mean(
            torch.from_numpy(own.ravel()), torch.arange(12).repeat_interleave(5)
        )
        hits += abs(mean - 1) < reach
    assert 0.9 < hits / 200 < 0.99


def test_the_test_knows_of_blocks():
    # 30 blocks of 10 samples, each of one label, and a model that has learnt the blocks.
    label = torch.from_numpy(np.random.default_rng(0).integers(3, size=30)).repeat_interleave(10)
    other = torch.from_numpy(np.random.default_rng(1).integers(3, size=30)).repeat_interleave(10)
    blocks = torch.arange(30).repeat_interleave(10)
    logits = 1.0 * torch.eye(3)[other]
    whole = held_out_gain([predicted(logits, label, blocks)], 0.2)
    alone = held_out_gain([predicted(logits, label)], 0.2)
    assert whole.high - whole.low > 2 * (alone.high - alone.low)
    one_block = torch.zeros(300, dtype=torch.int64)
    assert held_out_gain([predicted(logits, label, one_block)], 0.2).p_value == 1


class FirstColumn(Encoder):
    """The true latents: a point on the circle for the angle in the first column."""

    def forward(self, x):
        return 4 * torch.stack([x[:, 0].cos(), x[:, 0].sin()], dim=1)


def pairs_of_angles(noise: float, seed: int = 0) -> GivenPairs:
    random = np.random.default_rng(seed)
    angle = random.uniform(0, 2 * np.pi, 600)
    both = np.stack([angle, angle + noise * random.normal(size=600)], axis=1).reshape(-1, 1)
    return GivenPairs(
        as_data(both.astype(np.float32)), torch.arange(1200).reshape(-1, 2), share=0.2, seed=0
    )


def gain_with(encoder, source, batch: int) -> Gain:
    held = HeldOut(source, ("train", "validation", "test"), batch)
    return held_out_gain(held.predictions(encoder, InfoNCE()), 1.0)


def test_the_true_latents_know_of_their_positives():
    gain = gain_with(FirstColumn(1, Sphere(2)), pairs_of_angles(0.3), 200)
    assert gain.above_zero
    assert gain.p_value == 0.01
    # Parts of 480, 60 and 60 pairs: in batches of 160 and 60.
    most = (480 * math.log2(160) + 120 * math.log2(60)) / 600
    assert gain.ceiling == pytest.approx(most)
    assert gain.bits == pytest.approx(most - gain.loss / LN2, rel=1e-4)


def test_positives_without_a_link_carry_nothing():
    encoder = FirstColumn(1, Sphere(2))
    gains = []
    for seed in range(40):
        parts = [
            HeldOut(pairs_of_angles(100.0, seed), (part,), 200).predictions(encoder, InfoNCE())
            for part in ("validation", "train")
        ]
        gains.append(held_out_gain(parts[1], fitted_sharpness(parts[0])))
    missed = sum(not gain.low <= 0 <= gain.high for gain in gains)
    assert missed <= 6  # of 2 expected: more have a chance of one in a hundred
    assert abs(np.mean([gain.bits for gain in gains])) < 0.05
    assert np.mean([gain.p_value <= 0.05 for gain in gains]) < 0.2


def test_a_model_that_knows_nothing_loses_the_logarithm_of_the_batch():
    flat = Encoder(1, Real(2), hidden=(4,))
    with torch.no_grad():
        for parameter in flat.body.parameters():
            parameter.zero_()
    gain = gain_with(flat, pairs_of_angles(0.3), 60)
    assert (gain.bits, gain.loss) == pytest.approx((0, math.log(60)), abs=1e-6)


def test_batches_hold_every_sample_once_with_its_target():
    labels = torch.arange(40) % 3
    source = LabelledRows(
        as_data(np.arange(40.0)[:, None].astype(np.float32)), labels, 4, share=0.5, seed=0
    )
    held = HeldOut(source, ("validation", "test"), 4)
    rows = torch.cat([samples.x[:, 0] for samples, _, _ in held.batches]).long()
    assert sorted(rows) == sorted(torch.cat([source.units["validation"], source.units["test"]]))
    objective = Classification(4, 2, bias=True)
    for found, (samples, _, _) in zip(
        held.predictions(Encoder(1, Real(2)), objective), held.batches, strict=True
    ):
        assert torch.equal(found.own, labels[samples.x[:, 0].long()])
        # The fourth class has no row.
        assert found.guess.exp().tolist() == pytest.approx([14 / 40, 13 / 40, 13 / 40, 0], abs=1e-6)


def test_shuffled_rows_carry_nothing():
    x, y = load_wine(return_X_y=True)
    random = np.random.default_rng(0)
    # After 60 steps, a sharpness that is never fitted is not noticed; after 24 it is.
    quick = {"recipe": Recipe(steps=24, batch=64), "encoder": {"hidden": (16, 16)}}
    hits = 0
    for seed in range(12):
        labels = ClassifierDemixer(2, random_state=seed, **quick)
        pairs = ContrastiveDemixer(2, random_state=seed, **quick)
        for demixer, given in ((labels, (x, random.permutation(y))), (pairs, (x,))):
            rows = random.permutation(len(x)) if demixer is pairs else slice(None)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DemixWarning)
                gain = demixer.fit(given[0][rows], *given[1:]).gain_
            assert gain.bits <= gain.ceiling
            hits += gain.low <= 0 <= gain.high
    assert hits >= 20  # of 23 expected


def test_a_gain_is_told_in_bits_and_a_missing_one_is_warned_of():
    rest = {"ceiling": 3.0, "loss": 1.0, "sharpness": 1.0, "p_value": 0.2}
    gain = Gain(bits=1.0, low=0.5, high=1.5, **rest)
    assert str(gain) == "1.000 of 3.00 bits (95 % interval 0.500 to 1.500)"
    assert Gain.from_dict(gain.to_dict()) == gain
    fitted = ClassifierDemixer()
    fitted.gain_ = gain
    fitted._warn_of_gain()  # warnings are errors here
    fitted.gain_ = Gain(bits=0.1, low=-0.5, high=0.7, **rest)
    with pytest.warns(DemixWarning, match=r"carry 0\.100 of 3\.00 bits .* not above zero"):
        fitted._warn_of_gain()


def test_a_few_samples_without_an_error_make_no_model_surer():
    """Forty right answers of forty fit to any sharpness, and the first error would cost it."""
    log_p = torch.tensor([[0.99, 0.01], [0.01, 0.99]]).log().repeat(20, 1)
    labels, guess = torch.arange(40) % 2, torch.full((2,), 0.5).log().double()
    assert fitted_sharpness([Prediction(log_p, labels, torch.arange(40), guess)]) <= 1
    careful = torch.tensor([[0.6, 0.4], [0.4, 0.6]]).log().repeat(20, 1)
    assert fitted_sharpness([Prediction(careful, labels, torch.arange(40), guess)]) > 1
