"""Whole runs of every method on the toy benchmark: bills, phases, twins, determinism."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from rail.config import Config
from rail.traces.schema import TABLES
from rail.traces.store import read_table
from tests.toy_grid import run_method

METHODS = ("rail", "yoked_uniform", "yoked_permuted", "grpo_wide_yoked", "grpo_8", "grpo_wide")
COMPARED = [name for name in TABLES if name != "clock"]


def table(run: Path, name: str) -> Any:  # a DataFrame, whose indexing defeats the type checker
    return read_table(run / f"{name}.parquet", TABLES[name])


@pytest.mark.parametrize("method", METHODS)
def test_every_drawn_rollout_is_billed(toy_runs: Path, method: str) -> None:
    steps, rollouts = table(toy_runs / method, "steps"), table(toy_runs / method, "rollouts")
    assert steps["billed"].tolist() == rollouts.groupby("step").size().tolist()
    assert steps["retained"].tolist() == rollouts.groupby("step")["retained"].sum().tolist()
    assert steps["gen_tokens"].sum() == rollouts["own_tokens"].sum()
    assert steps["cum_billed"].iloc[-1] == len(rollouts)


@pytest.mark.parametrize("method", METHODS)
def test_no_step_passes_its_budget(toy_runs: Path, method: str) -> None:
    assert table(toy_runs / method, "steps")["billed"].max() <= 2 * 16


@pytest.mark.parametrize("method", METHODS)
def test_rewards_differ_and_the_policy_is_updated(toy_runs: Path, method: str) -> None:
    steps = table(toy_runs / method, "steps")
    assert steps["mixed_share"].max() > 0
    assert steps["grad_norm"].max() > 0


def test_the_schedule_of_uniform_methods(toy_runs: Path) -> None:
    assert table(toy_runs / "grpo_8", "steps")["billed"].tolist() == [16] * 6
    wide = table(toy_runs / "grpo_wide", "steps")
    assert (wide["groups"].tolist(), wide["billed"].tolist()) == ([4] * 6, [32] * 6)


def test_rail_goes_from_shadow_to_live_once(toy_runs: Path) -> None:
    phases = table(toy_runs / "rail", "steps")["phase"].tolist()
    record = json.loads((toy_runs / "rail" / "run.json").read_text())
    promoted = record["promoted_step"]
    assert 1 <= promoted <= 3
    assert phases == ["shadow"] * promoted + ["live"] * (6 - promoted)
    assert record["promoted_by"] in ("criterion", "forced")


def test_discarded_shadow_branches_are_billed_and_not_retained(toy_runs: Path) -> None:
    rollouts = table(toy_runs / "rail", "rollouts")
    shadow = rollouts[rollouts["origin"] == "shadow"]
    assert len(shadow) > 0
    assert not shadow["retained"].all()
    steps = table(toy_runs / "rail", "steps")
    assert (steps["billed"] - steps["live"]).sum() == len(shadow)


def test_labels_are_the_imbalance_moved_less_the_cost(toy_runs: Path) -> None:
    rows = table(toy_runs / "rail", "interventions")
    done = rows[rows["executed"]]
    after = (done["k_before"] + done["branch_reward"] * done["branches"]) / (
        done["n_before"] + done["branches"]
    )
    gross = (done["k_before"] / done["n_before"] - 0.5).abs() - (after - 0.5).abs()
    pd.testing.assert_series_equal(done["gain_gross"], gross, check_names=False)
    net = gross - 0.005 * done["branches"]
    pd.testing.assert_series_equal(done["gain"], net, check_names=False)


def test_y_before_holds_base_and_branches_retained_in_earlier_rounds(
    toy: tuple[Config, Path], tmp_path: Path
) -> None:
    config, policy = toy
    # A budget that lets the shadow sweeps of the second round begin.
    roomy = config.train.model_copy(update={"rollouts_per_task": 60})
    run = run_method(config.model_copy(update={"train": roomy}), policy, "rail", tmp_path)
    rows, rollouts = table(run, "interventions"), table(run, "rollouts")
    keys = ["step", "task_id"]
    base = rollouts[rollouts["origin"] == "base"].groupby(keys)["reward"].agg(["size", "sum"])
    kept = rows[(rows["round"] == 0) & rows["accepted"] & rows["last_of_sweep"]]
    kept = kept.set_index(keys)
    discarded = rollouts[(rollouts["origin"] == "shadow") & ~rollouts["retained"]]
    assert len(rows[rows["round"] == 1].merge(discarded, on=keys)) > 0
    for _, row in rows.iterrows():
        key = (row["step"], row["task_id"])
        size, successes = base.loc[key]
        if row["round"] == 1 and key in kept.index:
            earlier = kept.loc[key]
            size += earlier["branches"]
            successes += earlier["branches"] * earlier["branch_reward"]
        assert row["n_before"] == size
        assert row["k_before"] == pytest.approx(successes)


def test_propensities_of_live_decisions_are_probabilities(toy_runs: Path) -> None:
    rows = table(toy_runs / "rail", "interventions")
    live = rows[rows["mode"] == "live"]
    assert len(live) > 0
    assert ((live["propensity"] > 0) & (live["propensity"] <= 1)).all()
    executed = live[live["executed"]]
    assert all(
        mask >> cell & 1 for mask, cell in zip(executed["eligible"], executed["cell"], strict=True)
    )


@pytest.mark.parametrize("twin", ["yoked_uniform", "yoked_permuted"])
def test_a_twin_is_rail_up_to_promotion(toy_runs: Path, twin: str) -> None:
    promoted = json.loads((toy_runs / "rail" / "run.json").read_text())["promoted_step"]
    for name in COMPARED:
        ours, theirs = table(toy_runs / twin, name), table(toy_runs / "rail", name)
        last = promoted if name == "validation" else promoted - 1
        pd.testing.assert_frame_equal(
            ours[ours["step"] <= last].reset_index(drop=True),
            theirs[theirs["step"] <= last].reset_index(drop=True),
        )


@pytest.mark.parametrize("twin", ["yoked_uniform", "yoked_permuted"])
def test_a_twin_spends_what_rail_spent(toy_runs: Path, twin: str) -> None:
    steps = table(toy_runs / twin, "steps")
    owed = int(steps["carry"].iloc[-1])
    assert steps["branches"].sum() + owed == table(toy_runs / "rail", "steps")["branches"].sum()


def test_the_permuted_twin_deals_rails_cells(toy_runs: Path) -> None:
    def cells(method: str) -> list[int]:
        rows = table(toy_runs / method, "interventions")
        rows = rows[rows["mode"].isin(["live", "yoked"]) & rows["executed"]]
        return sorted(rows["cell"])

    steps = table(toy_runs / "yoked_permuted", "steps")
    if steps["carry"].iloc[-1] == 0:
        assert cells("yoked_permuted") == cells("rail")


def test_wide_yoked_buys_whole_groups_from_rails_total(toy_runs: Path) -> None:
    theirs = table(toy_runs / "rail", "steps")["billed"].cumsum()
    ours = table(toy_runs / "grpo_wide_yoked", "steps")["cum_billed"]
    assert ours.tolist() == [total // 8 * 8 for total in theirs]


@pytest.mark.parametrize("method", ["rail", "grpo_8"])
def test_the_same_seed_gives_the_same_bytes(
    toy: tuple[Config, Path], toy_runs: Path, tmp_path: Path, method: str
) -> None:
    config, policy = toy
    again = run_method(config, policy, method, tmp_path)
    for name in [f"{table}.parquet" for table in COMPARED] + ["run.json"]:
        assert (again / name).read_bytes() == (toy_runs / method / name).read_bytes(), name
    weights = "policy/model.safetensors"
    assert (again / weights).read_bytes() == (toy_runs / method / weights).read_bytes()


def test_methods_with_equal_seeds_share_tasks_and_base_uniforms(toy_runs: Path) -> None:
    first = table(toy_runs / "grpo_8", "rollouts")
    rail = table(toy_runs / "rail", "rollouts")
    columns = ["task_id", "rollout", "reward", "own_tokens"]
    ours = first[first["step"] == 0][columns].reset_index(drop=True)
    base = rail[(rail["step"] == 0) & (rail["origin"] == "base")][columns].reset_index(drop=True)
    pd.testing.assert_frame_equal(ours, base)
