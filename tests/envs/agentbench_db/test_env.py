import hashlib
import json
from pathlib import Path

import pytest

from rail.envs.agentbench_db import AgentBenchDb, build
from rail.envs.agentbench_db.env import DbEnv
from rail.envs.base import StepResult, StopReason, Task
from rail.errors import ConfigError, DataError, EnvError

from .rows import mutation, question

_BENCHMARK = build({}, {})
_QUERY, _ANSWER = _BENCHMARK.tools.call_query, _BENCHMARK.tools.call_answer
_GOLD = "UPDATE people SET age = '5' WHERE name = 'Ann'"


def _env(row: dict[str, object], benchmark: AgentBenchDb = _BENCHMARK) -> DbEnv:
    return benchmark.make(Task("t", "other", "?", row))


def test_an_episode() -> None:
    env = _env(question(["4"]))
    assert env.step(_QUERY("SELECT age FROM people WHERE name = 'ann'")) == StepResult("[('4',)]")
    assert env.step(_ANSWER("4")) == StepResult(
        "", done=True, reward=1.0, reward_upstream=1.0, stop=StopReason.ANSWERED
    )
    assert env.turn == 2


def test_the_two_rules_are_both_reported() -> None:
    result = _env(question(["0"])).step(_ANSWER("undefined"))  # F4
    assert (result.reward, result.reward_upstream) == (0.0, 1.0)
    training = build({"reward": "upstream"}, {})
    result = _env(question(["0"]), training).step(_ANSWER("undefined"))
    assert (result.reward, result.reward_upstream) == (1.0, 1.0)


def test_a_failing_query_is_an_observation() -> None:
    result = _env(question(["4"])).step(_QUERY("SELECT nope FROM people"))
    assert result == StepResult("Error: no such column: nope", error=True)


def test_an_action_without_a_call_costs_a_turn_and_says_what_was_expected() -> None:
    env = _env(question(["4"]))
    result = env.step("The answer is 4.")
    assert result.error
    assert not result.done
    assert result.observation.startswith("Error: no tool call found; write <tool_call>")
    assert env.turn == 1


def test_the_turn_limit_ends_without_reward_even_in_the_right_state() -> None:  # G24
    benchmark = build({"max_turns": 2}, {})
    env = _env(mutation(_GOLD), benchmark)
    env.step(_QUERY(_GOLD))
    result = env.step(_QUERY("SELECT 1"))
    assert result == StepResult("", done=True, stop=StopReason.TURN_LIMIT)
    with pytest.raises(EnvError, match="task t: step on an episode that is over"):
        env.step(_ANSWER("done"))


def test_the_last_turn_may_answer() -> None:
    env = _env(question(["4"]), build({"max_turns": 1}, {}))
    assert env.step(_ANSWER("4")).reward == 1.0


@pytest.mark.parametrize(
    ("statements", "reward"),
    [
        ([_GOLD], 1.0),
        (["UPDATE people SET age = 5 WHERE age = 4"], 1.0),
        ([], 0.0),
        ([_GOLD, "UPDATE people SET name = 'ann' WHERE name = 'Ann'"], 0.0),  # F2
        ([_GOLD, "CREATE TABLE scratch (a TEXT)"], 0.0),
        ([_GOLD, "DROP TABLE people"], 0.0),
    ],
)
def test_a_mutation_is_judged_by_its_state(statements: list[str], reward: float) -> None:  # G24
    env = _env(mutation(_GOLD))
    for statement in statements:
        env.step(_QUERY(statement))
    assert env.step(_ANSWER("no idea")).reward == reward
    assert (env.difference() == "") == (reward == 1.0)


def test_a_miss_can_be_read() -> None:  # F2
    env = _env(mutation(_GOLD))
    env.step(_QUERY("UPDATE people SET age = '6' WHERE name = 'Ann'"))
    assert env.difference() == "people: missing ('Ann', '5')\npeople: extra ('Ann', '6')"


def test_upstream_compares_with_the_stored_digest() -> None:
    def five(text: str) -> str:
        return hashlib.md5(text.encode()).hexdigest()[:5]

    parts = ",".join(sorted((five("Ann,5"), five("Bob,10"), five("Cid,7"))))
    right = mutation(_GOLD, hashlib.md5(parts.encode()).hexdigest())
    env = _env(right)
    env.step(_QUERY(_GOLD))
    result = env.step(_ANSWER(""))
    assert (result.reward, result.reward_upstream) == (1.0, 1.0)
    env = _env(mutation(_GOLD, "0" * 32))  # a digest that cannot be reached
    env.step(_QUERY(_GOLD))
    result = env.step(_ANSWER(""))
    assert (result.reward, result.reward_upstream) == (1.0, 0.0)


