"""The contract holds for AgentBench-DB, and finds environments that break it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rail.envs.agentbench_db import AgentBenchDb, Settings, build
from rail.envs.agentbench_db.env import DbEnv
from rail.envs.base import Message, StepResult, Task
from rail.envs.contract import check_benchmark, check_env, run_contract
from rail.errors import EnvError

from .agentbench_db.rows import mutation, question

_TASKS = [
    Task("train-0000", "other", "?", question(["4"])),
    Task("train-0001", "UPDATE", "?", mutation("UPDATE people SET age = '5'")),
]


class _Given(AgentBenchDb):
    """The benchmark on given tasks."""

    env: type[DbEnv] = DbEnv

    def panel(self, name: str) -> list[Task]:
        return list(_TASKS)

    def make(self, task: Task) -> DbEnv:
        made = super().make(task)
        made.__class__ = self.env
        return made


def _benchmark(env: type[DbEnv] = DbEnv) -> _Given:
    benchmark = _Given(Settings(), {"train": 2})
    benchmark.env = env
    return benchmark


def test_agentbench_db_keeps_the_contract() -> None:
    assert run_contract(_benchmark()) == []
    lines = list(check_benchmark(_benchmark()))
    assert len(lines) == 8
    assert all(line.startswith("ok: ") for line in lines)


@pytest.mark.parametrize("tools", ["sql_query", "execute_sql"])
def test_generated_tasks_keep_the_contract(tools: str) -> None:
    benchmark = build({"tools": tools}, {"train": 10})
    assert check_env(benchmark, benchmark.panel("train")) == []


class _SharedFork(DbEnv):
    def fork(self) -> "DbEnv":
        copy = super().fork()
        copy._database = self._database
        return copy


class _ForgetsTheTurn(DbEnv):
    def fork(self) -> "DbEnv":
        copy = super().fork()
        copy.turn = 0
        return copy


class _Raises(DbEnv):
    def step(self, action: str) -> StepResult:
        if not action:
            raise ValueError("no action")
        return super().step(action)


class _RewardsEarly(DbEnv):
    def step(self, action: str) -> StepResult:
        return replace(super().step(action), reward=0.5)


class _ClosesOnce(DbEnv):
    def close(self) -> None:
        if self._closed:
            raise ValueError("closed already")
        super().close()


class _Forgetful(DbEnv):
    def state_hash(self) -> str:
        return f"{id(self)}"


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        (_SharedFork, "changed its parent"),
        (_ForgetsTheTurn, "differs in turn or state"),
        (_Raises, "bad raised ValueError: no action"),
        (_RewardsEarly, "has a stop reason or a reward"),
        (_ClosesOnce, "closing raised ValueError: closed already"),
        (_Forgetful, "two fresh environments differ in state"),
    ],
)
def test_a_broken_environment_is_found(env: type[DbEnv], problem: str) -> None:
    assert any(problem in line for line in run_contract(_benchmark(env)))
    with pytest.raises(EnvError, match="breaks the contract"):
        list(check_benchmark(_benchmark(env)))


class _Unstable(_Given):
    count = 0

    def panel(self, name: str) -> list[Task]:
        self.count += 1
        return [replace(task, prompt=f"{task.prompt}{self.count}", id="same") for task in _TASKS]


def test_an_unstable_panel_is_found() -> None:
    problems = run_contract(_Unstable(Settings(), {"train": 2}))
    assert "panel train has repeated task ids" in problems
    assert "panel train differs when asked for twice" in problems


class _NoProbes:
    """A benchmark without probes is driven by its demonstrations."""

    def __init__(self) -> None:
        self._inner = _benchmark()
        self.name, self.max_turns, self.pieces = "bare", 8, self._inner.pieces
        self.panel, self.make = self._inner.panel, self._inner.make

    def demonstrations(self, warm_start: int) -> Iterator[list[Message]]:
        while True:
            actions = self._inner.probes(_TASKS[0])[2:]
            yield [Message("user", "?"), *(Message("assistant", action) for action in actions)]


def test_demonstrations_drive_a_benchmark_without_probes() -> None:
    assert run_contract(_NoProbes()) == []
