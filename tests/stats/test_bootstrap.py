"""The hierarchical studentised bootstrap."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rail.errors import DataError
from rail.seeding import generator
from rail.stats.bootstrap import studentised_bootstrap
from rail.stats.intervals import t_interval


def simulated(seeds: int, rng: np.random.Generator) -> dict[str, NDArray[np.float64]]:
    """Return differences with mean .1: sd .3 between seeds, sd 1 between tasks."""
    level = rng.normal(0.1, 0.3, (seeds, 1))
    return {"a": level + rng.normal(0, 1, (seeds, 20)), "b": level + rng.normal(0, 1, (seeds, 10))}


def test_same_generator_gives_the_same_interval() -> None:
    data = simulated(6, generator(0, "data"))
    first = studentised_bootstrap(data, generator(0, "boot"), draws=200)
    assert first == studentised_bootstrap(data, generator(0, "boot"), draws=200)
    assert first != studentised_bootstrap(data, generator(1, "boot"), draws=200)


def test_it_agrees_with_the_t_interval_on_many_seeds() -> None:
    data = simulated(60, generator(0, "data"))
    values = (data["a"].mean(axis=1) + data["b"].mean(axis=1)) / 2
    expected = t_interval(values, 0.95)
    found = studentised_bootstrap(data, generator(0, "boot"), draws=600)
    assert found.low == pytest.approx(expected.low, abs=0.02)
    assert found.high == pytest.approx(expected.high, abs=0.02)


def test_it_covers_about_as_often_as_it_says() -> None:
    covered = 0
    for repeat in range(300):
        data = simulated(8, generator(repeat, "coverage"))
        found = studentised_bootstrap(data, generator(repeat, "boot"), draws=199)
        covered += found.low <= 0.1 <= found.high
    assert 0.91 <= covered / 300 <= 0.99


def test_it_reaches_further_to_the_side_of_the_long_tail() -> None:
    values = np.exp(generator(0, "skew").normal(0, 1, (12, 1)))
    found = studentised_bootstrap({"a": values}, generator(0, "boot"))
    mean = values.mean()
    assert found.high - mean > 1.3 * (mean - found.low)


def test_weights_choose_the_stratum() -> None:
    data = {"a": np.array([[1.0], [1.0], [1.0]]), "b": np.array([[0.0], [5.0], [9.0]])}
    found = studentised_bootstrap(data, generator(0, "boot"), weights={"a": 1.0, "b": 0.0})
    assert (found.low, found.high) == (1.0, 1.0)


def test_one_seed_has_no_interval_and_bad_shapes_are_named() -> None:
    assert math.isnan(studentised_bootstrap({"a": np.ones((1, 3))}, generator(0, "b")).low)
    with pytest.raises(DataError, match=r"'b': \(3, 2\)"):
        studentised_bootstrap({"a": np.ones((2, 2)), "b": np.ones((3, 2))}, generator(0, "b"))
    with pytest.raises(DataError, match="at least one task"):
        studentised_bootstrap({"a": np.ones((2, 0))}, generator(0, "b"))
