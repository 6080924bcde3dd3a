"""A claim and the small result folders that it is judged on."""

from pathlib import Path
from typing import Any

from rail.claims import Claim
from tests.traces.grids import evaluation_rows, write_run

SEEDS = (1000, 1001, 1002, 1003)
ENTRY: dict[str, Any] = {
    "id": "P1",
    "statement": "rail beats its twin",
    "source": "protocol",
    "kind": "difference",
    "arms": ["rail", "twin"],
    "endpoint": "success",
    "margin": 0.03,
    "family": "confirmatory",
    "benchmarks": ["db"],
}


def claim(**changes: Any) -> Claim:
    return Claim.model_validate(ENTRY | changes)


def arm(
    results: Path,
    method: str,
    successes: list[int],
    billed: int = 1000,
    benchmark: str = "db",
    backend: str = "native",
) -> None:
    """Write one run per seed: of 100 tasks of kind a, `successes` pass; of 50 of kind b, half."""
    for seed, passed in zip(SEEDS, successes, strict=False):
        rewards = {"a": [1] * passed + [0] * (100 - passed), "b": [1, 0] * 25}
        rows = evaluation_rows(rewards) + evaluation_rows({"a": [0], "b": [0]}, mode="greedy")
        start = evaluation_rows({"a": [1, 0, 0, 0], "b": [0, 0]}, step=0)
        end = evaluation_rows({"a": [1, 1, 1, 0], "b": [0, 1]}, step=48)
        write_run(
            results, method, seed, benchmark=benchmark, evaluation=rows, validation=start + end,
            billed=[billed], info={"backend": backend},
        )  # fmt: skip
