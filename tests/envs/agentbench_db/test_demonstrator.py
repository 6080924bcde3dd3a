import re
from itertools import islice
from typing import Any

import pytest

from rail.envs.agentbench_db import AgentBenchDb, Settings
from rail.envs.agentbench_db.competence import draw_competence
from rail.envs.agentbench_db.demonstrator import LOOK_UPS, demonstrate
from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.kinds import KINDS
from rail.envs.agentbench_db.settings import GeneratorSettings
from rail.envs.base import Message, Task
from rail.errors import ConfigError
from rail.seeding import generator

_CALLED = re.compile(r'"name":"(\w+)"')
POOLS = {"train": 128, "validation": 144, "test_a": 200, "bands": 200}


@pytest.fixture(scope="module")
def benchmark() -> AgentBenchDb:
    return AgentBenchDb(Settings(), POOLS)


@pytest.mark.parametrize("panel", sorted(POOLS))
def test_without_mistakes_every_task_is_solved(benchmark: AgentBenchDb, panel: str) -> None:
    draws = Draws(generator(0, "test"))
    tasks = benchmark.panel(panel)
    assert [demonstrate(benchmark, task, None, draws).reward for task in tasks] == [1.0] * len(
        tasks
    )


@pytest.mark.parametrize("look_up", sorted(LOOK_UPS))
def test_every_look_up_prints_the_columns(benchmark: AgentBenchDb, look_up: str) -> None:
    task = benchmark.panel("train")[0]
    env = benchmark.make(task)
    query = LOOK_UPS[look_up].format_map(task.row["fields"])
    shown = env.step(benchmark.tools.call_query(query)).observation
    columns = [c["name"] for c in task.row["table"]["table_info"]["columns"]]
    places = [shown.find(column) for column in columns]
    assert -1 not in places
    assert places == sorted(places)
    env.close()


def _play(benchmark: AgentBenchDb, task: Task, at: int, wrong: str) -> float:
    """Do all queries rightly but the one `at`, and answer with what was seen last."""
    fields: dict[str, Any] = dict(task.row["fields"])
    last = fields.get("x", "none")
    env = benchmark.make(task)
    for number, stage in enumerate(KINDS[task.kind].stages):
        sql = wrong if number == at else stage.sql
        shown = env.step(benchmark.tools.call_query(sql.format_map(fields))).observation
        value = re.fullmatch(r"\[\('?([^',()]+)'?,\)\]", shown)
        last = fields[f"o{number + 1}"] = value[1] if value else "none"
    answer = "done" if KINDS[task.kind].mutates else last
    reward = env.step(benchmark.tools.call_answer(answer)).reward
    env.close()
    return reward


def test_no_usual_mistake_ever_hits_the_answer(benchmark: AgentBenchDb) -> None:
    tried = set()
    for task in benchmark.panel("bands"):
        for at, stage in enumerate(KINDS[task.kind].stages):
            assert _play(benchmark, task, at, stage.sql) == 1.0
            for mistake in stage.mistakes:
                tried.add((task.kind, at, mistake.name))
                reward = _play(benchmark, task, at, mistake.sql)
                assert reward == 0.0, (task.row["description"], at, mistake.name)
    assert len(tried) == sum(len(s.mistakes) for k in KINDS.values() for s in k.stages)


def test_an_error_is_declared_where_one_shows(benchmark: AgentBenchDb) -> None:
    for task in benchmark.panel("bands")[:60]:
        fields: dict[str, Any] = dict(task.row["fields"])
        env = benchmark.make(task)
        for number, stage in enumerate(KINDS[task.kind].stages):
            for mistake in stage.mistakes:
                copy = env.fork()
                result = copy.step(benchmark.tools.call_query(mistake.sql.format_map(fields)))
                assert result.error == (mistake.after == "error"), mistake
                copy.close()
            shown = env.step(benchmark.tools.call_query(stage.sql.format_map(fields))).observation
            fields[f"o{number + 1}"] = shown.strip("[](),'")
        env.close()


