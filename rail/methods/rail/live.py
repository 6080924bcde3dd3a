"""A step of the live phase: the controller picks one cell per anchor, round by round."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.controller.controller import Decision
from rail.controller.labels import decision_row, fill_in, label, verdicts
from rail.controller.replay import Trace
from rail.methods.base import Branch, StepContext
from rail.methods.rail.view import View
from rail.rollout.anchors import Anchor


@dataclass(slots=True)
class _Asked:
    """An intervention whose branches are being drawn."""

    anchor: Anchor
    row: dict[str, Any]
    state: NDArray[np.float64]
    before: list[float]


class LiveStep:
    """One step in which the controller acts."""

    phase = "live"

    def __init__(self, view: View, context: StepContext) -> None:
        """Propose the anchors."""
        self._view, self._controller, self._space = view, view.controller, view.space
        self._anchors = view.anchors(context)
        self._round = 0
        self._asked: list[_Asked] = []

    def branches(self, context: StepContext) -> list[Branch]:
        """Learn from what was drawn; return the branches of the next round that has any."""
        self._settle(context)
        while self._round < len(self._anchors):
            found = self._decide(context)
            self._round += 1
            if found:
                return found
        return []

    def _settle(self, context: StepContext) -> None:
        traces: list[Trace] = []
        for asked, drawn in zip(self._asked, context.drawn, strict=False):
            tree = context.trees[asked.anchor.tree]
            found = label(self._space, asked.before, verdicts(tree, drawn))
            fill_in(asked.row, found, accepted=True)
            if found is not None:
                traces.append(Trace(asked.state, asked.row["cell"], found.gain, context.step))
        self._asked = []
        self._controller.observe(traces)

    def _decide(self, context: StepContext) -> list[Branch]:
        anchors = self._anchors[self._round]
        if not anchors:
            return []
        befores = [self._view.before(context, anchor) for anchor in anchors]
        states = [self._view.state(context, a, b) for a, b in zip(anchors, befores, strict=True)]
        decisions = self._controller.decide(
            np.stack(states),
            remaining=context.budget_left,
            limits=[self._view.settings.task_limit - len(before) for before in befores],
            stream=(context.step, self._round),
        )
        found: list[Branch] = []
        for anchor, before, state, decision in zip(
            anchors, befores, states, decisions, strict=True
        ):
            row = self._row(context, anchor, state, decision)
            context.interventions.append(row)
            cell = decision.service.cell
            if cell >= 0:
                self._asked.append(_Asked(anchor, row, state, before))
                count = self._space[cell].branches
                stream = (self.phase, self._round, str(cell))
                found.append(self._view.branch(anchor, cell, count, stream))
        return found

    def _row(
        self, context: StepContext, anchor: Anchor, state: NDArray[np.float64], decision: Decision
    ) -> dict[str, Any]:
        service = decision.service
        tree = context.trees[anchor.tree]
        row = decision_row(context.step, self._round, anchor, tree, self.phase, service.draw)
        shown = service.cell if service.cell >= 0 else int(decision.predictions.argmax())
        return row | {
            "cell": service.cell,
            "branches": self._space[service.cell].branches if service.cell >= 0 else 0,
            "regime": self._space[service.cell].regime.name if service.cell >= 0 else "",
            "propensity": service.propensity,
            "eligible": service.eligible,
            "exploration_rate": decision.rate,
            "predicted": float(decision.predictions[shown]),
            "predicted_cells": decision.predictions.tolist(),
            "prediction_spread": float(decision.spreads[shown]),
            "features": state.tolist(),
        }
