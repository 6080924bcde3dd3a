"""Prequential replay of simpler predictors."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from rail.controller.features import NAMES
from rail.errors import DataError
from rail.seeding import generator
from rail.stats.replay import COMPARATORS, TASK_EMA, Ridge, replay
from rail.traces.schema import INTERVENTIONS
from tests.traces.grids import filled


def trace(*rows: dict[str, Any]) -> pd.DataFrame:
    base = {"n_before": 8, "branches": 8, "features": [0.0] * 50}
    return pd.DataFrame([filled(INTERVENTIONS, **{**base, **row}) for row in rows])


def test_base_rate_is_the_recency_weighted_mean_of_earlier_steps() -> None:
    table = trace(
        {"step": 0, "gain": 0.2},
        {"step": 8, "gain": 0.8},
        {"step": 16, "gain": 9.0},
    )
    # half-life 8: at step 16 the labels weigh 1/4 and 1/2, so (.05 + .4) / .75
    assert replay(table, "base_rate", half_life=8).tolist() == pytest.approx([0.0, 0.2, 0.6])
    assert replay(table, "base_rate", buffer=1).tolist() == pytest.approx([0.0, 0.2, 0.8])


def test_labels_of_the_same_step_are_not_seen() -> None:
    table = trace({"step": 3, "gain": 0.5}, {"step": 3, "gain": 0.7}, {"step": 4, "gain": 0.0})
    assert replay(table, "base_rate").tolist() == pytest.approx([0.0, 0.0, 0.6])


@pytest.mark.parametrize("name", sorted(COMPARATORS))
def test_the_future_changes_nothing(name: str) -> None:
    rng = generator(0, "rows")
    rows = [
        {
            "step": i // 4,
            "gain": float(rng.normal()),
            "k_before": float(rng.integers(9)),
            "anchor_entropy": float(rng.random()),
            "features": rng.random(50).tolist(),
        }
        for i in range(40)
    ]
    before = replay(trace(*rows), name)
    late = [row | {"gain": 5.0} if row["step"] >= 6 else row for row in rows]
    after = replay(trace(*late), name)
    assert before[:28].tolist() == after[:28].tolist()
    assert before[28:].tolist() != after[28:].tolist()


def test_pool_mean_learns_what_depends_on_the_pool_and_entropy_does_not() -> None:
    rng = generator(0, "pool")
    rows = []
    for i in range(200):
        k = float(rng.integers(9))
        gain = 0.3 * abs(k / 8 - 0.5) - 0.05 + float(rng.normal(0, 0.01))
        rows.append({"step": i // 8, "gain": gain, "k_before": k, "anchor_entropy": 0.3})
    table = trace(*rows)
    gains = table["gain"].to_numpy()
    errors = {name: np.abs(replay(table, name) - gains)[80:].mean() for name in COMPARATORS}
    assert errors["pool_mean"] < 0.02
    assert errors["entropy"] == pytest.approx(errors["base_rate"])
    assert errors["base_rate"] > 2 * errors["pool_mean"]


def test_skips_are_neither_predicted_nor_learned() -> None:
    table = trace(
        {"step": 0, "gain": 0.2},
        {"step": 1, "gain": float("nan"), "executed": False, "branches": 0},
        {"step": 2, "gain": 0.0},
    )
    found = replay(table, "pool_mean")
    assert np.isnan(found[1])
    assert found[2] == pytest.approx(0.2)


def test_another_regressor_can_be_handed_in() -> None:
    class Last:
        def fit(
            self, x: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]
        ) -> None:
            self.value = y[-1]

        def predict(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
            return np.full(len(x), self.value)

    table = trace({"step": 0, "gain": 0.1}, {"step": 0, "gain": 0.4}, {"step": 1, "gain": 0.0})
    assert replay(table, "pool_mean", regressor=Last).tolist() == [0.0, 0.0, 0.4]


def test_ridge_finds_a_line_and_shrinks_it_by_the_penalty() -> None:
    x = np.array([[-1.0], [1.0]])
    model = Ridge(penalty=2.0)
    model.fit(x, np.array([0.0, 2.0]), np.ones(2))
    # standardised x is -1, 1: slope = 2 / (2 + 2)
    assert model.predict(np.array([[0.0], [1.0]])).tolist() == pytest.approx([1.0, 1.5])


def test_task_history_is_read_from_its_column() -> None:
    assert NAMES[TASK_EMA] == "task_ema"


def test_unknown_comparator_and_unsorted_steps_are_named() -> None:
    with pytest.raises(DataError, match="no comparator 'luck'; known: base_rate, pool_mean"):
        replay(trace({"step": 0}), "luck")
    with pytest.raises(DataError, match="steps go backwards"):
        replay(trace({"step": 1}, {"step": 0}), "base_rate")
