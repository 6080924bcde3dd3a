from collections import Counter

import numpy as np
import pytest
from pydantic import ValidationError

from rail.envs.agentbench_db import AgentBenchDb, Settings
from rail.envs.agentbench_db.competence import (
    Cell,
    Chain,
    Competence,
    draw_competence,
    success_probability,
)
from rail.envs.agentbench_db.demonstrator import demonstrate
from rail.envs.agentbench_db.difficulty import bands, expected
from rail.envs.agentbench_db.draws import Draws
from rail.envs.agentbench_db.generator import generate
from rail.envs.agentbench_db.kinds import KINDS
from rail.envs.agentbench_db.schemas import NUMBERS
from rail.envs.agentbench_db.settings import (
    DemonstratorSettings,
    GeneratorSettings,
    LevelSettings,
)
from rail.seeding import generator

CELL = Cell("weak", "columns", bias=0.4, good=0.25, bad=0.01)


def _dial(**changes: object) -> DemonstratorSettings:
    plain = {"skip": 0.0, "retry_error": 0.0, "retry_silent": 0.0}
    return DemonstratorSettings.model_validate(plain | changes)


def test_success_is_the_level_of_the_route_taken() -> None:
    chain = Chain("two_hop", CELL, _dial(), 8)
    assert chain.value(0, "columns", 1) == pytest.approx(0.25)
    assert chain.value(0, "concat", 1) == pytest.approx(0.01)
    assert chain.start() == pytest.approx(0.4 * 0.25 + 0.6 * 0.01)  # 0.106


def test_the_difficulty_lies_where_the_exponents_put_it() -> None:
    dial = _dial(exponents={1: (1.0,), 2: (0.0, 0.5), 3: (0.0, 0.0, 1.0)})
    question = Chain("two_hop", CELL, dial, 8)
    assert [question.eventually(q, "columns") for q in range(3)] == pytest.approx([1.0, 0.5, 0.5])
    # A mutation has no answer to get wrong: its last query takes the rest.
    mutation = Chain("insert", CELL, dial, 8)
    assert [mutation.eventually(q, "columns") for q in range(3)] == pytest.approx([1.0, 0.25, 1.0])
    # A boundary after the first query is worth what is left.
    assert question.value(1, "columns", 2) == pytest.approx(0.25)
    assert question.value(2, "columns", 3) == pytest.approx(0.5)


def test_retries_change_how_success_comes_about_and_not_how_often() -> None:
    dial = _dial(retry_error=0.9, retry_silent=0.3, exponents={1: (1.0,), 2: (0, 1), 3: (0, 0, 1)})
    chain = Chain("two_hop", CELL, dial, 8)
    # Second query of two_hop: two silent mistakes, one error, so a retry in (0.3 + 0.3 + 0.9) / 3
    # = 0.5 of cases; 0.25 = s + (1 - s) * 0.5 * 0.25 gives s = 0.125 / 0.875 = 1/7.
    assert chain.at_once(1, "columns") == pytest.approx(1 / 7)
    assert chain.value(0, "columns", 1) == pytest.approx(0.25)


def test_a_retry_needs_turns_to_spare() -> None:
    dial = _dial(retry_silent=0.5, retry_error=0.5, exponents={1: (1.0,), 2: (0, 1), 3: (0, 0, 1)})
    # Look-up, two queries, answer: 4 turns; none is left for a second try.
    tight = Chain("two_hop", CELL, dial, 4)
    assert tight.value(0, "columns", 1) == pytest.approx(tight.at_once(1, "columns"))
    assert Chain("two_hop", CELL, dial, 5).value(0, "columns", 1) == pytest.approx(0.25)


def test_guessing_columns_costs_two_turns_and_leaves_the_bad_level() -> None:
    dial = _dial(skip=1.0)
    chain = Chain("lookup", CELL, dial, 8)
    # One new column of two names: half the time right, then the level without a look-up; else an
    # error, a look-up by habit, and its level.
    assert chain.start() == pytest.approx(0.5 * 0.01 + 0.5 * (0.4 * 0.25 + 0.6 * 0.01))


