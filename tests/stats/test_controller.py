"""Measures of the controller's predictions, by hand."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from rail.errors import DataError
from rail.stats.controller import (
    chosen,
    correlation,
    measures,
    measures_by_seed,
    measures_by_window,
    partial_correlation,
)
from rail.traces.export import TRACES
from tests.traces.grids import filled

F = np.array([0.1, 0.0, 0.1, 0.0])
Y = np.array([0.1, 0.1, 0.0, 0.0])


def trace(*rows: dict[str, Any]) -> pd.DataFrame:
    base = {"mode": "live", "draw": "greedy", "branches": 8, "n_before": 8, "propensity": 0.9}
    base |= {"exploration_rate": 0.1, "features": [0.0] * 50}
    return pd.DataFrame([filled(TRACES, **{**base, **row}) for row in rows])


def test_one_of_each_outcome_is_a_coin() -> None:
    found = measures(F, Y, np.ones(4), gate=0.02)
    assert (found.n, found.agreement, found.majority) == (4, 0.5, 0.5)
    assert (found.balanced_accuracy, found.auroc) == (0.5, 0.5)
    assert found.r == pytest.approx(0.0)
    assert found.mae == pytest.approx(0.05)


def test_weights_count() -> None:
    found = measures(F, Y, np.array([3.0, 1.0, 1.0, 1.0]), gate=0.02)
    assert found.agreement == pytest.approx(4 / 6)
    assert found.majority == pytest.approx(4 / 6)
    assert found.balanced_accuracy == pytest.approx((3 / 4 + 1 / 2) / 2)
    # pairs: 3 x (.1 against .1: half, against 0: won) + 1 x (lost, half) = 5 of 4 x 2
    assert found.auroc == pytest.approx(5 / 8)
    assert found.mae == pytest.approx(0.2 / 6)


def test_gate_is_exclusive_and_perfect_predictions_are_perfect() -> None:
    y = np.array([0.02, 0.03, -0.1])
    found = measures(y, y, np.ones(3), gate=0.02)
    assert found.majority == pytest.approx(2 / 3)  # .02 is not above .02
    assert (found.agreement, found.balanced_accuracy, found.auroc) == (1.0, 1.0, 1.0)
    assert found.r == pytest.approx(1.0)


def test_what_the_draws_do_not_define_is_nan() -> None:
    one_sided = measures(F, np.full(4, 0.1), np.ones(4), gate=0.02)
    assert (one_sided.agreement, one_sided.majority) == (0.5, 1.0)
    assert math.isnan(one_sided.balanced_accuracy)
    assert math.isnan(one_sided.auroc)
    assert math.isnan(one_sided.r)
    none = measures(np.array([]), np.array([]), np.array([]))
    assert none.n == 0
    assert math.isnan(none.agreement)
    unpredicted = measures(np.full(4, np.nan), Y, np.ones(4))
    assert math.isnan(unpredicted.agreement)
    with pytest.raises(DataError, match="weights must be positive"):
        measures(F, Y, np.array([1.0, 1.0, 0.0, 1.0]))


def test_partial_correlation_removes_what_is_shared() -> None:
    ones, given = np.ones(4), np.array([1.0, 1.0, -1.0, -1.0])
    own = np.array([1.0, -1.0, 1.0, -1.0])
    # r(own, given) = 0; r(own + given, given) = 1 / sqrt 2; what is left correlates fully
    assert correlation(own + given, given, ones) == pytest.approx(2**-0.5)
    assert partial_correlation(own + given, own, given, ones) == pytest.approx(1.0)
    assert partial_correlation(own + given, -own, given, ones) == pytest.approx(-1.0)


def test_draws_are_kept_apart() -> None:
    table = trace(
        {"gain": 0.1, "draw": "greedy"},
        {"gain": 0.2, "draw": "explore", "propensity": 0.02},
        {"gain": 0.3, "draw": "explore", "propensity": 0.92},
        {"gain": float("nan"), "draw": "greedy", "executed": False},
        {"gain": 0.4, "mode": "shadow", "draw": "sweep", "last_of_sweep": False},
        {"gain": 0.5, "mode": "shadow", "draw": "sweep", "last_of_sweep": True},
    )
    assert chosen(table, "executed")["gain"].tolist() == [0.1, 0.2, 0.3]
    assert chosen(table, "shadow")["gain"].tolist() == [0.5]
    explored = chosen(table, "explore")
    assert explored["gain"].tolist() == [0.2, 0.3]
    # both were drawn by the coin with probability .02; .92 adds the greedy side's .9
    assert explored["weight"].tolist() == pytest.approx([50.0, 50.0])
    with pytest.raises(DataError, match="propensity outside"):
        chosen(trace({"draw": "explore", "propensity": 0.0}), "explore")


def test_seeds_are_measured_apart_beside_their_comparators() -> None:
    rows = [
        {"seed": seed, "step": step, "gain": gain, "predicted": predicted}
        for seed, predicted in ((1, 0.1), (2, 0.0))
        for step, gain in ((0, 0.1), (1, 0.1), (2, 0.1))
    ]
    found = measures_by_seed(trace(*rows), "executed", gate=0.02)
    assert found["seed"].tolist() == [1, 2]
    assert found["agreement"].tolist() == [1.0, 0.0]
    assert found["mae"].tolist() == pytest.approx([0.0, 0.1])
    # nothing is known in step 0 (error .1), then the mean gain is exact
    assert found["mae_base_rate"].tolist() == pytest.approx([0.1 / 3, 0.1 / 3])


def test_windows_end_at_each_step() -> None:
    rows = [
        {"seed": 1, "step": step, "gain": 0.1, "predicted": 0.1 * (step > 1)} for step in range(4)
    ]
    found = measures_by_window(trace(*rows), "executed", window=2)
    assert found["step"].tolist() == [0, 1, 2, 3]
    assert found["n"].tolist() == [1, 2, 2, 2]
    assert found["agreement"].tolist() == [0.0, 0.0, 0.5, 1.0]
    empty = measures_by_window(trace(*rows), "explore", window=2)
    assert empty.empty
    assert "agreement" in empty
