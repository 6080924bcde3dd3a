"""Rows of the tables that a step's trees fill: one per rollout, one per generated turn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.rollout.tree import Tree

NAN = float("nan")


def rollout_rows(
    step: int, trees: Sequence[Tree], advantages: Sequence[NDArray[np.float64]]
) -> list[dict[str, Any]]:
    """Return rows of the rollouts table; `advantages` are those of `tree.retained()`, per tree."""
    rows: list[dict[str, Any]] = []
    for tree, values in zip(trees, advantages, strict=True):
        known = dict(zip(tree.retained(), values.tolist(), strict=True))
        for index, trajectory in enumerate(tree.trajectories):
            own = trajectory.turns[trajectory.branch_turn :]
            rows.append(
                {
                    "step": step,
                    "task_id": tree.task.id,
                    "kind": tree.task.kind,
                    "rollout": index,
                    "parent": trajectory.parent,
                    "branch_turn": trajectory.branch_turn,
                    "origin": trajectory.origin,
                    "regime": trajectory.regime,
                    "temperature": trajectory.decoding.temperature,
                    "retained": index in known,
                    "reward": trajectory.reward,
                    "reward_upstream": trajectory.reward_upstream,
                    "turns": len(trajectory.turns),
                    "own_turns": len(own),
                    "own_tokens": sum(len(tree.turns[i].action) for i in own),
                    "tool_errors": sum(tree.turns[i].error for i in trajectory.turns),
                    "stop": str(trajectory.stop or ""),
                    "advantage": known.get(index, NAN),
                    "error_type": trajectory.error_type,
                }
            )
    return rows


def turn_rows(step: int, trees: Sequence[Tree]) -> list[dict[str, Any]]:
    """Return rows of the turns table: each turn once, by the rollout that generated it."""
    rows: list[dict[str, Any]] = []
    for tree in trees:
        for index, trajectory in enumerate(tree.trajectories):
            for place in trajectory.turns[trajectory.branch_turn :]:
                turn = tree.turns[place]
                rows.append(
                    {
                        "step": step,
                        "task_id": tree.task.id,
                        "kind": tree.task.kind,
                        "rollout": index,
                        "turn": turn.index,
                        "action_tokens": len(turn.action),
                        "observation_tokens": len(turn.observation),
                        "entropy": float(turn.entropy.mean(dtype=np.float64)),
                        "logprob": float(turn.logprob.mean(dtype=np.float64)),
                        "logprob_sampled": float(turn.logprob_sampled.mean(dtype=np.float64)),
                        "error": turn.error,
                    }
                )
    return rows


def group_shares(trees: Sequence[Tree]) -> dict[str, float]:
    """Return shares of mixed, all-fail and all-pass groups, and the mean reward: base rollouts.

    A graded reward below 1 counts as failure. Groups without a verdict are passed over.
    """
    groups = [tree.rewards(tree.base()) for tree in trees]
    passed = [[reward >= 1.0 for reward in group] for group in groups if group]
    count = max(1, len(passed))
    rewards = [reward for group in groups for reward in group]
    return {
        "reward": float(np.mean(rewards)) if rewards else NAN,
        "mixed_share": sum(any(g) and not all(g) for g in passed) / count,
        "all_fail_share": sum(not any(g) for g in passed) / count,
        "all_pass_share": sum(all(g) for g in passed) / count,
    }


def on_policy_entropy(trees: Sequence[Tree]) -> float:
    """Return the mean token entropy of on-policy root rollouts, nats, T = 1."""
    values = [
        tree.turns[i].entropy
        for tree in trees
        for rollout in tree.base()
        for i in tree.trajectories[rollout].turns
    ]
    return float(np.concatenate(values).mean(dtype=np.float64)) if values else NAN