def test_the_hard_query_of_a_kind_may_come_first() -> None:
    dial = _dial(exponents={1: (1.0,), 2: (0.1, 0.8), 3: (0.0, 0.0, 1.0)})
    # Removing the extreme row: the number is named in the first query, which takes .8 and the rest.
    chain = Chain("delete", CELL, dial, 8)
    assert chain.eventually(0, "columns") == pytest.approx(0.25**0.9)
    assert chain.eventually(1, "columns") == pytest.approx(0.25**0.1)
    assert chain.eventually(2, "columns") == 1.0


def test_the_map_deals_every_kind_the_same_classes() -> None:
    competence = draw_competence(GeneratorSettings(), 0, 8)
    assert set(competence.cells) == {(k, c) for k in KINDS for c in NUMBERS}
    for kind in KINDS:
        counts = Counter(competence.cells[kind, concept].level for concept in NUMBERS)
        # Shares .335, .085, .58 of 12 concepts: 4.02, 1.02, 6.96; the one left over goes to .96.
        assert counts == {"strong": 4, "middle": 1, "weak": 7}
    assert len({cell.good_route for cell in competence.cells.values()}) == 1


def test_families_of_kinds_alternate_their_good_look_up() -> None:
    settings = GeneratorSettings(demonstrator=DemonstratorSettings(families=2))
    cells = draw_competence(settings, 0, 8).cells
    routes = {kind: {cells[kind, concept].good_route for concept in NUMBERS} for kind in KINDS}
    assert all(len(found) == 1 for found in routes.values())
    assert sorted(Counter(r for found in routes.values() for r in found).values()) == [5, 5]


def test_every_warm_start_has_its_own_map() -> None:
    first, again, second = (draw_competence(GeneratorSettings(), w, 8).cells for w in (0, 0, 1))
    assert first == again
    assert sum(first[key].level != second[key].level for key in first) >= 20


def test_a_cell_s_success_is_what_was_drawn_for_it() -> None:
    dial = _dial()
    competence = draw_competence(GeneratorSettings(demonstrator=dial), 3, 8)
    for (kind, concept), cell in competence.cells.items():
        low, high = dial.levels[cell.level].success
        row = {"type": [kind], "concept": concept}
        assert low - 1e-9 <= success_probability(competence, row) <= high + 1e-9
        good = success_probability(competence, row, cell.good_route)
        other = next(r for r in dial.routes if r != cell.good_route)
        bad = success_probability(competence, row, other)
        assert bad / good == pytest.approx(dial.levels[cell.level].contrast)


@pytest.mark.parametrize(
    ("kind", "level"), [("lookup", 0.5), ("two_hop", 0.4), ("chain", 0.6), ("insert", 0.3)]
)
def test_the_demonstrator_succeeds_as_often_as_calculated(kind: str, level: float) -> None:
    dial = DemonstratorSettings(skip=0.3, retry_error=0.8, retry_silent=0.3)
    cell = Cell("middle", "concat", bias=0.5, good=level + 0.2, bad=level - 0.2)
    competence = Competence({(kind, c): cell for c in NUMBERS}, dial, 8)
    benchmark = AgentBenchDb(Settings(), {"train": 60})
    tasks = [task for task in benchmark.panel("train") if task.kind == kind]
    draws = Draws(generator(0, "test", kind))
    count = 150
    rewards, first = [], []
    for task in tasks:
        for _ in range(count):
            episode = demonstrate(benchmark, task, competence, draws)
            rewards.append(episode.reward)
            first.append(episode.boundaries[0])
    expected = success_probability(competence, tasks[0].row)
    error = (expected * (1 - expected) / len(rewards)) ** 0.5
    assert abs(np.mean(rewards) - expected) < 4 * error
    # The value noted at the first boundary is a martingale: its mean is the chance at the start.
    spread = float(np.std(first)) / len(first) ** 0.5
    assert abs(np.mean(first) - expected) < 4 * spread


