"""Small real result folders for the tests of the analysis."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rail.traces.frames import run_folder
from rail.traces.schema import EVALUATIONS, INTERVENTIONS, STEPS, Schema
from rail.traces.store import write_table

FILLER = {"int64": 0, "float64": 0.0, "bool": True, "string": "", "list<float64>": [0.0]}


def filled(schema: Schema, **values: Any) -> dict[str, Any]:
    """Return a row of `schema`: `values`, the rest neutral."""
    unknown = set(values) - set(schema)
    assert not unknown, unknown
    return {name: values.get(name, FILLER[column.dtype]) for name, column in schema.items()}


def evaluation_rows(
    rewards: Mapping[str, Sequence[float]], step: int = 48, mode: str = "sampled"
) -> list[dict[str, Any]]:
    """Return one row per reward; `rewards` maps a kind to its tasks' rewards."""
    return [
        filled(
            EVALUATIONS,
            step=step,
            mode=mode,
            kind=kind,
            task_id=f"{kind}-{index}",
            reward=float(reward),
            reward_upstream=1.0 - reward,
        )
        for kind, values in rewards.items()
        for index, reward in enumerate(values)
    ]


def write_run(
    results: Path,
    method: str,
    seed: int,
    *,
    benchmark: str = "db",
    evaluation: list[dict[str, Any]] | None = None,
    validation: list[dict[str, Any]] | None = None,
    billed: Sequence[int] | None = None,
    groups: int = 8,
    interventions: list[dict[str, Any]] | None = None,
    info: dict[str, Any] | None = None,
) -> Path:
    """Write the tables that are given, and run.json; return the folder."""
    folder = run_folder(results, benchmark, method, seed)
    if evaluation is not None:
        write_table(folder / "evaluation.parquet", evaluation, EVALUATIONS)
    if validation is not None:
        write_table(folder / "validation.parquet", validation, EVALUATIONS)
    if billed is not None:
        rows, total = [], 0
        for step, rollouts in enumerate(billed):
            total += rollouts
            rows.append(
                filled(
                    STEPS,
                    step=step,
                    groups=groups,
                    billed=rollouts,
                    live=rollouts,
                    retained=rollouts,
                    cum_billed=total,
                )
            )
        write_table(folder / "steps.parquet", rows, STEPS)
    if interventions is not None:
        write_table(folder / "interventions.parquet", interventions, INTERVENTIONS)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(info or {}))
    return folder
