"""Held-out evaluation: one episode per panel task, at T = 1 and greedily.

The uniforms are a function of (task, token index) alone, so all arms and seeds share them.
"""

from collections.abc import Sequence
from typing import Any

from rail.envs.base import Task
from rail.errors import EnvError
from rail.interventions import ON_POLICY, Decoding
from rail.rollout.engine import Engine, Expansion, Forest

EVALUATION_SEED = 0
GREEDY = Decoding(temperature=0.0)
_TOGETHER = 250  # tasks whose prompts are kept computed at a time


def evaluate_policy(
    engine: Engine, tasks: Sequence[Task], mode: str, step: int
) -> list[dict[str, Any]]:
    """Return one row of the evaluation table per task.

    Args:
        engine: Made with `EVALUATION_SEED`.
        tasks: Panel tasks.
        mode: sampled | greedy.
        step: Training steps done, for the table.

    Raises:
        EnvError: If an environment failed: an evaluation with holes is no evaluation.
    """
    decoding = GREEDY if mode == "greedy" else ON_POLICY
    rows: list[dict[str, Any]] = []
    for start in range(0, len(tasks), _TOGETHER):
        part = tasks[start : start + _TOGETHER]
        forest = Forest()
        engine.plant(forest, part)
        engine.expand(
            forest,
            [
                Expansion(i, [("evaluation", task.id)], decoding=decoding)
                for i, task in enumerate(part)
            ],
        )
        rows += [_row(tree, mode, step) for tree in forest.trees]
    return rows


def _row(tree: Any, mode: str, step: int) -> dict[str, Any]:
    trajectory = tree.trajectories[0]
    if trajectory.error_type:
        raise EnvError(
            f"evaluation of task {tree.task.id}: the environment failed "
            f"({trajectory.error_type}); mend it and run the evaluation again"
        )
    return {
        "step": step,
        "mode": mode,
        "task_id": tree.task.id,
        "kind": tree.task.kind,
        "reward": trajectory.reward,
        "reward_upstream": trajectory.reward_upstream,
        "turns": len(trajectory.turns),
        "tokens": sum(len(tree.turns[i].action) for i in trajectory.turns),
        "stop": str(trajectory.stop or ""),
    }
