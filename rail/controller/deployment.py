"""From shadow to live: when the controller has earned the right to act.

Source: RAIL (arXiv 2608.05080): online performance over the last W = 60 labels decides; the
thresholds are `our choice`. A shadow sweep's nested labels depend on one another, so a sweep counts
once.
"""

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from rail.controller.measures import Measures, measure
from rail.controller.replay import recency_weights

SHADOW, LIVE = "shadow", "live"
CRITERION, FORCED = "criterion", "forced"


@dataclass(frozen=True, slots=True)
class Criterion:
    """The three conditions, all needed, on a full window of predictions made before learning.

    Attributes:
        window: W, labels that must be there.
        correlation: Pearson r must exceed this.
        agreement: Share of equal signs (threshold 0) must exceed this.
        half_life: Policy steps; weighs the mean gain that the MAE must beat.
    """

    window: int
    correlation: float
    agreement: float
    half_life: float

    def met(self, figures: Measures) -> bool:
        """Return whether all conditions hold; an undefined correlation fails."""
        return (
            figures.count >= self.window
            and figures.correlation > self.correlation
            and figures.error < figures.constant_error
            and figures.agreement > self.agreement
        )


class Deployment:
    """The phase and the window of the last W prequential labels.

    Attributes:
        phase: shadow | live.
        promoted_by: criterion | forced, empty in shadow.
        promoted_step: First live step, -1 in shadow.
    """

    def __init__(self, criterion: Criterion, *, shadow_min: int, shadow_max: int) -> None:
        self._criterion = criterion
        self._shadow_min, self._shadow_max = shadow_min, shadow_max
        self._window: deque[tuple[float, float, int]] = deque(maxlen=criterion.window)
        self.phase = LIVE if shadow_max == 0 else SHADOW
        self.promoted_by = FORCED if shadow_max == 0 else ""
        self.promoted_step = 0 if shadow_max == 0 else -1

    def record(self, predicted: float, gained: float, step: int) -> None:
        """Add a label with the prediction made before it was learned; once per sweep."""
        self._window.append((predicted, gained, step))

    def figures(self, threshold: float = 0.0) -> Measures:
        """Return the measures of the window; the constant is its recency-weighted mean gain."""
        if not self._window:
            return measure([], [], threshold)
        predicted, gained, steps = (np.array(column) for column in zip(*self._window, strict=True))
        weights = recency_weights(steps, int(steps.max()), self._criterion.half_life)
        return measure(predicted, gained, threshold, weights)

    def close_step(self, step: int) -> bool:
        """Decide at the end of 0-based `step`; return whether the controller was promoted now.

        Not before `shadow_min` finished steps; then by the criterion; at `shadow_max` in any case.
        """
        finished = step + 1
        if self.phase == LIVE or finished < self._shadow_min:
            return False
        if self._criterion.met(self.figures()):
            self.promoted_by = CRITERION
        elif finished >= self._shadow_max:
            self.promoted_by = FORCED
        else:
            return False
        self.phase, self.promoted_step = LIVE, finished
        return True

    def state_dict(self) -> dict[str, Any]:
        """Return phase, promotion and window."""
        return {
            "phase": self.phase,
            "promoted_by": self.promoted_by,
            "promoted_step": self.promoted_step,
            "window": [list(row) for row in self._window],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self.phase = state["phase"]
        self.promoted_by = state["promoted_by"]
        self.promoted_step = state["promoted_step"]
        self._window.clear()
        self._window.extend((f, y, step) for f, y, step in state["window"])
