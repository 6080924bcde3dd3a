"""Intervals against hand arithmetic."""

import math

import numpy as np
import pytest

from rail.stats.intervals import t_interval, wilson


def test_t_interval_of_four_values() -> None:
    # mean 2.5, sd 1.290994, error .645497, t(.975; 3) = 3.182446
    found = t_interval(np.array([1.0, 2.0, 3.0, 4.0]), 0.95)
    assert (found.low, found.high) == pytest.approx((0.445739, 4.554261), abs=1e-5)
    assert t_interval(np.array([1.0, 2.0, 3.0, 4.0]), 0.90).low > found.low


def test_one_value_has_no_interval_and_equal_values_give_a_point() -> None:
    assert math.isnan(t_interval(np.array([1.0]), 0.95).low)
    found = t_interval(np.array([0.5, 0.5]), 0.95)
    assert (found.low, found.high) == (0.5, 0.5)


def test_wilson_of_five_in_ten_and_of_none() -> None:
    found = wilson(5, 10)
    # centre .5, half-width 1.96 / 1.384146 * sqrt(.025 + .00960365) = .263410
    assert (found.low, found.high) == pytest.approx((0.236590, 0.763410), abs=1e-5)
    none = wilson(0, 10)
    assert none.low == 0.0
    assert none.high == pytest.approx(0.277533, abs=1e-5)  # z^2 / (n + z^2)


def test_wilson_refuses_more_successes_than_trials() -> None:
    with pytest.raises(ValueError, match="k"):
        wilson(3, 2)
