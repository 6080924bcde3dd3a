"""The environment on AgentBench's own files, which are not part of the repository.

Set RAIL_UPSTREAM to a folder that holds agentbench/dbbench_std.open.jsonl and
dbbench_dev.open.jsonl (rows wrapped as `{"id", "upstream", "check"}`). The measured shares are
written into the JUnit report and the log (`--log-cli-level INFO`).
"""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rail.envs.agentbench_db import AgentBenchDb, build
from rail.envs.agentbench_db.rows import load
from rail.envs.base import Task

log = logging.getLogger(__name__)

_FOLDER = os.environ.get("RAIL_UPSTREAM")
_CAN_BE_RIGHT = ("ok", "ok_after_sql_repair")

pytestmark = pytest.mark.skipif(
    _FOLDER is None,
    reason="RAIL_UPSTREAM is not set: AgentBench's DBBench files were not checked",
)

Record = Callable[[str, object], None]


@pytest.fixture(scope="module")
def benchmark() -> AgentBenchDb:
    return build({}, {})


@pytest.fixture(scope="module")
def rows() -> list[tuple[Task, dict[str, Any]]]:
    """Tasks of the open part of both files, each with the file's own check."""
    found = []
    for name in ("dbbench_std.open.jsonl", "dbbench_dev.open.jsonl"):
        path = Path(_FOLDER or "") / "agentbench" / name
        checks = [json.loads(line)["check"] for line in path.read_text("utf-8").splitlines()]
        for (given, row), check in zip(load(path), checks, strict=True):
            found.append((Task(given, row["type"][0], "?", row), check))
    return found


def _outcome(benchmark: AgentBenchDb, task: Task, sql: str) -> tuple[float, float, str]:
    """Act out `sql`, answer with what it shows, return both rewards and the observation."""
    env = benchmark.make(task)
    shown = env.step(benchmark.tools.call_query(sql)).observation
    result = env.step(benchmark.tools.call_answer(shown))
    env.close()
    return result.reward, result.reward_upstream, shown


def test_gold_mutations_reach_the_published_digest(
    benchmark: AgentBenchDb, rows: list[tuple[Task, dict[str, Any]]], record_property: Record
) -> None:
    outcomes = {
        task.id: _outcome(benchmark, task, task.row["label"][0])
        for task, _ in rows
        if task.row.get("answer_md5")
    }
    right = sum(upstream for _, upstream, _ in outcomes.values())
    record_property("mutations", f"{right:.0f} of {len(outcomes)}")
    log.info("gold mutations that reach their digest: %d of %d", right, len(outcomes))
    assert len(outcomes) >= 100
    assert right >= 0.99 * len(outcomes), {k: v for k, v in outcomes.items() if not v[1]}
    assert all(strict == 1.0 for strict, _, _ in outcomes.values())


def test_questions_that_can_be_right_are_right(
    benchmark: AgentBenchDb, rows: list[tuple[Task, dict[str, Any]]], record_property: Record
) -> None:
    outcomes = {}
    for task, check in rows:
        if "sql" in task.row and check["label_class"] in _CAN_BE_RIGHT:
            sql = check["repaired_sql"] or task.row["sql"]["query"]
            outcomes[task.id] = (*_outcome(benchmark, task, sql), task.row["label"])
    record_property("questions", f"{len(outcomes)}")
    log.info("questions that can be right: %d", len(outcomes))
    assert len(outcomes) >= 20
    assert {k: v for k, v in outcomes.items() if v[:2] != (1.0, 1.0)} == {}


def test_clean_only_keeps_what_can_be_scored(
    rows: list[tuple[Task, dict[str, Any]]], record_property: Record
) -> None:  # F1
    path = Path(_FOLDER or "") / "agentbench" / "dbbench_std.open.jsonl"
    tasks = {f"test_a-{task.id}": (task, check) for task, check in rows if "_std-" in task.id}
    wanted = [k for k, (_, check) in tasks.items() if check["label_class"] in _CAN_BE_RIGHT]
    # An empty result labelled `none` counts as reproduced here, not in the file's own check.
    empty = [k for k, (task, _) in tasks.items() if task.row["label"] == ["none"]]
    benchmark = build({"source": {"test_a": str(path)}}, {"test_a": len(wanted)})
    kept = {task.id for task in benchmark.panel("test_a")}
    record_property("clean", f"{len(wanted)} of {len(tasks)}")
    log.info("tasks of the test file that can be scored: %d of %d", len(wanted), len(tasks))
    assert kept <= {*wanted, *empty}
    assert len(set(wanted) - kept) <= len(empty)
