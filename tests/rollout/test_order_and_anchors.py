import numpy as np
from numpy.typing import NDArray

from rail.envs.base import Task
from rail.rollout.anchors import propose
from rail.rollout.order import TaskOrder
from rail.rollout.rows import group_shares
from rail.rollout.tree import Trajectory, Tree, Turn

POOL = [Task(f"t{i}", "k", "", {}) for i in range(10)]


def turn(index: int, entropies: list[float]) -> Turn:
    size = len(entropies)
    zeros: NDArray[np.float32] = np.zeros(size, dtype=np.float32)
    ids = np.arange(size)
    entropy = np.array(entropies, dtype=np.float32)
    return Turn(index, ids, ids, zeros, zeros, entropy, zeros, zeros, "", False)


def tree_of(*trajectories: list[list[float]]) -> Tree:
    tree = Tree(POOL[0], np.arange(2))
    for entropies in trajectories:
        start = len(tree.turns)
        tree.turns += [turn(i, values) for i, values in enumerate(entropies)]
        tree.trajectories.append(Trajectory(list(range(start, len(tree.turns)))))
    return tree


def test_an_epoch_meets_every_task_once_and_epochs_differ() -> None:
    order = TaskOrder(POOL, seed=3)
    first, second = order.take(0, 10), order.take(10, 10)
    assert sorted(t.id for t in first) == sorted(t.id for t in POOL)
    assert sorted(t.id for t in second) == sorted(t.id for t in POOL)
    assert first != second


def test_the_order_does_not_depend_on_how_many_are_taken_at_a_time() -> None:
    order = TaskOrder(POOL, seed=3)
    assert order.take(0, 16) == order.take(0, 5) + order.take(5, 11)


def test_the_anchor_is_the_boundary_before_the_most_uncertain_action() -> None:
    tree = tree_of([[9.0], [0.2], [0.8, 0.4], [0.1]])
    (anchor,) = propose(tree, 4, 2, np.random.default_rng(0))
    # Turn 0 is left out; turn 2 has mean (0.8 + 0.4) / 2.
    assert (anchor.tree, anchor.rollout, anchor.turn) == (4, 0, 2)
    assert anchor.entropy == np.float32(0.6)


def test_a_trajectory_gives_one_anchor_and_a_task_two_at_most() -> None:
    tree = tree_of([[0.0], [0.9], [0.8]], [[0.0], [0.5]], [[0.0], [0.7]], [[0.3]])
    anchors = propose(tree, 0, 2, np.random.default_rng(0))
    assert [(a.rollout, a.turn) for a in anchors] == [(0, 1), (2, 1)]


def test_branches_and_failed_rollouts_hold_no_anchor() -> None:
    tree = tree_of([[0.0], [0.9]], [[0.0], [0.5]], [[0.0], [0.1]])
    tree.trajectories[0].origin = "live"
    tree.trajectories[1].error_type = "EnvError"
    assert [a.rollout for a in propose(tree, 0, 2, np.random.default_rng(0))] == [2]


def test_group_shares_count_groups_not_rollouts() -> None:
    mixed, failed = tree_of([[0.0]], [[0.0]]), tree_of([[0.0]], [[0.0]])
    passed = tree_of([[0.0]])
    mixed.trajectories[0].reward = passed.trajectories[0].reward = 1.0
    shares = group_shares([mixed, failed, passed, failed])
    assert shares == {
        "reward": 2 / 7,
        "mixed_share": 0.25,
        "all_fail_share": 0.5,
        "all_pass_share": 0.25,
    }
