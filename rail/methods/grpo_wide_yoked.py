"""RAIL's billed total spent as uniform groups on further tasks (protocol section 4, contrast P3).

The cumulative total of the recorded run, shadow and discarded branches included, buys groups of n;
what does not fill a group is carried to the next step.
"""

from rail.config import Positive, Strict
from rail.methods.base import Method, MethodContext


class Settings(Strict):
    """Rollouts per group."""

    rollouts: Positive = 8


class GrpoWideYoked(Method):
    """As many uniform groups as the recorded run's rollouts so far pay for."""

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        """Read the recorded run's bill per step."""
        record = context.needs_record("grpo_wide_yoked")
        self.base_rollouts = settings.rollouts
        self._billed = {int(row["step"]): int(row["billed"]) for row in record.steps}

    def tasks_wanted(self, step: int) -> int | None:
        """Return the groups that the recorded total, less what was spent before, pays for."""
        total = sum(billed for at, billed in self._billed.items() if at <= step)
        before = total - self._billed[step]
        groups = total // self.base_rollouts
        spent = before // self.base_rollouts
        self.carry = total - groups * self.base_rollouts
        return groups - spent

    def budget(self, step: int) -> int | None:
        """Return just what the step's groups cost."""
        return (self.tasks_wanted(step) or 0) * self.base_rollouts


def build(settings: Settings, context: MethodContext) -> Method:
    """Return the method."""
    return GrpoWideYoked(settings, context)
