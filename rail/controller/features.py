"""The state z at a turn boundary: 18 rollout statistics, the hidden state, the task's embedding.

Source: RAIL (arXiv 2608.05080) names the three parts; which statistics is `our choice`, one reason
each below. Outcome features read how rollouts of this group ended. An importance-corrected update
is exact only if no decision reads them (the group's mean contains the parent's own reward), so
`prefix_only` sets them to 0 and takes entropies from what the prefix alone determines.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rail.envs.base import StopReason
from rail.recoverability import imbalance
from rail.rollout.tree import Trajectory, Tree, Turn
from rail.seeding import generator

HIDDEN = 16
TASK = 16

STATISTICS: tuple[str, ...] = (
    "group_mean",  # mean of Y_before: where the group stands
    "imbalance",  # d(Y_before): the most that can be gained
    "distinct_share",  # distinct rewards / n: separates binary from graded groups
    "group_size",  # n / group_scale: how far m more rewards can move the mean
    "parent_reward",  # did the anchor's own rollout fail?
    "parent_limit",  # it ran out of turns or tokens
    "turn_share",  # t / max_turns
    "turns_left",  # (max_turns - t) / max_turns
    "anchor_entropy",  # nats: is the policy undecided here?
    "entropy_change",  # nats: anchor entropy minus turn 0's, the task's own level removed
    "entropy_peak",  # nats: highest action entropy before the boundary, 1 value per turn
    "action_logprob",  # nats: how likely was the last action?
    "last_error",  # the last action was answered with an error
    "error_share",  # errors so far / t
    "repeated",  # the last action repeats an earlier one: the policy is stuck
    "observation_log",  # log(1 + tokens of the last observation)
    "progress",  # step / steps: the policy drifts
    "task_ema",  # running success of the task over earlier visits
)
OUTCOMES: frozenset[str] = frozenset(
    {"group_mean", "imbalance", "distinct_share", "parent_reward", "parent_limit"}
)
NAMES: tuple[str, ...] = (
    *STATISTICS,
    *(f"hidden_{i:02d}" for i in range(HIDDEN)),
    *(f"task_{i:02d}" for i in range(TASK)),
)
"""Names of all columns of z, in order."""

_LIMITS = (StopReason.TURN_LIMIT, StopReason.TOKEN_LIMIT)


def gaussian_projection(width: int, size: int, seed: int) -> NDArray[np.float64]:
    """Return a fixed (width, size) map with N(0, 1 / width) entries: unit-variance input stays so.

    `our choice`: a random projection needs no data, so z means the same thing in the whole run.
    """
    return generator(seed, "controller", "projection").normal(0.0, width**-0.5, (width, size))


def mean_entropy(turn: Turn) -> float:
    """Return the mean T = 1 entropy of an action's tokens, nats; 0 for an empty action."""
    return float(turn.entropy.mean(dtype=np.float64)) if len(turn.entropy) else 0.0


def first_entropy(turn: Turn) -> float:
    """Return the T = 1 entropy of an action's first token, nats: a function of the prefix alone."""
    return float(turn.entropy[0]) if len(turn.entropy) else 0.0


def group_statistics(before: Sequence[float], group_scale: int) -> list[float]:
    """Return mean, imbalance, share of distinct rewards, and size / group_scale of Y_before."""
    size = len(before)
    return [sum(before) / size, imbalance(before), len(set(before)) / size, size / group_scale]


def parent_statistics(parent: Trajectory) -> list[float]:
    """Return the reward of the anchor's rollout and whether it hit a limit."""
    return [parent.reward, float(parent.stop in _LIMITS)]


def prefix_statistics(turns: Sequence[Turn], boundary: int, max_turns: int) -> list[float]:
    """Return what the turns before `boundary` show: position, last action, errors, repetition.

    Order: turn_share, turns_left, entropy_peak, action_logprob, last_error, error_share, repeated,
    observation_log.
    """
    prefix = turns[:boundary]
    last = prefix[-1]
    return [
        boundary / max_turns,
        (max_turns - boundary) / max_turns,
        max(mean_entropy(turn) for turn in prefix),
        float(last.logprob.mean(dtype=np.float64)) if len(last.logprob) else 0.0,
        float(last.error),
        sum(turn.error for turn in prefix) / boundary,
        float(any(turn.text == last.text for turn in prefix[:-1])),
        float(np.log1p(len(last.observation))),
    ]


def state_features(
    tree: Tree,
    rollout: int,
    turn: int,
    *,
    before: Sequence[float],
    step: int,
    steps: int,
    task_ema: float,
    hidden_projection: NDArray[np.float64],
    task_embedding: NDArray[np.float64],
    max_turns: int,
    group_scale: int = 32,
    prefix_only: bool = False,
) -> NDArray[np.float64]:
    """Return z at boundary `turn` of trajectory `rollout`, in the order of `NAMES`.

    Args:
        tree: The task's group.
        rollout: Trajectory that holds the anchor; its turn `turn` is the action that is resampled.
        turn: Boundary, 1 <= turn < turns of the trajectory.
        before: Rewards of the group before the intervention (Y_before), at least one.
        step: 0-based policy step.
        steps: Policy steps of the whole run.
        task_ema: Running success of the task over earlier visits, see `SuccessHistory`.
        hidden_projection: Shape (D, 16), D as in `Turn.state`; see `gaussian_projection`.
        task_embedding: Shape (16,).
        max_turns: Turn limit of the benchmark.
        group_scale: Divisor of the group's size.
        prefix_only: Zero the columns in `OUTCOMES`; anchor entropies are the first token's.

    Raises:
        ValueError: If the boundary has no turn on both sides, or a part has the wrong size.
    """
    parent = tree.trajectories[rollout]
    if not 1 <= turn < len(parent.turns):
        raise ValueError(
            f"boundary {turn} of rollout {rollout} of task {tree.task.id}: expected "
            f"1..{len(parent.turns) - 1}, a boundary with a turn before and after it"
        )
    turns = [tree.turns[index] for index in parent.turns]
    share, left, peak, *rest = prefix_statistics(turns, turn, max_turns)
    entropy = first_entropy if prefix_only else mean_entropy
    anchor = entropy(turns[turn])
    statistics = np.array([
        *group_statistics(before, group_scale),
        *parent_statistics(parent),
        share,
        left,
        anchor,
        anchor - entropy(turns[0]),
        peak,
        *rest,
        step / steps,
        task_ema,
    ])  # fmt: skip
    if prefix_only:
        statistics[[name in OUTCOMES for name in STATISTICS]] = 0.0
    hidden = turns[turn].state.astype(np.float64) @ hidden_projection
    state = np.concatenate([statistics, hidden, task_embedding])
    if state.shape != (len(NAMES),):
        raise ValueError(
            f"state has {state.size} columns, expected {len(NAMES)}: hidden {hidden.size} "
            f"(expected {HIDDEN}), task embedding {task_embedding.size} (expected {TASK})"
        )
    return state
