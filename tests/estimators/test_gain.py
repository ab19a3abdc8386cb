"""The held-out gain: closed forms, an interval that knows of blocks, and an honest null."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from demix import ClassifierDemixer, DemixWarning, Encoder, Gain, InfoNCE, Real, Sphere
from demix.data.data import as_data
from demix.estimators.fitting import derangement, gain_of
from demix.estimators.gain import held_out_gain
from demix.estimators.pair_sources import GivenPairs

LN2 = math.log(2)


def test_the_gain_is_the_mean_difference_in_bits():
    own, permuted = torch.tensor([-1.0, -2.0, -3.0]), torch.tensor([-4.0, -4.0, -4.0])
    gain = held_out_gain(own, permuted, torch.arange(3))
    assert gain.bits == pytest.approx(2 / LN2)
    assert (gain.loss, gain.null) == (2.0, 4.0)
    # Student's interval of 3, 2, 1 nats.
    reach = stats.t.ppf(0.975, 2) / math.sqrt(3) / LN2
    assert (gain.low, gain.high) == pytest.approx((2 / LN2 - reach, 2 / LN2 + reach))


def test_equal_likelihoods_gain_nothing():
    own = torch.randn(50, generator=torch.Generator().manual_seed(0))
    gain = held_out_gain(own, own, torch.arange(50))
    assert (gain.bits, gain.low, gain.high) == (0, 0, 0)
    assert not gain.above_zero


def test_samples_of_one_block_count_once_in_the_interval():
    means = torch.tensor([1.0, 2.0, 4.0, 5.0], dtype=torch.float64)
    alone = held_out_gain(means, torch.zeros(4), torch.arange(4))
    copies = held_out_gain(
        means.repeat_interleave(100), torch.zeros(400), torch.arange(4).repeat_interleave(100)
    )
    assert (copies.low, copies.high) == pytest.approx((alone.low, alone.high))
    unaware = held_out_gain(means.repeat_interleave(100), torch.zeros(400), torch.arange(400))
    assert unaware.high - unaware.low < 0.1 * (copies.high - copies.low)


def test_the_names_and_the_order_of_blocks_do_not_matter():
    own = torch.randn(60, generator=torch.Generator().manual_seed(0))
    blocks = torch.arange(60) // 7
    order = torch.randperm(60, generator=torch.Generator().manual_seed(1))
    first = held_out_gain(own, own * 0, blocks)
    second = held_out_gain(own[order], own * 0, -1000 * blocks[order] + 3)
    assert first.bits == pytest.approx(second.bits)
    assert first.low == pytest.approx(second.low)


def test_large_blocks_weigh_more_in_the_mean():
    gain = held_out_gain(torch.tensor([1.0, 1.0, 4.0]), torch.zeros(3), torch.tensor([0, 0, 1]))
    assert gain.bits == pytest.approx(2 / LN2)


def test_one_block_says_nothing_of_its_spread():
    gain = held_out_gain(torch.ones(5), torch.zeros(5), torch.zeros(5, dtype=torch.int64))
    assert gain.bits == pytest.approx(1 / LN2)
    assert (gain.low, gain.high) == (-math.inf, math.inf)
    assert not gain.above_zero


def test_the_interval_covers_the_truth_as_often_as_it_says():
    random = np.random.default_rng(0)
    hits = 0
    for _ in range(200):
        # 12 blocks of 5 samples that have most of their spread in common.
        own = random.normal(size=(12, 1)) + 0.3 * random.normal(size=(12, 5)) + LN2
        gain = held_out_gain(
            torch.from_numpy(own.ravel()), torch.zeros(60), torch.arange(12).repeat_interleave(5)
        )
        hits += gain.low < 1 < gain.high
    assert 0.9 < hits / 200 < 0.99


@pytest.mark.parametrize("size", [2, 3, 10, 257])
def test_a_derangement_moves_everything_and_loses_nothing(size):
    order = derangement(size)
    assert sorted(order.tolist()) == list(range(size))
    assert not (order == torch.arange(size)).any()
    assert torch.equal(order, derangement(size))


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


def test_the_true_latents_gain_over_permuted_positives():
    gain = gain_of(FirstColumn(1, Sphere(2)), InfoNCE(), pairs_of_angles(0.3), 200)
    assert gain.above_zero
    assert gain.loss < math.log(200) < gain.null
    assert gain.bits == pytest.approx((gain.null - gain.loss) / LN2, rel=1e-4)


def test_positives_without_a_link_are_like_permuted_ones():
    encoder = FirstColumn(1, Sphere(2))
    gains = [gain_of(encoder, InfoNCE(), pairs_of_angles(100.0, s), 200) for s in range(40)]
    missed = sum(not gain.low < 0 < gain.high for gain in gains)
    assert missed <= 6  # of 2 expected: more have a chance of one in a hundred
    assert abs(np.mean([gain.bits for gain in gains])) < 0.5


def test_a_model_that_knows_nothing_loses_the_logarithm_of_the_batch():
    flat = Encoder(1, Real(2), hidden=(4,))
    with torch.no_grad():
        for parameter in flat.body.parameters():
            parameter.zero_()
    gain = gain_of(flat, InfoNCE(), pairs_of_angles(0.3), 60)
    assert (gain.bits, gain.loss, gain.null) == pytest.approx((0, math.log(60), math.log(60)))


def test_a_gain_is_told_in_bits_and_a_missing_one_is_warned_of():
    gain = Gain(bits=1.0, low=0.5, high=1.5, loss=1.0, null=2.0)
    assert str(gain) == "1.000 bits (95 % interval 0.500 to 1.500)"
    fitted = ClassifierDemixer()
    fitted.gain_ = gain
    fitted._warn_of_gain()  # warnings are errors here
    fitted.gain_ = Gain(bits=0.1, low=-0.5, high=0.7, loss=1.0, null=2.0)
    with pytest.warns(DemixWarning, match=r"held-out labels .* is 0\.100 bits .* not above zero"):
        fitted._warn_of_gain()
