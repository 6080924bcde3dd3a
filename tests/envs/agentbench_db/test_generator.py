import re
from collections import Counter
from typing import Any

import pytest

from rail.envs.agentbench_db import AgentBenchDb, Settings
from rail.envs.agentbench_db.baselines import guess_baselines
from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.generator import generate
from rail.envs.agentbench_db.kinds import KINDS
from rail.envs.agentbench_db.rows import spec_of
from rail.envs.agentbench_db.schemas import (
    GROUPS,
    NUMBERS,
    REFERENCES,
    draw_names,
    names,
    partition_of,
)
from rail.errors import ConfigError
from rail.seeding import generator

PANELS = {"train": 128, "validation": 144, "test_a": 300}


@pytest.fixture(scope="module")
def panels() -> dict[str, list[dict[str, Any]]]:
    return {name: generate({}, name, size) for name, size in PANELS.items()}


def _cells(row: dict[str, Any]) -> list[dict[str, str]]:
    info = row["table"]["table_info"]
    return [dict(zip([c["name"] for c in info["columns"]], r, strict=True)) for r in info["rows"]]


def _words(row: dict[str, Any]) -> set[str]:
    """Every name of a row: table, entities, groups, new entity."""
    cells = [cell for line in row["table"]["table_info"]["rows"] for cell in line]
    found = {row["table"]["table_name"], *(c for c in cells if not c.isdigit())}
    return {w.lower() for w in found | set(re.findall(r"'([A-Z][a-z]+)'", row["description"]))}


def test_a_panel_is_the_same_every_time_and_a_longer_one_begins_with_it() -> None:
    assert generate({}, "train", 40) == generate({}, "train", 60)[:40]
    assert generate({}, "train", 10) != generate({}, "bands", 10)


def test_kinds_are_balanced_and_so_are_concepts_within_a_kind(
    panels: dict[str, list[dict[str, Any]]],
) -> None:
    for name, size in PANELS.items():
        kinds = [row["type"][0] for row in panels[name]]
        counts = [kinds.count(kind) for kind in KINDS]
        assert sum(counts) == size
        assert max(counts) - min(counts) <= 1
    concepts = [r["concept"] for r in panels["test_a"] if r["type"] == ["chain"]]
    assert {concepts.count(c) for c in NUMBERS} <= {2, 3}  # 30 tasks over 12 concepts


def test_names_of_a_panel_are_used_by_no_other(panels: dict[str, list[dict[str, Any]]]) -> None:
    used = {name: set().union(*map(_words, rows)) for name, rows in panels.items()}
    for name in PANELS:
        assert {partition_of(word) for word in used[name]} == {name}
    assert not used["train"] & used["test_a"]
    benchmark = AgentBenchDb(Settings(), {})
    stream = benchmark.demonstrations(0)
    shown = " ".join(m.text for _ in range(300) for m in next(stream))
    spoken = {w.lower() for w in re.findall(r"['`]([A-Za-z]+)['`]", shown)}
    assert len(spoken) > 500
    for rows in panels.values():
        tested = set().union(*map(_words, rows))
        assert not tested & spoken


def test_partitions_cover_all_names_once() -> None:
    parts = [set(names(p)) for p in ("demonstrations", "train", "validation", "test_a", "test_b")]
    assert sum(map(len, parts)) == len(set().union(*parts))
    assert partition_of("Bako") == partition_of("bako")
    assert min(map(len, parts)) > 250
    with pytest.raises(ConfigError, match="no name partition 'test_c'"):
        names("test_c")  # pyright: ignore[reportArgumentType]


def test_names_of_a_table_share_no_syllable() -> None:
    found = draw_names(Draws(generator(0, "test")), "train", 12)
    assert len({n[:2] for n in found}) == len({n[2:] for n in found}) == 12


def test_there_are_at_least_200_schemas(panels: dict[str, list[dict[str, Any]]]) -> None:
    schemas = {
        (r["table"]["table_name"], *(c["name"] for c in r["table"]["table_info"]["columns"]))
        for rows in panels.values()
        for r in rows
    }
    assert len(schemas) >= 200


def test_a_panel_without_a_seed_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no panel 'test_b' has been given a seed.*frozen"):
        generate({}, "test_b", 5)
    unsealed = {"panels": {"test_b": {"seed": 9, "names": "test_b"}}}
    assert len(generate(unsealed, "test_b", 5)) == 5


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="level_of_detail"):
        generate({"level_of_detail": 3}, "train", 1)


def test_questions_name_no_column(panels: dict[str, list[dict[str, Any]]]) -> None:
    columns = {
        c for words in (NUMBERS, REFERENCES, GROUPS) for pair in words.values() for c in pair
    }
    for row in panels["test_a"]:
        prompt = spec_of(row).prompt
        assert not columns & set(re.findall(r"[a-z]+", prompt)), prompt
        assert row["hidden_schema"] is True
        assert row["table"]["table_name"] in prompt


