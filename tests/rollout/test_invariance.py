"""What is drawn does not depend on who is drawn beside it."""

from collections.abc import Sequence

import numpy as np
import pytest

from rail.interventions import Decoding
from rail.rollout.engine import Engine, Expansion, Forest
from rail.rollout.tree import Turn
from tests.policy.models import needs_kernel
from tests.rollout.test_engine import Toy, make_engine

TASKS, CHILDREN = 5, 8
DECODINGS = [Decoding(1.0), Decoding(0.6, 0.95), Decoding(1.25), Decoding(0.0)]
Drawn = dict[tuple[str, int, int], Turn]


def drawn(engine: Engine, order: Sequence[int], jobs: Sequence[int]) -> Drawn:
    """Draw roots and then branches, tasks and jobs in the given order; turns by task and job."""
    forest, tasks = Forest(), [engine.benchmark.panel("train")[i] for i in order]
    engine.plant(forest, tasks)

    def streams(name: str, index: int) -> list[tuple[str, str, int]]:
        return [(name, tasks[index].id, job) for job in jobs]

    places = range(len(tasks))
    engine.expand(forest, [Expansion(i, streams("base", i), keep=True) for i in places])
    engine.expand(
        forest,
        [
            Expansion(
                i,
                streams("branch", i),
                rollout=jobs.index(0),
                turn=len(forest.trees[i].trajectories[jobs.index(0)].turns) - 1,
                decoding=DECODINGS[order[i] % len(DECODINGS)],
            )
            for i in places
        ],
    )
    found: Drawn = {}
    for tree in forest.trees:
        for place, trajectory in enumerate(tree.trajectories):
            job = jobs[place % len(jobs)] + CHILDREN * (place // len(jobs))
            for turn in trajectory.turns:
                found[tree.task.id, job, tree.turns[turn].index] = tree.turns[turn]
    return found


def compare(one: Drawn, other: Drawn, tolerance: float) -> None:
    assert one.keys() == other.keys()
    for key, turn in one.items():
        theirs = other[key]
        assert turn.action.tolist() == theirs.action.tolist()
        assert turn.observation.tolist() == theirs.observation.tolist()
        for name in ("logprob", "logprob_sampled", "entropy", "hidden", "state"):
            gap = np.abs(getattr(turn, name) - getattr(theirs, name)).max()
            assert gap <= tolerance, (key, name)


@pytest.mark.parametrize(
    ("backend", "tolerance"),
    [pytest.param("native", 0.0, marks=needs_kernel), ("torch", 1e-5), ("hf", 1e-5)],
)
def test_slots_and_order_change_nothing(toy: Toy, backend: str, tolerance: float) -> None:
    tasks, jobs = list(range(TASKS)), list(range(CHILDREN))
    expected = drawn(make_engine(toy, backend=backend, slots=16), tasks, jobs)
    assert len(expected) > TASKS * CHILDREN
    rng = np.random.default_rng(0)
    for slots in (3, 48, 96):
        shuffled = (rng.permutation(tasks).tolist(), rng.permutation(jobs).tolist())
        found = drawn(make_engine(toy, backend=backend, slots=slots), *shuffled)
        compare(expected, found, tolerance)


@needs_kernel
def test_the_three_backends_draw_the_same(toy: Toy) -> None:
    tasks, jobs = list(range(TASKS)), list(range(CHILDREN))
    oracle = drawn(make_engine(toy, backend="hf"), tasks, jobs)
    for backend in ("native", "torch"):
        compare(oracle, drawn(make_engine(toy, backend=backend), tasks, jobs), 1e-4)
