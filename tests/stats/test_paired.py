"""Paired estimates against hand arithmetic."""

import math

import numpy as np
import pytest

from rail.seeding import generator
from rail.stats.paired import paired, sign_flip_test, t_test


def test_estimate_of_four_differences() -> None:
    found = paired([1.0, 2.0, 3.0, 4.0], generator(0, "t"))
    assert (found.mean, found.n) == (2.5, 4)
    assert found.sd == pytest.approx(math.sqrt(5 / 3))
    assert found.error == pytest.approx(0.645497, abs=1e-6)
    assert found.ci95.low == pytest.approx(0.445739, abs=1e-5)
    # t = sqrt(15); with 3 degrees of freedom P = 2 (1/2 - (sqrt5 / 6 + atan sqrt5) / pi)
    assert found.p == pytest.approx(1 - 2 * (math.sqrt(5) / 6 + math.atan(math.sqrt(5))) / math.pi)
    assert found.p_sign_flip == 2 / 16


@pytest.mark.parametrize(
    ("values", "p"),
    [
        ([1.0, 2.0, 3.0], 2 / 8),  # only +++ and --- reach |mean| = 2
        ([1.0, -1.0], 4 / 4),  # every pattern reaches 0
        ([3.0, 1.0, -1.0], 6 / 8),  # |sum| is 5, 3, 3, 1 twice each; 3 is reached by six
        ([0.0, 0.0], 1.0),
        ([5.0], 1.0),
    ],
)
def test_sign_flip_counts_every_pattern(values: list[float], p: float) -> None:
    assert sign_flip_test(np.array(values), generator(0, "unused")) == p


def test_sign_flip_is_exact_at_sixteen_and_seeded_beyond() -> None:
    assert sign_flip_test(np.ones(16), generator(0, "a")) == 2 / 65536
    values = generator(1, "values").normal(0.3, 1.0, 17)
    first = sign_flip_test(values, generator(0, "a"))
    assert first == sign_flip_test(values, generator(0, "a"))
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    exact = float(np.mean(np.abs(sums) >= abs(values.sum()) - 1e-12))
    assert first == pytest.approx(exact, abs=0.015)


def test_one_sided_test_against_a_margin() -> None:
    values = np.array([1.0, 2.0, 3.0, 4.0])
    assert t_test(values, null=2.5, upper=True) == pytest.approx(0.5)
    assert t_test(values, null=0.0, upper=True) == pytest.approx(t_test(values) / 2)


def test_values_without_spread_are_certain_and_one_value_is_not() -> None:
    assert t_test(np.array([0.0, 0.0])) == 1.0
    assert t_test(np.array([0.1, 0.1])) == 0.0
    assert t_test(np.array([0.1, 0.1]), null=0.2, upper=True) == 1.0
    assert math.isnan(t_test(np.array([0.1])))


@pytest.mark.parametrize("values", [[], [float("nan")], [[1.0, 2.0]]])
def test_what_is_no_list_of_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        paired(values, generator(0, "t"))
