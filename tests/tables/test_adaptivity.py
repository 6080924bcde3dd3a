from typing import Any

import pandas as pd
import pytest

from rail.tables.adaptivity import adaptivity_table, labelled
from rail.traces.export import TRACES
from tests.traces.grids import filled


def draw(step: int, predicted: float, gain: float, seed: int = 0, **more: Any) -> dict[str, Any]:
    values = {"mode": "live", "draw": "greedy", "branches": 4, "n_before": 8, "k_before": 2.0}
    values |= {"propensity": 0.9, "exploration_rate": 0.1, "features": [0.5] * 20} | more
    return filled(TRACES, seed=seed, step=step, predicted=predicted, gain=gain, **values)


def measured(rows: list[dict[str, Any]], window: int = 2) -> Any:
    table = adaptivity_table(pd.DataFrame(rows), window, gate=0.02, half_life=8.0)
    return table.set_index(["draws", "predictor", "measure", "window", "step"])["mean"].sort_index()


def test_rolling_values_look_back_over_the_window_only() -> None:
    # Right at steps 0 and 2, wrong at step 1.
    rows = [draw(0, 0.1, 0.1), draw(1, 0.1, -0.1), draw(2, -0.1, -0.1)]
    table = measured(rows)
    agreement = table.loc["executed", "controller", "agreement"]
    assert agreement.loc[2].to_dict() == {0: 1.0, 1: 0.5, 2: 0.5}
    assert agreement.loc[0, -1] == pytest.approx(2 / 3)
    mae = table.loc["executed", "controller", "mae", 2]
    assert mae.to_dict() == pytest.approx({0: 0.0, 1: 0.1, 2: 0.1})


def test_better_constant_answer_is_a_predictor_of_its_own() -> None:
    table = measured([draw(0, 0.1, 0.1), draw(0, 0.1, -0.1), draw(0, -0.1, -0.1)])
    assert table.loc["executed", "constant", "agreement", 2, 0] == pytest.approx(2 / 3)
    assert ("executed", "pool_mean", "majority", 2, 0) not in table.index


def test_comparator_is_replayed_and_draws_are_kept_apart() -> None:
    explore = {"draw": "explore", "propensity": 0.05}
    rows = [draw(0, 0.1, 0.1), draw(1, 0.3, 0.1, **explore), draw(1, 0.2, 0.1)]
    table = measured(rows)
    # One label so far, 0.1: the comparator says 0.1 and is right, the controller is off by 0.2.
    assert table.loc["explore", "pool_mean", "mae", 2, 1] == pytest.approx(0.0)
    assert table.loc["explore", "controller", "mae", 2, 1] == pytest.approx(0.2)
    # Executed means every live action, the explored one too: errors 0, 0.2 and 0.1.
    assert table.loc["executed", "controller", "mae", 0, -1] == pytest.approx(0.1)


def test_interval_is_over_seeds_and_counts_its_draws() -> None:
    rows = [draw(0, 0.1, 0.1), draw(0, 0.1, 0.1, seed=1), draw(0, 0.1, -0.1, seed=1)]
    table = adaptivity_table(pd.DataFrame(rows), 2, gate=0.02, half_life=8.0)
    row = table[(table["measure"] == "agreement") & (table["predictor"] == "controller")].iloc[0]
    assert (row["mean"], row["seeds"], row["n"]) == (0.75, 2, 3)
    # Values 1 and 1/2: half-width t(.975, 1) * .25 = 12.7062 / 4.
    assert row["high"] - row["mean"] == pytest.approx(12.7062 / 4, abs=1e-4)


def test_run_without_interventions_gives_an_empty_table() -> None:
    traces = pd.DataFrame([draw(0, 0.1, 0.1)]).head(0)
    table = adaptivity_table(traces, 2, gate=0.02, half_life=8.0)
    assert table.empty
    assert "mean" in table.columns


def test_no_live_draw_gives_no_row() -> None:
    shadow = draw(0, 0.1, 0.1, mode="shadow", draw="sweep", last_of_sweep=True)
    table = adaptivity_table(pd.DataFrame([shadow]), 2, gate=0.02, half_life=8.0)
    assert set(table["draws"]) == {"shadow"}
    assert labelled(pd.DataFrame([shadow]), "executed").empty
