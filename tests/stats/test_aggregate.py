"""One number per run."""

from pathlib import Path

import pandas as pd
import pytest

from rail.errors import DataError
from rail.stats.aggregate import curve, final, initial, rollouts, success, success_by_kind
from rail.traces.frames import load
from tests.traces.grids import evaluation_rows, write_run


def evaluations(tmp_path: Path) -> pd.DataFrame:
    rows = (
        evaluation_rows({"a": [0, 0, 0, 0], "b": [1]}, step=0)
        + evaluation_rows({"a": [1, 1, 1, 0], "b": [0]}, step=48)
        + evaluation_rows({"a": [1, 1, 1, 1], "b": [0]}, step=48, mode="greedy")
    )
    write_run(tmp_path, "rail", 0, evaluation=rows)
    write_run(tmp_path, "rail", 1, evaluation=evaluation_rows({"a": [1], "b": [1]}, step=24))
    return load(tmp_path, "evaluation")


def test_every_kind_weighs_the_same(tmp_path: Path) -> None:
    found = success(final(evaluations(tmp_path)))
    assert found["success"].tolist() == [0.375, 1.0]  # (3/4 + 0) / 2, not 3/5
    assert found["seed"].tolist() == [0, 1]
    by_kind = success_by_kind(final(evaluations(tmp_path)))
    assert by_kind["success"].tolist() == [0.75, 0.0, 1.0, 1.0]


def test_first_and_last_step_and_mode_are_kept_apart(tmp_path: Path) -> None:
    table = evaluations(tmp_path)
    one = table.loc[table["seed"] == 0]
    assert success(initial(one))["success"].tolist() == [0.5]
    assert success(final(one, "greedy"))["success"].tolist() == [0.5]
    assert success(final(one), "reward_upstream")["success"].tolist() == [0.625]
    found = curve(one)
    assert list(zip(found["step"], found["success"], strict=True)) == [(0, 0.5), (48, 0.375)]


def test_run_without_the_rows_is_named(tmp_path: Path) -> None:
    table = evaluations(tmp_path)
    with pytest.raises(DataError, match="db/rail/1 has no rows of mode 'greedy'"):
        final(table, "greedy")
    with pytest.raises(DataError, match="db/rail/1 has no rows of mode 'sampled' at step 0"):
        initial(table)


def test_rollouts_per_task_group(tmp_path: Path) -> None:
    write_run(tmp_path, "rail", 0, billed=[64, 96])
    found = rollouts(load(tmp_path, "steps"))
    assert found["billed"].tolist() == [160]
    assert found["billed_per_task"].tolist() == [10.0]
    assert found["live_per_task"].tolist() == [10.0]
