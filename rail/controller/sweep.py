"""The shadow sweep at one anchor: try regimes, draw in increments, accept or stop.

Source: RAIL (arXiv 2608.05080): shadow mode runs an accept-or-stop sweep and realised gain decides
retention. Order of regimes, increments and the stopping rule are `our choice`: within a regime the
branches grow through the budgets (4, 8, 12) while the label still rises, which labels every smaller
budget for free; the regime is accepted if its last label is positive; the first accepted regime
ends the sweep of the anchor, branches of a rejected one are discarded (and stay billed).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rail.controller.labels import Label, label
from rail.interventions import InterventionSpace, Regime
from rail.rollout.anchors import Anchor


@dataclass(frozen=True, slots=True)
class SweepLabel:
    """The label of one budget of a sweep: cell and what its branches led to."""

    cell: int
    found: Label


@dataclass(slots=True)
class AnchorSweep:
    """The sweep of one anchor.

    Attributes:
        anchor: Where.
        round: Anchor round of the step.
        state: z, shape (Z,); Y_before is the same for every regime, since rejected ones are undone.
        before: Y_before.
        order: Regime indices still to try, the present one first.
        drawn: Rollouts of the present regime.
        rewards: Their rewards, those with a verdict.
        labels: Labels of the present regime, ascending budgets.
    """

    anchor: Anchor
    round: int
    state: NDArray[np.float64]
    before: list[float]
    order: list[int]
    drawn: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    labels: list[SweepLabel] = field(default_factory=list)

    def wants(self, space: InterventionSpace) -> int:
        """Return how many branches the present regime draws next; 0 when the anchor is done."""
        if not self.order:
            return 0
        taken = len(self.labels)
        return space.budgets[taken] - (space.budgets[taken - 1] if taken else 0)

    def regime(self, space: InterventionSpace) -> Regime:
        """Return the present regime."""
        return space.regimes[self.order[0]]

    def take(
        self, space: InterventionSpace, drawn: Sequence[int], rewards: Sequence[float]
    ) -> bool:
        """Add one increment; return whether the present regime goes on."""
        self.drawn += drawn
        self.rewards += rewards
        budget = len(self.labels)
        found = label(space, self.before, self.rewards)
        if found is None:
            return False
        previous = self.labels[-1].found.gain if self.labels else 0.0
        self.labels.append(SweepLabel(self.order[0] * len(space.budgets) + budget, found))
        return found.gain > previous and budget + 1 < len(space.budgets)

    def close_regime(self) -> tuple[list[SweepLabel], list[int], bool]:
        """End the present regime; return its labels, its rollouts, and whether it was accepted."""
        labels, drawn = self.labels, self.drawn
        accepted = bool(labels) and labels[-1].found.gain > 0.0
        self.order = [] if accepted else self.order[1:]
        self.labels, self.drawn, self.rewards = [], [], []
        return labels, drawn, accepted
