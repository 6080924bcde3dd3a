"""The hooks by which a method differs from plain GRPO; everything else is shared.

A method never samples, bills or updates anything itself: it plans roots, asks for branches in
rounds, marks what is retained, may give its own advantages, and learns. The loop enforces the
budget. The hooks cover sequential stopping (`more_roots`), selection (`select`), tree advantages
(`advantages`), and learned controllers (`branches`, `learn`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.config import TrainConfig
from rail.envs.base import Task
from rail.errors import ConfigError
from rail.interventions import ON_POLICY, Decoding
from rail.rollout.tree import ROOT_REGIME, Tree


@dataclass(frozen=True, slots=True)
class Allocation:
    """Draw `rollouts` roots of `task`."""

    task: Task
    rollouts: int
    decoding: Decoding = ON_POLICY
    regime: str = ROOT_REGIME
    origin: str = "base"


@dataclass(frozen=True, slots=True)
class Branch:
    """Draw `rollouts` continuations at boundary `turn` of a trajectory.

    Attributes:
        tree: Index of the task's tree in the step.
        rollout: Trajectory that holds the boundary.
        turn: Boundary t >= 1.
        origin: shadow | live.
        stream: Names the random stream together with seed, step and task; the loop adds the child
            index.
    """

    tree: int
    rollout: int
    turn: int
    rollouts: int
    decoding: Decoding
    regime: str
    origin: str
    stream: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Record:
    """What a recorded run did: its table rows, and its last shadow step (-1: it had none)."""

    interventions: list[dict[str, Any]]
    steps: list[dict[str, Any]]
    promotion: int


@dataclass(frozen=True, slots=True)
class MethodContext:
    """What a method is built from, besides its settings.

    Attributes:
        seed: Root of the method's own random streams.
        train: The loop's settings; the budget of a step is tasks_per_step * rollouts_per_task.
        pool: The training pool, in panel order.
        max_turns: Turn limit of the benchmark.
        hidden: Size of the policy's hidden states.
        record: The run that the method reads, when its configuration names one.
    """

    seed: int
    train: TrainConfig
    pool: Sequence[Task]
    max_turns: int
    hidden: int
    record: Record | None = None

    def needs_record(self, who: str) -> Record:
        """Return the record.

        Raises:
            ConfigError: If there is none.
        """
        if self.record is None:
            raise ConfigError(
                f"{who} follows a recorded run: its configuration needs `reads: rail`"
            )
        return self.record


@dataclass(slots=True)
class StepContext:
    """What a method sees of a step.

    Attributes:
        step: 0-based training step.
        steps: Steps of the whole run.
        tasks: The step's tasks from the common order.
        budget_left: Rollouts that may still be drawn in this step.
        trees: One tree per task, filled by the loop.
        interventions: Rows of the interventions table (schema INTERVENTIONS), filled by the method.
        drawn: Result of the method's last `branches` request: rollout indices per Branch, in order.
    """

    step: int
    steps: int
    tasks: Sequence[Task]
    budget_left: int
    trees: list[Tree] = field(default_factory=list)
    interventions: list[dict[str, Any]] = field(default_factory=list)
    drawn: list[list[int]] = field(default_factory=list)


class Method:
    """Plain GRPO unless a hook is overridden; hooks must not mutate trees except `retained`."""

    phase: str = "none"  # none | shadow | live: what the step that is running is
    carry: int = 0  # yoked arms: rollouts owed to the next step
    shares_shadow: bool = False  # starts from the record's promotion checkpoint
    base_rollouts: int = 8
    branches_from_base: bool = False  # base rollouts keep caches and forks

    @property
    def promoted_step(self) -> int:
        """Return the first live step, -1 while there is none."""
        return -1

    @property
    def promoted_by(self) -> str:
        """Return what promoted the method: criterion | forced, empty while nothing has."""
        return ""

    def tasks_wanted(self, step: int) -> int | None:
        """Return how many tasks the step takes from the common order; None: as configured."""
        return None

    def budget(self, step: int) -> int | None:
        """Return the step's budget in rollouts; None: the configured one."""
        return None

    def plan(self, context: StepContext) -> list[Allocation]:
        """Return the roots to draw, one allocation per task in the order of `context.tasks`."""
        return [Allocation(task, self.base_rollouts) for task in context.tasks]

    def more_roots(self, context: StepContext, tree: int) -> int:
        """Return how many further roots `tree` gets (sequential stopping); 0 stops."""
        return 0

    def branches(self, context: StepContext) -> list[Branch]:
        """Return the next round of branches; an empty list ends the step's sampling."""
        return []

    def select(self, context: StepContext, tree: int) -> None:
        """Set `retained` on the trajectories of `tree` once sampling is over."""

    def advantages(self, tree: Tree, rollouts: list[int]) -> NDArray[np.float64] | None:
        """Return the advantages of `rollouts`, shape (n,); None: the update's group baseline."""
        return None

    def learn(self, context: StepContext) -> dict[str, float]:
        """Learn from the finished step; return figures for the log."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return everything needed to go on exactly where this method is."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
