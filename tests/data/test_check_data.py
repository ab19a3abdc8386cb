"""One pass finds what is wrong with data, whatever block it lies in."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import refusal

from demix import Data, DemixWarning
from demix.data.checks import check_data
from demix.data.data import as_data
from demix.data.rows import ArrayRows

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(400, 3)).astype(np.float32)


class SmallBlocks(Data):
    """Data that come in blocks of 7 rows, so that a short array has many."""

    def raw_blocks(self, size=None):
        return super().raw_blocks(7)


def small_blocks(array) -> Data:
    return SmallBlocks(ArrayRows(np.asarray(array, dtype=np.float32)), "x.npy")


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("wrap", [as_data, small_blocks])
def test_mean_and_std_are_those_of_numpy(shift, wrap):
    array = MATRIX * [1, 10, 100] + np.float32(shift)
    data = wrap(array)
    found = check_data(data)
    exact = array.astype(data.rows.dtype).astype(np.float64)
    np.testing.assert_allclose(found.mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.std, exact.std(axis=0), rtol=1e-9)


@given(rows=st.integers(2, 60), scale=st.floats(1e-6, 1e6), seed=st.integers(0, 99))
def test_blocks_do_not_show_in_the_findings(rows, scale, seed):
    array = scale * np.random.default_rng(seed).normal(size=(rows, 2)).astype(np.float32)
    one, many = check_data(as_data(array)), check_data(small_blocks(array))
    np.testing.assert_allclose(one.mean, many.mean, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(one.std, many.std, rtol=1e-9)
    assert one.duplicated == many.duplicated == 0


def test_good_data_are_not_warned_of():
    found = check_data(as_data(MATRIX), batch=400)
    assert found.sentences() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found.warn()


def test_channels_are_the_columns_of_images():
    images = RNG.uniform(size=(20, 3, 4, 5)).astype(np.float32)
    images[:, 1] = 0.5
    images[:, 0, 0, 0] = 0  # a corner that never changes is common and harmless
    found = check_data(small_blocks(images))
    assert found.constant == ("1",)
    np.testing.assert_allclose(found.mean, images.astype(float).mean(axis=(0, 2, 3)), rtol=1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_with_their_place(value):
    array = MATRIX.copy()
    array[[33, 210, 211], [2, 0, 1]] = value
    told = refusal(check_data, small_blocks(array))
    assert "3 of 400 rows of x.npy hold NaN" in told
    assert "the first of them row 33, column 2 (counted from 0)" in told


def test_infinity_is_refused_in_half_precision():
    array = MATRIX.astype(np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_data(as_data(array))
    array[33, 2] = np.inf
    assert "the first of them row 33, column 2" in refusal(check_data, as_data(array))


# In float32, the second minus its negative is infinite, and no column could be centred.
@pytest.mark.parametrize("value", [1e300, 3e38])
def test_numbers_too_large_for_float32_are_refused(value):
    array = MATRIX.astype(np.float64)
    array[5, 1] = value
    assert "1 of 400 rows of the array hold NaN, infinity or numbers beyond" in refusal(
        check_data, as_data(array)
    )


def test_too_few_rows_are_refused():
    assert "at least 2 rows to tell apart, but the array has 1" in refusal(
        check_data, as_data(MATRIX[:1])
    )
    told = refusal(check_data, as_data(MATRIX), batch=512)
    assert "A batch of 512 needs as many rows, but the array has 400" in told


def test_constant_columns_are_found_and_refused_if_there_are_no_others():
    array = MATRIX * [1, 0, 1] + np.float32(0.1)
    found = check_data(small_blocks(array))
    assert found.constant == ("1",)
    assert found.std[1] == 0
    with pytest.warns(DemixWarning, match=r"1 of 3 columns of x\.npy never change \(1\)"):
        found.warn()
    assert "all of the array are constant" in refusal(check_data, as_data(np.full((9, 2), 0.1)))


def test_duplicated_rows_are_counted_across_blocks():
    array = np.concatenate([MATRIX, MATRIX[:40], MATRIX[:10]])
    array[:, 0] += 0.0
    array[0, 1], array[400, 1], array[440, 1] = 0.0, -0.0, 0.0
    found = check_data(small_blocks(array))
    assert found.duplicated == 50
    with pytest.warns(DemixWarning, match=r"50 of 450 rows of x\.npy \(11\.1%\) repeat"):
        found.warn()


def test_scales_that_differ_wildly_are_found_past_constant_columns():
    array = MATRIX * [1, 1e-3, 1e3]
    assert check_data(as_data(array)).ratio == pytest.approx(1e6, rel=0.2)
    named = Data(as_data(np.c_[array, np.ones(400)]).rows, "x.csv", ("a", "b", "c", "d"))
    found = check_data(named)
    assert found.constant == ("d",)
    with pytest.warns(DemixWarning) as told:
        found.warn()
    assert len(told) == 2
    assert "in column c" in str(told[1].message)
    assert "in column b); a fit brings them to one scale" in str(told[1].message)
    assert check_data(as_data(MATRIX * [1, 1e2, 1e-1])).sentences() == []


@pytest.mark.parametrize("size", [1e-36, 1e-42, 1e-200])  # the last is 0 once it is squared
def test_columns_too_small_for_float32_are_refused(size):
    array = MATRIX.astype(np.float64) * [1, size, 1]
    assert "column 1 of the array varies by less" in refusal(check_data, as_data(array))