def _take(benchmark: AgentBenchDb, warm_start: int, count: int) -> list[list[Message]]:
    return list(islice(benchmark.demonstrations(warm_start), count))


def test_demonstrations_are_the_warm_start_s_own(benchmark: AgentBenchDb) -> None:
    assert _take(benchmark, 0, 20) == _take(benchmark, 0, 20)
    assert _take(benchmark, 0, 20) != _take(benchmark, 1, 20)


def test_demonstrations_copy_and_never_invent(benchmark: AgentBenchDb) -> None:
    for dialogue in _take(benchmark, 0, 300):
        assert [m.role for m in dialogue[:2]] == ["user", "assistant"]
        assert len(dialogue) % 2 == 0
        seen = dialogue[0].text
        for message in dialogue[1:]:
            if message.role == "assistant":
                is_answer, text = benchmark.tools.parse(message.text)
                values = [text] if is_answer else re.findall(r"'([^']+)'", text)
                unknown = [v for v in values if v not in seen and v not in ("none", "done")]
                assert not unknown, (unknown, dialogue)
            seen += message.text if message.role == "tool" else ""


def test_demonstrations_fit_the_turn_limit_and_have_three_boundaries(
    benchmark: AgentBenchDb,
) -> None:
    turns = [len(dialogue) // 2 for dialogue in _take(benchmark, 0, 600)]
    assert max(turns) <= benchmark.max_turns
    assert sum(turns) / len(turns) - 1 >= 3.0


def test_prompts_look_like_those_of_the_panels() -> None:
    told = AgentBenchDb(Settings(instructions="Use the tools."), {"train": 1})
    prompt = next(told.demonstrations(0))[0].text
    assert prompt.startswith("Use the tools.\n")
    task = told.panel("train")[0]
    assert task.prompt == (
        f"Use the tools.\n{task.row['description']} {task.row['add_description']}"
    )


def test_every_call_has_the_configured_tool_names() -> None:
    renamed = AgentBenchDb(Settings(tools="execute_sql"), {"train": 40})
    default = AgentBenchDb(Settings(), {"train": 40})
    names = {"sql_query": "execute_sql", "answer_action": "commit_final_answer"}
    for dialogue, usual in zip(_take(renamed, 0, 200), _take(default, 0, 200), strict=True):
        calls = [_CALLED.findall(message.text) for message in dialogue[1::2]]
        wanted = [_CALLED.findall(message.text) for message in usual[1::2]]
        assert calls == [[names[name] for name in found] for found in wanted]
        assert dialogue[0::2] == usual[0::2]  # prompt and what the tools answered
    draws = Draws(generator(0, "test"))
    played = [demonstrate(renamed, task, None, draws) for task in renamed.panel("train")]
    assert [(episode.reward, episode.errors) for episode in played] == [(1.0, 0)] * 40


def test_observations_come_from_the_database(benchmark: AgentBenchDb) -> None:
    competence = draw_competence(GeneratorSettings(), 0, benchmark.max_turns)
    draws = Draws(generator(1, "test"))
    for task in benchmark.panel("train")[:40]:
        episode = demonstrate(benchmark, task, competence, draws)
        env = benchmark.make(task)
        reward = 0.0
        for action, answer in zip(
            episode.messages[1::2], [*episode.messages[2::2], None], strict=True
        ):
            result = env.step(action.text)
            reward = result.reward
            assert answer is None or answer.text == result.observation
        assert reward == episode.reward
        assert len(episode.boundaries) == len(episode.messages) // 2 - 1
        env.close()


def test_upstream_rows_have_no_demonstrator(benchmark: AgentBenchDb) -> None:
    competence = draw_competence(GeneratorSettings(), 0, benchmark.max_turns)
    with pytest.raises(ConfigError, match="only generated tasks have demonstrations"):
        competence.chain({"type": ["other"]})
