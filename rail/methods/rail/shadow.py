"""A step of the shadow phase: sweeps in lock-step over the step's anchors, the controller learns.

See `rail.controller.sweep` for the sweep of one anchor.
"""

from rail.controller.labels import decision_row, fill_in, verdicts
from rail.controller.replay import Trace
from rail.controller.sweep import AnchorSweep
from rail.methods.base import Branch, StepContext
from rail.methods.rail.view import View
from rail.seeding import generator


class ShadowStep:
    """One step in which every label comes from a sweep."""

    phase = "shadow"

    def __init__(self, view: View, context: StepContext) -> None:
        """Propose the anchors and open the sweeps of the first round."""
        self._view, self._controller, self._space = view, view.controller, view.space
        self._anchors = view.anchors(context)
        self._round = 0
        self._count = 0  # regimes closed so far: names a sweep in the table
        self._active: list[AnchorSweep] = []  # those whose branches are being drawn
        self._sweeps = self._open_sweeps(context)

    def branches(self, context: StepContext) -> list[Branch]:
        """Return the next increments of all sweeps; an empty list when all have ended."""
        for sweep, drawn in zip(self._active, context.drawn, strict=False):
            rewards = verdicts(context.trees[sweep.anchor.tree], drawn)
            if not sweep.take(self._space, drawn, rewards):
                self._close(context, sweep)
        self._active = []
        while True:
            found = self._ask(context)
            if found:
                return found
            self._close_open(context)
            if self._round + 1 >= len(self._anchors):
                return []
            self._round += 1
            self._sweeps = self._open_sweeps(context)

    def _open_sweeps(self, context: StepContext) -> list[AnchorSweep]:
        order = self._controller.regime_order()
        anchors = self._anchors[self._round]
        rng = generator(self._view.seed, "controller", "sweeps", context.step, self._round)
        opened: list[AnchorSweep] = []
        for place in rng.permutation(len(anchors)):
            anchor = anchors[int(place)]
            before = self._view.before(context, anchor)
            state = self._view.state(context, anchor, before)
            opened.append(AnchorSweep(anchor, self._round, state, before, list(order)))
        return opened

    def _ask(self, context: StepContext) -> list[Branch]:
        left = context.budget_left
        found: list[Branch] = []
        for sweep in self._sweeps:
            wanted = sweep.wants(self._space)
            if not 0 < wanted <= left:
                continue
            left -= wanted
            cell = sweep.order[0] * len(self._space.budgets) + len(sweep.labels)
            key = f"{self._space[cell].regime.name}-{len(sweep.labels)}"
            stream = (self.phase, self._round, key)
            found.append(self._view.branch(sweep.anchor, cell, wanted, stream))
            self._active.append(sweep)
        return found

    def _close_open(self, context: StepContext) -> None:
        """End the regimes that the budget left unfinished."""
        for sweep in self._sweeps:
            if sweep.labels:
                self._close(context, sweep)

    def _close(self, context: StepContext, sweep: AnchorSweep) -> None:
        labels, drawn, accepted = sweep.close_regime()
        tree = context.trees[sweep.anchor.tree]
        for rollout in drawn:
            tree.trajectories[rollout].retained &= accepted
        if not labels:
            return
        traces = [
            Trace(sweep.state, at.cell, at.found.gain, context.step, at is labels[-1])
            for at in labels
        ]
        cells, _ = self._controller.predict(sweep.state[None])
        means, spreads = self._controller.observe(traces)
        for at, mean, spread in zip(labels, means, spreads, strict=True):
            row = decision_row(context.step, sweep.round, sweep.anchor, tree, self.phase, "sweep")
            before = sweep.before
            row |= {
                "sweep": self._count,
                "last_of_sweep": at is labels[-1],
                "cell": at.cell,
                "branches": at.found.branches,
                "regime": self._space[at.cell].regime.name,
                "predicted": float(mean),
                "prediction_spread": float(spread),
                "predicted_cells": cells[0].tolist(),
                "d_before": at.found.d_after + at.found.gross,
                "n_before": len(before),
                "k_before": float(sum(before)),
                "features": sweep.state.tolist(),
            }
            fill_in(row, at.found, accepted)
            context.interventions.append(row)
        self._count += 1
