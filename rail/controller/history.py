"""The running success of each task over its earlier visits, a feature of z."""

from collections.abc import Sequence
from typing import Any


class SuccessHistory:
    """Exponential moving averages of the base rollouts' success, per task and over all tasks.

    A task met for the first time reads the average over all tasks, and 0.5 before any (`our
    choice`: the pool is the best guess for a stranger). Record a step's tasks only after the step's
    decisions: else the feature holds outcomes of the very group it is meant to describe.
    """

    def __init__(self, decay: float) -> None:
        self._decay = decay
        self._tasks: dict[str, float] = {}
        self._pool: float | None = None

    def __getitem__(self, task_id: str) -> float:
        """Return the running success of a task."""
        return self._tasks.get(task_id, 0.5 if self._pool is None else self._pool)

    def record(self, task_id: str, rewards: Sequence[float]) -> None:
        """Add a visit: the rewards of the task's base rollouts; no rewards, no visit."""
        if not rewards:
            return
        success = sum(rewards) / len(rewards)
        self._tasks[task_id] = self._blend(self._tasks.get(task_id), success)
        self._pool = self._blend(self._pool, success)

    def _blend(self, old: float | None, new: float) -> float:
        return new if old is None else self._decay * old + (1 - self._decay) * new

    def state_dict(self) -> dict[str, Any]:
        """Return the averages."""
        return {"tasks": dict(self._tasks), "pool": self._pool}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self._tasks = dict(state["tasks"])
        self._pool = state["pool"]
