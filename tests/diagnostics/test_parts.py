"""No row is in two parts, and nothing that belongs together is torn apart."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from demix import DemixError
from demix.diagnostics.parts import pairs_within, row_parts, time_parts


def check(parts, rows: int, share: float) -> None:
    every = torch.cat([parts.fit, parts.align, parts.test])
    assert len(every.unique()) == len(every) <= rows
    assert len(parts.fit) == pytest.approx((1 - share) * rows, abs=0.03 * rows)
    assert len(parts.blocks) == len(parts.test)
    for part in (parts.fit, parts.align, parts.test):
        assert (part.diff() > 0).all()


@pytest.mark.parametrize("rows", [500, 3001, 200_000])
def test_time_is_held_out_at_its_end_in_stretches(rows):
    parts = time_parts(rows, 0.25, 3, 20)
    check(parts, rows, 0.25)
    assert int(parts.fit[-1]) < int(parts.align[0]) < int(parts.test[0])
    assert max(len(parts.align), len(parts.test)) <= 20_000
    # Rows of a block are neighbours, between rows that align.
    assert (np.diff(parts.blocks) >= 0).all()
    for block in np.unique(parts.blocks):
        own = parts.test[torch.from_numpy(parts.blocks == block)]
        assert not ((parts.align > own[0]) & (parts.align < own[-1])).any()


def test_stretches_alternate_and_random_rows_are_halved():
    parts = time_parts(1000, 0.2, 1, 10)
    assert len(parts.fit) == 800
    assert parts.align[:5].tolist() == [800, 801, 802, 803, 808]
    assert parts.test[:5].tolist() == [804, 805, 806, 807, 812]
    parts = row_parts(1000, 0.2, 10, seed=0)
    assert (len(parts.fit), len(parts.align), len(parts.test)) == (800, 100, 100)


@pytest.mark.parametrize("rows", [400, 200_000])
def test_rows_are_held_out_at_random(rows):
    parts = row_parts(rows, 0.25, 20, seed=0)
    check(parts, rows, 0.25)
    assert len(np.unique(parts.blocks)) == 25
    assert not torch.equal(parts.fit, row_parts(rows, 0.25, 20, seed=1).fit)
    assert torch.equal(parts.fit, row_parts(rows, 0.25, 20, seed=0).fit)


def test_of_every_class_some_are_held_out_and_none_vanishes():
    labels = np.repeat(np.arange(60), [500, 100, *[3] * 57, 1])
    parts = row_parts(len(labels), 0.3, 20, seed=0, labels=labels)
    check(parts, len(labels), 0.3)
    assert len(np.unique(labels[parts.fit])) == 60
    assert 140 < (labels[parts.align] == 0).sum() + (labels[parts.test] == 0).sum() < 160


def test_rows_that_pairs_connect_stay_together():
    pairs = torch.arange(1000).reshape(-1, 2)
    chain = torch.stack([torch.arange(900, 930), torch.arange(901, 931)], dim=1)
    parts = row_parts(1000, 0.25, 20, seed=0, pairs=torch.cat([pairs, chain]))
    check(parts, 1000, 0.25)
    for part in (parts.fit, parts.align, parts.test):
        inside = torch.isin(torch.cat([pairs, chain]), part)
        assert torch.equal(inside[:, 0], inside[:, 1])
    assert len(pairs_within(pairs, parts.fit, 1000)) == len(parts.fit) // 2


def test_rows_that_are_all_connected_are_split_at_random():
    pairs = torch.stack([torch.arange(999), torch.arange(1, 1000)], dim=1)
    parts = row_parts(1000, 0.25, 20, seed=0, pairs=pairs)
    check(parts, 1000, 0.25)
    kept = pairs_within(pairs, parts.fit, 1000)
    assert 400 < len(kept) < 700
    assert (parts.fit[kept[:, 1]] - parts.fit[kept[:, 0]] == 1).all()


def test_too_few_rows_are_refused():
    with pytest.raises(DemixError, match=r"at least 48 held-out rows, but a share of 0\.25 of 100"):
        time_parts(100, 0.25, 1, 20)
    with pytest.raises(DemixError, match="at least 400 held-out rows"):
        time_parts(1000, 0.25, 10, 20)
    with pytest.raises(DemixError, match="at least 40 held-out rows"):
        row_parts(100, 0.25, 20, seed=0)


def test_too_few_rows_to_fit_are_laid_to_the_share_that_is_held_out():
    words = (
        r"takes at least 2[01] rows, but held_out 0\.999 of 300 rows leaves [01]; .* a smaller held"
    )
    with pytest.raises(DemixError, match=words):
        time_parts(300, 0.999, 1, 20)
    with pytest.raises(DemixError, match=words):
        row_parts(300, 0.999, 20, seed=0)
