"""RAIL (arXiv 2608.05080): learn where and how to branch from realised recoverability gains.

Shadow: entropy proposes anchors, a sweep labels regimes and budgets, the controller only learns.
Live: the controller picks one cell per anchor, acts above the utility gate, explores at a logged
rate, and goes on learning. The policy update is the common one, uncorrected (the paper's appendix
D.1). Choices that the seeds of the paper do not fix are `our choice`; `docs/choices.md` has the
reasons.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rail.config import Positive, SpaceConfig, Strict
from rail.controller.controller import Controller, Decision
from rail.controller.embedding import TaskEmbedding
from rail.controller.features import gaussian_projection, state_features
from rail.controller.labels import decision_row, fill_in, label, verdicts
from rail.controller.replay import Trace
from rail.controller.settings import ControllerSettings
from rail.controller.sweep import AnchorSweep
from rail.errors import ConfigError
from rail.methods.base import Branch, Method, MethodContext, StepContext
from rail.rollout.anchors import Anchor, propose
from rail.seeding import generator, seed_of


class Settings(Strict):
    """The method's values; see `ControllerSettings` for the controller's."""

    base_rollouts: Positive = 8  # our choice: the paper's average of 10 to 13 implies about 8
    rounds: Positive = 2  # anchors per task and step at most; protocol section 3
    task_limit: Positive = 32  # rollouts per task and step at most; our choice
    space: SpaceConfig = SpaceConfig()
    controller: ControllerSettings = Field(default_factory=ControllerSettings)


@dataclass(slots=True)
class _Asked:
    """A live intervention whose branches are being drawn."""

    anchor: Anchor
    row: dict[str, Any]
    state: NDArray[np.float64]
    before: list[float]


class Rail(Method):
    """The recoverability controller behind the method hooks."""

    branches_from_base = True

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        """Build the controller and the fixed maps of the state.

        Raises:
            ConfigError: If the run is too short for the shadow phase to end.
        """
        if settings.controller.shadow_max >= context.train.steps:
            raise ConfigError(
                f"controller.shadow_max {settings.controller.shadow_max} leaves no live step in "
                f"a run of {context.train.steps} steps: lower it or raise train.steps"
            )
        self.base_rollouts = settings.base_rollouts
        self._settings, self._context = settings, context
        self._space = settings.space.build()
        self._controller = Controller(self._space, settings.controller, context.seed)
        seed = context.seed
        self._projection = gaussian_projection(
            context.hidden, settings.controller.hidden_size, seed
        )
        prompts = [task.prompt for task in context.pool]
        embedding = TaskEmbedding.fit(
            prompts, settings.controller.task_size, seed_of(seed, "controller", "embedding") % 2**31
        )
        vectors = embedding.transform(prompts)
        self._tasks = {task.id: vectors[i] for i, task in enumerate(context.pool)}
        self._anchors: dict[int, list[Anchor]] = {}
        self._round = -1
        self._sweeps: list[AnchorSweep] = []
        self._sweep_count = 0
        self._asked: list[_Asked] = []
        self._active: list[AnchorSweep] = []

    @property
    def controller(self) -> Controller:
        """Return the controller, for measures and tests."""
        return self._controller

    @property
    def promoted_step(self) -> int:
        """Return the first live step, -1 in shadow."""
        return self._controller.deployment.promoted_step

    @property
    def promoted_by(self) -> str:
        """Return criterion | forced, empty in shadow."""
        return self._controller.deployment.promoted_by

    def branches(self, context: StepContext) -> list[Branch]:
        """Return the next round of a sweep (shadow) or of decisions (live)."""
        if self._round < 0:
            self._begin(context)
        if self.phase == "shadow":
            return self._shadow(context)
        return self._live(context)

    def _begin(self, context: StepContext) -> None:
        self.phase = "live" if self._controller.live else "shadow"
        self._round, self._sweep_count = 0, 0
        self._anchors = {}
        for index, tree in enumerate(context.trees):
            ties = generator(self._context.seed, "anchors", context.step, tree.task.id)
            for round_, anchor in enumerate(propose(tree, index, self._settings.rounds, ties)):
                self._anchors.setdefault(round_, []).append(anchor)
        self._sweeps = self._open_sweeps(context) if self.phase == "shadow" else []

    def _state(
        self, context: StepContext, anchor: Anchor, before: list[float]
    ) -> NDArray[np.float64]:
        tree = context.trees[anchor.tree]
        return state_features(
            tree,
            anchor.rollout,
            anchor.turn,
            before=before,
            step=context.step,
            steps=context.steps,
            task_ema=self._controller.history[tree.task.id],
            hidden_projection=self._projection,
            task_embedding=self._tasks[tree.task.id],
            max_turns=self._context.max_turns,
            group_scale=self._settings.controller.group_scale,
            prefix_only=self._settings.controller.prefix_only,
        )

    def _before(self, context: StepContext, anchor: Anchor) -> list[float]:
        tree = context.trees[anchor.tree]
        return tree.rewards(tree.retained())

    def _branch(self, anchor: Anchor, count: int, cell: int, origin: str, key: str) -> Branch:
        regime = self._space[cell].regime
        return Branch(
            tree=anchor.tree,
            rollout=anchor.rollout,
            turn=anchor.turn,
            rollouts=count,
            decoding=regime.decoding,
            regime=regime.name,
            origin=origin,
            stream=(origin, self._round, key),
        )

    # Shadow: sweeps in lock-step over the step's anchors.

    def _open_sweeps(self, context: StepContext) -> list[AnchorSweep]:
        order = self._controller.regime_order()
        anchors = self._anchors.get(self._round, [])
        rng = generator(self._context.seed, "controller", "sweeps", context.step, self._round)
        opened: list[AnchorSweep] = []
        for place in rng.permutation(len(anchors)):
            anchor = anchors[int(place)]
            before = self._before(context, anchor)
            state = self._state(context, anchor, before)
            opened.append(AnchorSweep(anchor, self._round, state, before, list(order)))
        return opened

    def _shadow(self, context: StepContext) -> list[Branch]:
        for sweep, drawn in zip(self._active, context.drawn, strict=False):
            rewards = verdicts(context.trees[sweep.anchor.tree], drawn)
            if not sweep.take(self._space, drawn, rewards):
                self._close(context, sweep)
        self._active = []
        while True:
            found = self._ask(context)
            if found or self._round + 1 >= self._settings.rounds:
                break
            self._close_open(context)
            self._round += 1
            self._sweeps = self._open_sweeps(context)
        if not found:
            self._close_open(context)
            self._round = -1
        return found

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
            found.append(self._branch(sweep.anchor, wanted, cell, "shadow", key))
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
            row = decision_row(context.step, sweep.round, sweep.anchor, tree, "shadow", "sweep")
            before = sweep.before
            row |= {
                "sweep": self._sweep_count,
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
        self._sweep_count += 1

    # Live: one cell per anchor, in two rounds.

    def _live(self, context: StepContext) -> list[Branch]:
        self._settle(context)
        while self._round < self._settings.rounds:
            found = self._decide(context)
            self._round += 1
            if found:
                return found
        self._round = -1
        return []

    def _decide(self, context: StepContext) -> list[Branch]:
        anchors = self._anchors.get(self._round, [])
        if not anchors:
            return []
        befores = [self._before(context, anchor) for anchor in anchors]
        states = [self._state(context, a, b) for a, b in zip(anchors, befores, strict=True)]
        decisions = self._controller.decide(
            np.stack(states),
            remaining=context.budget_left,
            limits=[self._settings.task_limit - len(before) for before in befores],
            stream=(context.step, self._round),
        )
        found: list[Branch] = []
        for anchor, before, state, decision in zip(
            anchors, befores, states, decisions, strict=True
        ):
            row = self._decision_row(context, anchor, state, decision)
            context.interventions.append(row)
            cell = decision.service.cell
            if cell >= 0:
                self._asked.append(_Asked(anchor, row, state, before))
                count = self._space[cell].branches
                found.append(self._branch(anchor, count, cell, "live", str(cell)))
        return found

    def _decision_row(
        self, context: StepContext, anchor: Anchor, state: NDArray[np.float64], decision: Decision
    ) -> dict[str, Any]:
        service = decision.service
        tree = context.trees[anchor.tree]
        row = decision_row(context.step, self._round, anchor, tree, "live", service.draw)
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

    def learn(self, context: StepContext) -> dict[str, float]:
        """Record the tasks' success, refit, decide on promotion."""
        for tree in context.trees:
            self._controller.history.record(tree.task.id, tree.rewards(tree.base()))
        return self._controller.close_step(context.step)

    def state_dict(self) -> dict[str, Any]:
        """Return the controller's state; between steps there is no other."""
        return self._controller.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the controller."""
        self._controller.load_state_dict(state)


def build(settings: Settings, context: MethodContext) -> Method:
    """Return the method."""
    return Rail(settings, context)
