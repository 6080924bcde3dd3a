"""GRPO-n: n rollouts for each of a step's tasks, no branching (arXiv 2402.03300).

`grpo_wide` is the same with twice the tasks and n = 8: the plain way to spend a budget of 16 per
task.
"""

from rail.config import Positive, Strict
from rail.methods.base import Method, MethodContext


class Settings(Strict):
    """Rollouts per task; tasks per step (None: the configured number)."""

    rollouts: Positive
    tasks: Positive | None = None


class Grpo(Method):
    """Uniform groups."""

    def __init__(self, settings: Settings) -> None:
        """Take the settings."""
        self.base_rollouts = settings.rollouts
        self._tasks = settings.tasks

    def tasks_wanted(self, step: int) -> int | None:
        """Return the configured number of tasks."""
        return self._tasks


def build(settings: Settings, context: MethodContext) -> Method:
    """Return the method."""
    return Grpo(settings)