def test_bands_count_groups() -> None:
    sure = Cell("strong", "columns", 0.5, 1.0, 1.0)
    lost = Cell("weak", "columns", 0.5, 1e-12, 1e-12)
    cells = {(k, c): sure if c in list(NUMBERS)[:6] else lost for k in KINDS for c in NUMBERS}
    competence = Competence(cells, _dial(), 8)
    benchmark = AgentBenchDb(Settings(), {"bands": 120})
    found = bands(benchmark, benchmark.panel("bands"), competence, Draws(generator(0, "test")), 2)
    # Two mistakes in a row may cancel: a wrong row found and the row that refers to it deleted.
    counted = (found.mean, found.all_pass, found.all_fail, found.mixed)
    assert counted == pytest.approx((0.5, 0.5, 0.5, 0.0), abs=0.01)
    assert all(abs(mean - 0.5) < 0.05 for mean in found.kinds.values())
    assert found.recoverable == found.recoverable_all_fail == 0.0
    assert found.within == pytest.approx(0.0, abs=1e-6)
    assert found.turns["lookup"] == pytest.approx(3.0, abs=0.01)


def test_expected_bands_are_binomial() -> None:
    sure = Cell("strong", "columns", 0.5, 1.0, 1.0)
    even = Cell("middle", "columns", 0.5, 0.5, 0.5)
    cells = {(k, c): sure if c == "price" else even for k in KINDS for c in NUMBERS}
    competence = Competence(cells, _dial(), 8)
    rows = [{"type": ["chain"], "concept": c} for c in ("price", "age")]
    found = expected(competence, rows, rollouts=2)
    # Two rollouts at 1/2: both fail 1/4, both pass 1/4; the sure task always passes.
    assert (found.mean, found.mixed, found.all_fail, found.all_pass) == pytest.approx(
        (0.75, 0.25, 0.125, 0.625)
    )
    assert found.kinds == {"chain": pytest.approx(0.75)}


@pytest.mark.parametrize("warm_start", range(4))
def test_default_dial_aims_at_the_bands(warm_start: int) -> None:
    rows = generate({}, "bands", 240)
    found = expected(draw_competence(GeneratorSettings(), warm_start, 8), rows)
    # The demonstrator's own bands: sharper than those of a policy, which smooths each choice.
    assert 0.36 <= found.mean <= 0.42
    assert 0.19 <= found.mixed <= 0.26
    assert 0.42 <= found.all_fail <= 0.49
    assert 0.29 <= found.all_pass <= 0.35
    assert min(found.kinds.values()) >= 0.25


def test_states_within_a_task_differ() -> None:
    benchmark = AgentBenchDb(Settings(), {"bands": 120})
    competence = draw_competence(GeneratorSettings(), 0, 8)
    found = bands(benchmark, benchmark.panel("bands"), competence, Draws(generator(0, "test")))
    assert found.boundaries >= 3.0
    assert found.recoverable >= 0.15
    assert found.recoverable_all_fail >= 0.10
    assert found.within >= 3 * found.noise


def test_impossible_dials_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"sum to 0\.5"):
        DemonstratorSettings(
            levels={"a": LevelSettings(share=0.5, success=(0.1, 0.2), contrast=1, good_route=0.5)}
        )
    with pytest.raises(ValidationError, match="at most 1 is possible"):
        DemonstratorSettings(
            levels={"a": LevelSettings(share=1, success=(0.5, 0.8), contrast=0.1, good_route=0.5)}
        )
    with pytest.raises(ValidationError, match="two routes must differ"):
        DemonstratorSettings(routes=("concat", "concat"))
    with pytest.raises(ValidationError, match=r"exponents\[2\]"):
        DemonstratorSettings(exponents={1: (1.0,), 2: (0.7, 0.7), 3: (0, 0, 1.0)})
