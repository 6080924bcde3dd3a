"""A small results folder as a finished grid leaves it: real files, invented numbers."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from rail.recoverability import imbalance
from rail.seeding import generator
from rail.traces.export import export_all
from rail.traces.schema import CLOCK, EVALUATIONS, INTERVENTIONS, STEPS
from rail.traces.store import write_table
from tests.traces.grids import filled, write_run

BENCHMARK = "agentbench_db"
LABELS = {
    "rail": "RAIL",
    "yoked_uniform": "Yoked, uniform",
    "yoked_permuted": "Yoked, permuted",
    "grpo_wide_yoked": "GRPO wide, yoked",
    "grpo_wide": "GRPO wide",
    "grpo_16": "GRPO-16",
    "grpo_8": "GRPO-8",
}
SEEDS = (1000, 1001, 1002, 1003)
STEPS_DONE = 16
KINDS = ("count", "lookup", "two_hop", "update")
REGIMES = ("EXPLOIT", "MILD", "AGGRESSIVE")


def make_results(results: Path, methods: tuple[str, ...] = tuple(LABELS)) -> Path:
    """Write runs, traces and checks of every method; return `results`."""
    for index, method in enumerate(methods):
        for seed in SEEDS:
            _run(results, method, seed, 0.42 + 0.01 * index)
    export_all(results)
    for warm in range(4):
        _checks(results, warm)
    return results


def _run(results: Path, method: str, seed: int, success: float) -> None:
    rng = generator(seed, "synthetic", method)
    level = success + 0.03 * generator(seed, "synthetic").normal()
    rows = _evaluations(rng, level, STEPS_DONE, ("sampled", "greedy"), 40)
    validation = [
        row
        for step in range(0, STEPS_DONE + 1, 4)
        for row in _evaluations(rng, level - 0.2 * 0.8**step, step, ("sampled",), 12)
    ]
    info = {
        "run": {"method": method, "seed": seed, "warm_start": seed % 4},
        "key": f"{seed:032x}",
        "warm_start": f"{seed % 4:032x}",
        "panels": {"train": "a" * 32, "validation": "b" * 32},
        "promoted_by": "criterion" if method == "rail" else None,
        "promoted_step": 5 if method == "rail" else 0,
        "python": "3.11.9",
        "versions": {"torch": "2.13.0", "numpy": "2.4.6"},
    }
    guided = method == "rail" or method.startswith("yoked")
    folder = write_run(
        results,
        method,
        seed,
        benchmark=BENCHMARK,
        evaluation=rows,
        validation=validation,
        interventions=_interventions(rng, method) if guided else [],
        info=info,
    )
    write_table(folder / "steps.parquet", _steps(rng, method), STEPS)
    clock = [filled(CLOCK, step=s, total=1.25, cpu=1.0) for s in range(STEPS_DONE)]
    write_table(folder / "clock.parquet", clock, CLOCK)


def _evaluations(
    rng: np.random.Generator, level: float, step: int, modes: tuple[str, ...], tasks: int
) -> list[dict[str, Any]]:
    return [
        filled(
            EVALUATIONS,
            step=step,
            mode=mode,
            kind=kind,
            task_id=f"{kind}-{task}",
            reward=reward,
            reward_upstream=reward,
        )
        for mode in modes
        for kind in KINDS
        for task in range(tasks)
        for reward in [float(rng.random() < level)]
    ]


def _steps(rng: np.random.Generator, method: str) -> list[dict[str, Any]]:
    rows, billed, tokens = [], 0, 0
    for step in range(STEPS_DONE):
        drawn = {"grpo_8": 64, "grpo_16": 128}.get(method, int(128 - rng.integers(0, 12)))
        billed, tokens = billed + drawn, tokens + drawn * 80
        rows.append(
            filled(
                STEPS,
                step=step,
                groups=8,
                billed=drawn,
                live=drawn,
                retained=drawn,
                cum_billed=billed,
                cum_tokens=tokens,
            )
        )
    return rows


def _interventions(rng: np.random.Generator, method: str) -> list[dict[str, Any]]:
    mode = "live" if method == "rail" else "yoked"
    return [
        _intervention(rng, step, mode if step >= 5 else "shadow", anchor)
        for step in range(STEPS_DONE)
        for anchor in range(8)
    ]


def _intervention(rng: np.random.Generator, step: int, mode: str, anchor: int) -> dict[str, Any]:
    before = int(rng.integers(0, 9))
    branches = int(rng.choice([4, 8, 12]))
    hits = int(rng.binomial(branches, 0.35))
    pool = [1.0] * before + [0.0] * (8 - before)
    after = [*pool, *([1.0] * hits), *([0.0] * (branches - hits))]
    gain = imbalance(pool) - imbalance(after) - 0.005 * branches
    explore = anchor % 4 == 0
    draws = {"shadow": "sweep", "live": "explore" if explore else "greedy", "yoked": "yoked"}
    return filled(
        INTERVENTIONS,
        step=step,
        task_id=f"t{anchor}",
        kind=KINDS[anchor % len(KINDS)],
        mode=mode,
        draw=draws[mode],
        branches=branches,
        regime=REGIMES[anchor % 3],
        propensity=0.9 if not explore else 0.1 / 9,
        exploration_rate=0.1,
        predicted=gain * 0.3 + 0.05 * float(rng.normal()),
        gain=gain,
        n_before=8,
        k_before=float(before),
        anchor_entropy=float(rng.random()),
        features=[float(value) for value in rng.random(20)],
    )


def _checks(results: Path, warm: int) -> None:
    rng = generator(warm, "synthetic", "checks")
    bands = {"mean": 0.36, "mixed": 0.5, "all_fail": 0.28, "all_pass": 0.13}
    bands = {name: value + 0.02 * float(rng.normal()) for name, value in bands.items()}
    bands["all_pass"] = 0.08 if warm == 0 else bands["all_pass"]
    content = {
        **bands,
        "intervals": {name: [value - 0.03, value + 0.03] for name, value in bands.items()},
        "kinds": {kind: 0.15 + 0.5 * float(rng.random()) for kind in KINDS},
        "boundaries": 3.2,
        "tasks": 500,
        "rollouts": 8,
    }
    headroom = {
        "boundaries_per_trajectory": 3.1,
        "recoverable_failed": 0.34 + 0.03 * float(rng.normal()),
        "recoverable_failed_all_fail": 0.2 + 0.03 * float(rng.normal()),
        "within_task_variance": 0.02,
        "sampling_noise": 0.005,
        "best_cell_vs_mean": 0.05,
        "best_cell_vs_best_constant": 0.012,
        "regimes": dict(zip(REGIMES, (0.31, 0.29, 0.27), strict=True)),
        "anchors": 200,
        "branches": 32,
    }
    folder = results / "checks" / BENCHMARK / f"warm{warm}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bands.json").write_text(json.dumps(content))
    (folder / "headroom.json").write_text(json.dumps(headroom))
