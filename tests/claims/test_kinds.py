"""Kinds of claim other than a difference, with hand-made numbers."""

from pathlib import Path
from typing import Any

import pytest

from rail.claims import compute
from rail.traces.schema import INTERVENTIONS
from tests.claims.arms import SEEDS, arm, claim
from tests.traces.grids import filled, write_run


def test_paper_view_needs_success_and_budget(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [49, 51, 49, 51], billed=800)
    arm(tmp_path, "twin", [50, 50, 50, 50], billed=1000)
    question = claim(kind="non_inferiority", family="secondary")
    (row,) = compute([question], tmp_path)
    assert row["verdict"] == "supported"
    assert row["qualifiers"][0] == "billed rollouts 0.800 of the reference"
    # values -.005, .005, -.005, .005: t = .03 / .002887 = 10.39, one-sided, 3 degrees of freedom
    assert row["p"] == pytest.approx(0.000949, abs=2e-6)
    arm(tmp_path, "rail", [49, 51, 49, 51], billed=950)
    (row,) = compute([question], tmp_path)
    assert row["verdict"] == "contradicted"
    assert row["qualifiers"][0] == "billed rollouts 0.950 of the reference, above 0.9"


def test_frontier_is_interpolated_at_the_arms_own_budget(tmp_path: Path) -> None:
    arm(tmp_path, "rail", [60, 60], billed=750)
    arm(tmp_path, "grpo_8", [40, 40], billed=500)
    arm(tmp_path, "grpo_16", [60, 60], billed=1000)
    question = claim(kind="frontier", arms=["rail", "grpo_8", "grpo_16"])
    (row,) = compute([question], tmp_path)
    # success .55 against halfway between .45 and .55
    assert row["values"]["db"] == pytest.approx({"1000": 0.05, "1001": 0.05})
    # the reference gained .25 (1/4 -> 3/4 of kind a, 0 -> 1/2 of kind b: .5)
    assert row["margin_share_of_reference_gain"] == pytest.approx(0.03 / 0.5)
    arm(tmp_path, "rail", [60, 60], billed=1200)
    (row,) = compute([question], tmp_path)
    assert row["values"]["db"] == pytest.approx({"1000": 0.0, "1001": 0.0})
    assert any("beyond the frontier's ends" in said for said in row["qualifiers"])


def test_rise_over_the_warm_start(tmp_path: Path) -> None:
    arm(tmp_path, "grpo_wide", [60, 60, 60, 60])
    question = claim(kind="rise", arms=["grpo_wide"], margin=0.15)
    (row,) = compute([question], tmp_path)
    assert row["values"]["db"]["1000"] == pytest.approx(0.5)  # 1/4 -> 3/4 and 0 -> 1/2
    assert row["verdict"] == "supported"
    (row,) = compute([claim(kind="rise", arms=["grpo_wide"], endpoint="success_greedy")], tmp_path)
    assert row["verdict"] == "not run"
    assert "nothing was evaluated before the first step in mode greedy" in row["qualifiers"][0]


def interventions(predicted: float) -> list[dict[str, Any]]:
    """Return eight explored interventions, half of them worth .1 and half -.1."""
    base = {"mode": "live", "draw": "explore", "propensity": 0.02, "exploration_rate": 0.1}
    base |= {"n_before": 8, "k_before": 4.0, "branches": 4, "features": [0.0] * 50}
    gains = (0.1, -0.1) * 4
    return [
        filled(INTERVENTIONS, **base, step=i, gain=g, predicted=predicted * g)
        for i, g in enumerate(gains)
    ]


def test_controller_is_measured_against_its_base_rate(tmp_path: Path) -> None:
    for seed in SEEDS:
        write_run(tmp_path, "rail", seed, interventions=interventions(0.5))
    question = claim(
        kind="controller", arms=["rail"], endpoint="agreement_over_majority", family="secondary"
    )
    (row,) = compute([question], tmp_path)
    assert row["values"]["db"]["1000"] == pytest.approx(0.5)  # always right, majority one half
    assert row["qualifiers"] == ["explore draws per seed: 8 to 8"]
    error = claim(kind="controller", arms=["rail"], endpoint="mae_share_below_pool_mean")
    (row,) = compute([error], tmp_path)
    assert row["estimate"] > 0.4  # error .05 against about .1: the pool says nothing here
    executed = claim(
        kind="controller", arms=["rail"], endpoint="partial_r", draws="shadow", family="secondary"
    )
    (row,) = compute([executed], tmp_path)
    assert row["verdict"] == "not run"


def test_gate_is_the_runs_own(tmp_path: Path) -> None:
    settings = {"run": {"settings": {"controller": {"gate": 0.08}}}}
    write_run(tmp_path, "rail", 1000, interventions=interventions(0.5), info=settings)
    question = claim(kind="controller", arms=["rail"], endpoint="agreement_over_majority")
    (row,) = compute([question], tmp_path)
    assert row["values"]["db"]["1000"] == pytest.approx(0.0)  # .05 never reaches the gate