def _solve(row: dict[str, Any]) -> str:
    """The answer of a question, by reading the table without SQL."""
    cells, f = _cells(row), row["fields"]
    by_name = {cell["name"]: cell for cell in cells}
    pick = max if f["most"] == "most" else min
    match row["type"][0]:
        case "lookup":
            return by_name[f["x"]][f["c"]]
        case "extreme":
            return pick(cells, key=lambda cell: int(cell[f["d"]]))[f["c"]]
        case "next_above":
            own = int(by_name[f["x"]][f["c"]])
            above = [cell for cell in cells if int(cell[f["c"]]) > own]
            return min(above, key=lambda cell: int(cell[f["c"]]))["name"]
        case "group_sum":
            group = by_name[f["x"]][f["g"]]
            return str(sum(int(cell[f["c"]]) for cell in cells if cell[f["g"]] == group))
        case "two_hop":
            return by_name[by_name[f["x"]][f["r"]]][f["c"]]
        case "chain":
            return by_name[by_name[by_name[f["x"]][f["r"]]][f["r"]]][f["c"]]
        case kind:
            raise AssertionError(f"{kind} is no question")


def _wanted(row: dict[str, Any]) -> list[tuple[str | None, ...]]:
    """The rows after a mutation, by editing the table without SQL, sorted."""
    cells, f = _cells(row), row["fields"]
    by_name = {cell["name"]: cell for cell in cells}
    pick = max if f["most"] == "most" else min
    match row["type"][0]:
        case "update":
            pick(cells, key=lambda cell: int(cell[f["c"]]))[f["r"]] = f["y"]
        case "assign":
            by_name[f["x"]][f["r"]] = pick(cells, key=lambda cell: int(cell[f["c"]]))["name"]
        case "delete":
            cells.remove(pick(cells, key=lambda cell: int(cell[f["c"]])))
        case "insert":
            cells.append({"name": f["y"], f["g"]: by_name[f["x"]][f["g"]], f["c"]: f["v"]})
    order = [c["name"] for c in row["table"]["table_info"]["columns"]]
    return sorted(tuple(cell[column] for column in order) for cell in cells)


def test_labels_of_questions_are_right(panels: dict[str, list[dict[str, Any]]]) -> None:
    questions = [row for row in panels["test_a"] if "sql" in row]
    assert {row["type"][0] for row in questions} == {k for k, v in KINDS.items() if not v.mutates}
    for row in questions:
        assert (
            float(row["label"][0]) == float(_solve(row))
            if row["label"][0][0].isdigit()
            else (row["label"] == [_solve(row)])
        )


def test_gold_statements_of_mutations_lead_to_the_right_table(
    panels: dict[str, list[dict[str, Any]]],
) -> None:
    benchmark = AgentBenchDb(Settings(), {"test_a": 300})
    seen = set()
    for task in benchmark.panel("test_a"):
        if "answer_md5" not in task.row:
            continue
        seen.add(task.kind)
        env = benchmark.make(task)
        env.step(benchmark.tools.call_query(task.row["label"][0]))
        rows = env._database.contents(task.row["table"]["table_name"])[1]
        assert Counter(rows) == Counter(_wanted(dict(task.row)))
        result = env.step(benchmark.tools.call_answer("done"))
        assert (result.reward, result.reward_upstream) == (1.0, 1.0)
        env.close()
    assert seen == {"update", "assign", "delete", "insert"}


def test_doing_nothing_solves_no_mutation() -> None:
    benchmark = AgentBenchDb(Settings(), {"test_a": 100})
    for task in benchmark.panel("test_a"):
        env = benchmark.make(task)
        assert env.step(benchmark.tools.call_answer("done")).reward == 0.0
        env.close()


def test_guessing_scores_below_five_percent() -> None:
    train, test = generate({}, "train", 128), generate({}, "test_a", 500)
    found = guess_baselines(train, test)
    assert set(found) == {"constant", "kind", "nearest", "echo"}
    assert max(found.values()) < 0.05, found


def test_baselines_find_what_there_is_to_find() -> None:
    # Learning from the very tasks that are scored, the nearest question is the question itself.
    rows = [row for row in generate({}, "train", 60) if "sql" in row]
    found = guess_baselines(rows, rows)
    assert found["nearest"] > 0.9
    same = [rows[0]] * 4
    assert guess_baselines(same, same)["constant"] == 1.0
    with pytest.raises(ValueError, match="0 to learn and 0 to score"):
        guess_baselines([], [])
