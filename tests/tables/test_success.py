import math
from pathlib import Path

import pandas as pd
import pytest

from rail.errors import DataError
from rail.tables.success import curve_table, success_by_run, success_table
from rail.traces.frames import load
from tests.traces.grids import evaluation_rows, write_run

NAN = float("nan")


def both(rewards: dict[str, list[float]]) -> list[dict[str, object]]:
    greedy = {kind: [1.0] * len(values) for kind, values in rewards.items()}
    return [*evaluation_rows(rewards), *evaluation_rows(greedy, mode="greedy")]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    # Kinds weigh the same: (1 + 0) / 2 for seed 0, (1 + 1/3) / 2 for seed 1.
    write_run(tmp_path, "rail", 0, evaluation=both({"a": [1], "b": [0, 0, 0]}), billed=[100, 60])
    write_run(tmp_path, "rail", 1, evaluation=both({"a": [1], "b": [1, 0, 0]}), billed=[100, 28])
    for seed in (0, 1):
        rows = both({"a": [0], "b": [0, 0, 0]})
        write_run(tmp_path, "grpo_8", seed, evaluation=rows, billed=[64, 64])
    return tmp_path


def test_success_weighs_kinds_equally_and_keeps_the_modes_apart(results: Path) -> None:
    runs = success_by_run(load(results, "evaluation", methods=["rail"]))
    assert runs["sampled"].tolist() == pytest.approx([1 / 2, 2 / 3])
    assert runs["greedy"].tolist() == [1.0, 1.0]
    assert runs["upstream"].tolist() == pytest.approx([1 / 2, 1 / 3])  # 1 - reward in the fixture


def test_table_pairs_seeds_and_bills_per_task(results: Path) -> None:
    runs = success_by_run(load(results, "evaluation"))
    table = success_table(runs, load(results, "steps")).set_index("method")
    assert table.loc["rail", "sampled"] == pytest.approx(7 / 12)
    # Two values 1/2 and 2/3: half-width t(.975, 1) * (1/6) / 2 = 12.7062 / 12.
    assert table.loc["rail", "sampled_high"] == pytest.approx(7 / 12 + 12.7062 / 12, abs=1e-4)
    assert table.loc["grpo_8", "minus_reference"] == pytest.approx(7 / 12)
    assert math.isnan(float(str(table.loc["rail", "minus_reference"])))
    # 160 and 128 rollouts over 2 steps of 8 groups: 10 and 8 per task.
    assert table.loc["rail", "billed_per_task"] == pytest.approx(9)
    assert table.loc["rail", "per_seed"] == "0: 0.5000; 1: 0.6667"


def test_one_seed_has_no_interval(results: Path) -> None:
    runs = success_by_run(load(results, "evaluation", seeds=[0]))
    table = success_table(runs, load(results, "steps", seeds=[0]))
    assert table["sampled_low"].dropna().empty
    assert table["minus_reference_high"].dropna().empty


def frames(
    curve: dict[int, float], billed: int, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    keys = {"benchmark": "db", "method": "rail", "seed": seed}
    validation = pd.DataFrame(
        [
            {**keys, "step": step, "mode": "sampled", "kind": "a", "reward": success}
            for step, success in curve.items()
        ]
    )
    steps = pd.DataFrame(
        [
            {**keys, "step": s, "cum_billed": billed * (s + 1), "cum_tokens": 10 * billed * (s + 1)}
            for s in range(max(curve))
        ]
    )
    return validation, steps


def test_curve_is_interpolated_at_equal_budgets() -> None:
    validation, steps = frames({0: 0.0, 4: 0.8}, billed=20)
    table = curve_table(validation, steps)
    rollouts = table[table["unit"] == "rollouts"]
    # 80 rollouts in all, read at every tenth of them: 0.1 more each.
    assert rollouts["budget"].tolist() == pytest.approx([0, 10, 20, 30, 40, 50, 60, 70, 80])
    assert rollouts["success"].tolist() == pytest.approx([n / 10 for n in range(9)])
    assert table.loc[table["unit"] == "tokens", "budget"].max() == pytest.approx(800)


def test_curve_ends_where_the_shortest_seed_ends() -> None:
    one, two = frames({0: 0.0, 4: 0.8}, 20, seed=0), frames({0: 0.2, 4: 0.6}, 15, seed=1)
    validation, steps = (pd.concat(pair) for pair in zip(one, two, strict=True))
    rollouts = curve_table(validation, steps).query("unit == 'rollouts'")
    assert rollouts["budget"].tolist() == pytest.approx([0, 10, 20, 30, 40, 50, 60])
    assert rollouts["success"].tolist()[-1] == pytest.approx((0.6 + 0.6) / 2)
    assert set(rollouts["seeds"]) == {2}


def test_validation_without_its_step_is_named() -> None:
    validation, steps = frames({0: 0.0, 4: 0.8}, 20)
    with pytest.raises(DataError, match="db/rail/0: validated after step 4"):
        curve_table(validation, steps.head(3))
