import numpy as np
import pytest

from rail.controller.features import (
    NAMES,
    OUTCOMES,
    STATISTICS,
    first_entropy,
    gaussian_projection,
    mean_entropy,
    state_features,
)
from rail.envs.base import StopReason, Task
from rail.rollout.tree import Trajectory, Tree, Turn

WIDTH = 6


def turn(index: int, text: str, entropy: list[float], **changes: object) -> Turn:
    values: dict[str, object] = {
        "index": index,
        "action": np.arange(len(entropy)),
        "observation": np.arange(3),
        "logprob": np.full(len(entropy), -0.5, dtype=np.float32),
        "logprob_sampled": np.full(len(entropy), -0.4, dtype=np.float32),
        "entropy": np.array(entropy, dtype=np.float32),
        "hidden": np.zeros(WIDTH, dtype=np.float32),
        "state": np.full(WIDTH, index + 1, dtype=np.float32),
        "text": text,
        "error": False,
    }
    return Turn(**{**values, **changes})  # pyright: ignore[reportArgumentType]


@pytest.fixture
def tree() -> Tree:
    turns = [
        turn(0, "SELECT a", [0.2, 0.4]),
        turn(1, "SELECT b", [0.9, 0.3], error=True),
        turn(
            2, "SELECT a", [0.1],
            logprob=np.array([-0.25], dtype=np.float32), observation=np.arange(7),
        ),
        turn(3, "answer", [1.5, 0.5, 1.0]),
        turn(2, "other", [0.0]),
    ]  # fmt: skip
    parent = Trajectory([0, 1, 2, 3], reward=1.0, stop=StopReason.ANSWERED)
    failed = Trajectory([0, 1, 4], reward=0.0, stop=StopReason.TURN_LIMIT)
    task = Task("t", "kind", "prompt", {})
    return Tree(task, np.arange(4), turns, [parent, failed])


def features(tree: Tree, rollout: int, boundary: int, **changes: object) -> dict[str, float]:
    values: dict[str, object] = {
        "before": [1.0, 0.0, 0.0, 0.0],
        "step": 12,
        "steps": 48,
        "task_ema": 0.3,
        "hidden_projection": np.zeros((WIDTH, 16)),
        "task_embedding": np.zeros(16),
        "max_turns": 8,
    }
    state = state_features(tree, rollout, boundary, **{**values, **changes})  # pyright: ignore
    assert state.dtype == np.float64
    return dict(zip(NAMES, state.tolist(), strict=True))


def test_names_are_18_statistics_16_hidden_16_task():
    assert len(NAMES) == len(set(NAMES)) == 50
    assert NAMES[:18] == STATISTICS
    assert (NAMES[18], NAMES[33], NAMES[34], NAMES[49]) == (
        "hidden_00", "hidden_15", "task_00", "task_15",
    )  # fmt: skip


def test_every_statistic_by_hand(tree: Tree):
    found = features(tree, 0, 3)
    expected = {
        "group_mean": 0.25,
        "imbalance": 0.25,
        "distinct_share": 2 / 4,
        "group_size": 4 / 32,
        "parent_reward": 1.0,
        "parent_limit": 0.0,
        "turn_share": 3 / 8,
        "turns_left": 5 / 8,
        "anchor_entropy": 1.0,  # mean of 1.5, .5, 1 of turn 3
        "entropy_change": 0.7,  # 1.0 - mean of .2, .4
        "entropy_peak": 0.6,  # turn 1, before the boundary; the anchor's own 1.0 is not "so far"
        "action_logprob": -0.25,
        "last_error": 0.0,
        "error_share": 1 / 3,
        "repeated": 1.0,  # turn 2 says what turn 0 said
        "observation_log": np.log(8),
        "progress": 0.25,
        "task_ema": 0.3,
    }
    assert {k: found[k] for k in STATISTICS} == pytest.approx(expected, abs=1e-7)


def test_the_last_action_is_the_one_before_the_boundary(tree: Tree):
    found = features(tree, 0, 2)
    assert (found["last_error"], found["error_share"], found["repeated"]) == (1.0, 0.5, 0.0)
    assert found["observation_log"] == pytest.approx(np.log(4))


def test_a_parent_that_ran_out_of_turns(tree: Tree):
    found = features(tree, 1, 2)
    assert (found["parent_reward"], found["parent_limit"]) == (0.0, 1.0)


def test_prefix_only_reads_no_outcome_and_no_token_of_the_resampled_action(tree: Tree):
    found = features(tree, 0, 3, prefix_only=True)
    assert {found[name] for name in OUTCOMES} == {0.0}
    assert found["anchor_entropy"] == pytest.approx(1.5)  # first token of turn 3
    assert found["entropy_change"] == pytest.approx(1.3)  # 1.5 - .2
    assert found["entropy_peak"] == pytest.approx(0.6)


def test_prefix_only_does_not_change_when_the_suffix_does(tree: Tree):
    before = features(tree, 0, 3, prefix_only=True)
    tree.trajectories[0].reward = 0.0
    tree.trajectories[0].stop = StopReason.TOKEN_LIMIT
    tree.turns[3] = turn(3, "else", [1.5, 9.0], state=tree.turns[3].state)
    assert features(tree, 0, 3, prefix_only=True, before=[0.0] * 4) == before
    assert features(tree, 0, 3)["anchor_entropy"] == pytest.approx(5.25)


def test_hidden_is_the_projected_state_at_the_boundary(tree: Tree):
    projection = np.zeros((WIDTH, 16))
    projection[0, 2], projection[5, 2] = 1.0, -3.0
    found = features(tree, 0, 2, hidden_projection=projection)
    assert found["hidden_02"] == pytest.approx(3.0 * (1 - 3))  # state of turn 2 is all 3
    assert found["hidden_00"] == 0.0


def test_task_embedding_comes_last(tree: Tree):
    found = features(tree, 0, 1, task_embedding=np.arange(16.0))
    assert [found[f"task_{i:02d}"] for i in range(16)] == list(range(16))


@pytest.mark.parametrize("boundary", [0, 4, 5, -1])
def test_a_boundary_needs_a_turn_on_both_sides(tree: Tree, boundary: int):
    with pytest.raises(ValueError, match=rf"boundary {boundary} of rollout 0 of task t: expected"):
        features(tree, 0, boundary)


def test_parts_of_the_wrong_size_are_named(tree: Tree):
    with pytest.raises(ValueError, match="task embedding 8"):
        features(tree, 0, 1, task_embedding=np.zeros(8))


def test_entropies_of_an_empty_action_are_zero():
    empty = turn(0, "", [])
    assert (mean_entropy(empty), first_entropy(empty)) == (0.0, 0.0)


def test_projection_is_fixed_by_the_seed_and_keeps_the_variance():
    projection = gaussian_projection(128, 16, seed=3)
    np.testing.assert_array_equal(projection, gaussian_projection(128, 16, seed=3))
    assert not np.array_equal(projection, gaussian_projection(128, 16, seed=4))
    random = np.random.default_rng(0)
    projected = random.normal(size=(2000, 128)) @ gaussian_projection(128, 16, seed=3)
    assert projected.var() == pytest.approx(1.0, abs=0.1)