def test_a_gold_statement_that_fails_is_a_broken_task() -> None:
    env = _env(mutation("UPDATE nowhere SET a = 1"))
    with pytest.raises(DataError, match=r"task t: gold statement 'UPDATE nowhere .* no such table"):
        env.step(_ANSWER("done"))


def test_an_empty_result_task_accepts_an_empty_answer() -> None:  # G7
    gold = "SELECT age FROM people WHERE name = 'Zoe'"
    assert _env(question(["0.0"], gold)).step(_ANSWER("none")).reward == 1.0
    wrong = question(["2"], gold)  # a gold statement that misses its own label
    assert _env(wrong).step(_ANSWER("none")).reward == 0.0
    found = "SELECT COUNT(*) FROM people WHERE name = 'Zoe'"
    assert _env(question(["0.0"], found)).step(_ANSWER("none")).reward == 0.0


def test_a_fork_carries_turn_state_and_end() -> None:
    env = _env(mutation(_GOLD))
    env.step(_QUERY(_GOLD))
    copy = env.fork()
    assert (copy.turn, copy.state_hash()) == (1, env.state_hash())
    env.step(_QUERY("DELETE FROM people"))
    assert copy.step(_ANSWER("done")).reward == 1.0
    assert env.step(_ANSWER("done")).reward == 0.0
    with pytest.raises(EnvError, match="over"):
        env.fork().step(_ANSWER("done"))


def test_the_state_hash_counts_turns_and_the_end() -> None:
    env = _env(question(["4"]))
    before = env.state_hash()
    assert env.fork().state_hash() == before
    env.step(_QUERY("SELECT 1"))
    assert env.state_hash() != before


def test_the_other_tool_names() -> None:
    benchmark = build({"tools": "execute_sql"}, {})
    env = _env(question(["4", "7"]), benchmark)
    assert env.step(_QUERY("SELECT 1")).observation.startswith("Error: unknown tool 'sql_query'")
    assert env.step(benchmark.tools.call_query("SELECT 1")).observation == "[(1,)]"
    assert env.step(benchmark.tools.call_answer(["7", "4"])).reward == 1.0


def test_tasks_that_share_an_id_do_not_share_a_database() -> None:
    _env(question(["4"])).close()
    other = question(["9"])
    other["table"]["table_info"]["rows"] = [["Zoe", "9"]]
    assert _env(other).step(_QUERY("SELECT * FROM people")).observation == "[('Zoe', '9')]"


def test_settings_reach_the_environment() -> None:
    benchmark = build({"output_limit": 4, "typed": True, "instructions": "Use the tools."}, {})
    result = _env(question(["4"]), benchmark).step(_QUERY("SELECT age FROM people LIMIT 1"))
    assert result.observation == "[(4,[TRUNCATED: 2 of 6 characters cut]"


def test_an_unknown_setting_is_named() -> None:
    with pytest.raises(ConfigError, match=r"(?s)agentbench_db: .*\nmax_turn\n"):
        build({"max_turn": 3}, {})


def test_an_unknown_panel_lists_what_exists() -> None:
    with pytest.raises(ConfigError, match=r"no panel 'test_z'; pools: \['test_a', 'train'\]"):
        build({}, {"train": 1, "test_a": 1}).panel("test_z")


def _file(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_panel_from_a_file(tmp_path: Path) -> None:
    gold = "SELECT age FROM people WHERE name = 'Ann'"
    stale = question(["17"], "SELECT COUNT(*) FROM people")  # F1: a label of an older table
    rows: list[dict[str, object]] = [question(["4"], gold), stale, mutation(_GOLD, "0" * 32)]
    path = _file(tmp_path / "rows.jsonl", rows)
    source = {"test_a": str(path)}
    everything = build(
        {"source": source, "clean_only": False, "instructions": "Hi."}, {"test_a": 3}
    )
    tasks = everything.panel("test_a")
    assert [(t.id, t.kind) for t in tasks] == [
        ("test_a-0000", "other"), ("test_a-0001", "other"), ("test_a-0002", "UPDATE"),
    ]  # fmt: skip
    assert tasks[0].prompt.startswith("Hi.\nHow old is Ann? The name of this table")
    assert tasks[0].row == rows[0]
    # the right answer to the stale question is 3, which its label does not say
    assert everything.make(tasks[1]).step(_ANSWER("17")).reward == 1.0
    clean = build({"source": source}, {"test_a": 1})
    assert [t.id for t in clean.panel("test_a")] == ["test_a-0000"]


def test_a_file_with_too_few_tasks_names_both_numbers(tmp_path: Path) -> None:
    path = _file(tmp_path / "rows.jsonl", [question(["4"])])
    with pytest.raises(ConfigError, match=r"asks for 5 tasks, but .* holds 1 usable tasks"):
        build({"source": {"train": str(path)}}, {"train": 5}).panel("train")
