import csv
from pathlib import Path

import pytest

from rail.runs import load_config
from rail.sweep import last_success, write_sweep
from rail.traces.frames import run_folder
from rail.traces.schema import EVALUATIONS
from rail.traces.store import write_table

ROOT = Path(__file__).parents[1]
BLANK = {"int64": 0, "float64": 0.0, "bool": False, "string": ""}


def write_validation(path: Path, rewards: list[tuple[int, str, str, float]]) -> None:
    blank = {name: BLANK[column.dtype] for name, column in EVALUATIONS.items()}
    rows = [
        {**blank, "step": step, "mode": mode, "kind": kind, "reward": reward, "task_id": str(i)}
        for i, (step, mode, kind, reward) in enumerate(rewards)
    ]
    write_table(path, rows, EVALUATIONS)


def test_success_is_of_the_last_step_sampled_and_equal_per_kind(tmp_path: Path) -> None:
    rewards = [
        (12, "sampled", "lookup", 1.0),
        (48, "sampled", "lookup", 1.0),
        (48, "sampled", "lookup", 0.0),
        (48, "sampled", "lookup", 0.0),
        (48, "sampled", "lookup", 1.0),
        (48, "sampled", "count", 1.0),
        (48, "greedy", "count", 0.0),
    ]
    write_validation(tmp_path / "validation.parquet", rewards)
    assert last_success(tmp_path / "validation.parquet") == pytest.approx((0.5 + 1.0) / 2)


def test_the_best_rate_comes_first(tmp_path: Path) -> None:
    config = load_config([ROOT / "config/default.yaml", ROOT / "config/lr_sweep.yaml"])
    config = config.model_copy(update={"results": str(tmp_path)})
    means = {"grpo_wide_lr1e4": 0.0, "grpo_wide_lr3e4": 1.0, "grpo_wide_lr6e4": 0.0}
    for method, reward in means.items():
        for seed in config.seeds:
            path = run_folder(tmp_path, "agentbench_db", method, seed) / "validation.parquet"
            write_validation(path, [(48, "sampled", "lookup", reward)])
    write_sweep(config, tmp_path / "sweep.csv")
    rows = list(csv.DictReader((tmp_path / "sweep.csv").open()))
    assert rows[0]["method"] == "grpo_wide_lr3e4"
    assert rows[0]["learning_rate"] == "0.0003"
    assert rows[0]["success"] == "1.0"
    assert {row["seeds"] for row in rows} == {"3"}
