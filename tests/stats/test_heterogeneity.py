"""I2 by hand."""

import math

import pytest

from rail.stats.heterogeneity import i_squared


def test_i_squared_of_two_benchmarks() -> None:
    # centre 1, Q = 1 + 1 = 2, one degree of freedom: (2 - 1) / 2
    assert i_squared([0.0, 2.0], [1.0, 1.0]) == pytest.approx(0.5)
    # weights 1 and 4, centre 1.6, Q = 2.56 + 4 x .16 = 3.2
    assert i_squared([0.0, 2.0], [1.0, 0.5]) == pytest.approx(2.2 / 3.2)


def test_agreement_is_zero_and_one_benchmark_is_undefined() -> None:
    assert i_squared([0.3, 0.3], [1.0, 1.0]) == 0.0
    assert i_squared([0.3, 0.4], [1.0, 1.0]) == 0.0
    assert math.isnan(i_squared([0.3], [1.0]))
    assert math.isnan(i_squared([0.3, 0.4], [1.0, float("nan")]))
