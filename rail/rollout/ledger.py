"""The budget ledger: every rollout that was drawn is billed, whatever became of it.

Three readings of one step are kept apart: `billed` (all), `live` (without shadow branches) and
`retained` (what entered the update).
"""

from dataclasses import asdict, dataclass

from rail.errors import BudgetError
from rail.rollout.tree import Tree


@dataclass(slots=True)
class Bill:
    """Counts of one step, or of many: rollouts, generated tokens, executed actions."""

    billed: int = 0
    live: int = 0
    retained: int = 0
    branches: int = 0
    fill: int = 0
    gen_tokens: int = 0
    env_steps: int = 0
    env_errors: int = 0

    def add(self, other: "Bill") -> None:
        """Add another bill to this one."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


def bill(trees: list[Tree]) -> Bill:
    """Bill every trajectory of a step's trees; branches are billed for their own turns only."""
    total = Bill()
    for tree in trees:
        total.retained += len(tree.retained())
        for trajectory in tree.trajectories:
            own = [tree.turns[i] for i in trajectory.turns[trajectory.branch_turn :]]
            total.billed += 1
            total.live += trajectory.origin != "shadow"
            total.branches += trajectory.parent >= 0
            total.fill += trajectory.origin == "fill"
            total.gen_tokens += sum(len(turn.action) for turn in own)
            total.env_steps += len(own)
            total.env_errors += bool(trajectory.error_type)
    return total


@dataclass(slots=True)
class Budget:
    """Rollouts that may still be drawn in a step."""

    left: int

    def take(self, rollouts: int, who: str) -> None:
        """Take rollouts before they are drawn.

        Raises:
            BudgetError: If fewer are left; nothing is taken then.
        """
        if rollouts > self.left:
            raise BudgetError(f"{who} asks for {rollouts} rollouts, {self.left} are left")
        self.left -= rollouts
