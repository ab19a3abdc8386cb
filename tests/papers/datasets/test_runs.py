"""Run lengths are those of pycocotools, and nothing that does not fit the image is believed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco

from demix.papers.datasets.mots import read_runs, sampled


def encoded(image: np.ndarray) -> bytes:
    return coco.encode(np.asfortranarray(image.astype(np.uint8)))["counts"]


@settings(max_examples=50, deadline=None)
@given(
    height=st.integers(1, 90),
    width=st.integers(1, 90),
    share=st.sampled_from([0.0, 0.01, 0.5, 0.99, 1.0]),
    seed=st.integers(0, 2**32),
)
def test_masks_are_those_that_pycocotools_wrote(height, width, share, seed):
    random = np.random.default_rng(seed)
    images = random.random((3, height, width)) < share
    # Long runs need several characters, and differences of either sign.
    images[1] = np.arange(height)[:, None] >= random.integers(height + 1, size=width)
    runs = read_runs([encoded(image) for image in images], height * width)
    assert runs.whole.all()
    whole = sampled(runs, height, np.arange(height), np.arange(width))
    np.testing.assert_array_equal(whole, images)
    rows = np.sort(random.choice(height, size=(height + 1) // 2, replace=False))
    columns = np.sort(random.choice(width, size=(width + 1) // 2, replace=False))
    some = sampled(runs, height, rows, columns)
    np.testing.assert_array_equal(some, images[:, rows][:, :, columns])


def test_a_code_that_is_cut_off_anywhere_is_not_whole():
    image = np.random.default_rng(0).random((40, 50)) < 0.5
    image[-1, -1] = True  # else a last run of background might be missed by nobody
    code = encoded(image)
    cut = [code[:end] for end in range(1, len(code))]
    assert read_runs([*cut, code], 2000).whole.tolist() == [False] * len(cut) + [True]


@pytest.mark.parametrize(
    "code",
    [b"~~~", b"\xff1", b"/1", b"P", b"0", b"o" * 40, b"30M5", encoded(np.ones((9, 9)))],
    ids=["above", "not ascii", "below", "endless", "short", "huge", "negative", "other size"],
)
def test_codes_that_are_none_are_told_and_leave_others_alone(code):
    image = np.random.default_rng(0).random((10, 10)) < 0.5
    runs = read_runs([encoded(image), code, encoded(~image)], 100)
    assert runs.whole.tolist() == [True, False, True]
    first = runs.lengths[: runs.first[1]]
    np.testing.assert_array_equal(np.repeat(np.arange(len(first)) % 2 == 1, first), image.T.ravel())
