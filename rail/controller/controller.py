"""The recoverability controller: predicts gains, is scored, learns, is promoted, decides.

Source: RAIL (arXiv 2608.05080), section 3 and appendix B; see the parts for what is `our choice`.
Order within a policy step: `decide` (live) or a shadow sweep, `observe` every label, `close_step`.
`observe` scores before `close_step` learns, so that every figure is out of sample.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.controller.deployment import LIVE, Criterion, Deployment
from rail.controller.exploration import (
    Round,
    Service,
    exploration_rates,
    least_used_first,
    serve,
    toss,
)
from rail.controller.features import NAMES
from rail.controller.fit import Fitter, half_samples
from rail.controller.history import SuccessHistory
from rail.controller.network import HeadEnsemble, Standardiser
from rail.controller.replay import Replay, Trace, recency_weights
from rail.controller.settings import ControllerSettings
from rail.interventions import InterventionSpace
from rail.seeding import generator, seed_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Decision:
    """A served anchor.

    Attributes:
        service: Cell or skip, who drew it, eligible cells, propensity.
        rate: Exploration rate rho of the decision.
        predictions: f of every cell, mean over heads, (K,).
        spreads: sd over heads of every cell, (K,).
    """

    service: Service
    rate: float
    predictions: Floats
    spreads: Floats


class Controller:
    """Joins predictor, replay, fit, promotion and exploration; all randomness comes from `seed`.

    Attributes:
        space: The intervention space of K cells.
        settings: Every value.
        replay: Traces that are learned from.
        deployment: Phase and prequential window.
        history: Running success per task, a feature of z.
        decisions: Live decisions so far, skips included: t of the exploration rate.
    """

    def __init__(
        self,
        space: InterventionSpace,
        settings: ControllerSettings,
        seed: int,
        state_size: int = len(NAMES),
    ) -> None:
        self.space, self.settings = space, settings
        self._seed, self._state_size = seed, state_size
        self._codes = np.array([space.encode(cell) for cell in range(len(space))])
        self._costs = np.array([space[cell].branches for cell in range(len(space))])
        inputs = state_size + self._codes.shape[1]
        self._network = HeadEnsemble(
            inputs, settings.width, settings.heads, seed_of(seed, "controller", "weights")
        )
        self._standardiser = Standardiser(state_size, settings.sd_floor, settings.clip)
        self._fitter = Fitter(
            self._network,
            learning_rate=settings.learning_rate,
            weight_decay=settings.weight_decay,
            delta=settings.huber_delta,
        )
        self.replay = Replay(settings.replay)
        criterion = Criterion(
            settings.window, settings.min_correlation, settings.min_agreement, settings.half_life
        )
        self.deployment = Deployment(
            criterion, shadow_min=settings.shadow_min, shadow_max=settings.shadow_max
        )
        self.history = SuccessHistory(settings.ema_decay)
        self.decisions = 0
        self._unseen = 0  # traces that the standardiser has not met

    @property
    def live(self) -> bool:
        """Whether the controller acts."""
        return self.deployment.phase == LIVE

    def predict(self, states: Floats) -> tuple[Floats, Floats]:
        """Return mean and sd over heads of the gain of every cell, each (n, K), for z (n, Z)."""
        count, cells = len(states), len(self.space)
        if not count:
            return np.zeros((0, cells)), np.zeros((0, cells))
        rows = np.repeat(np.arange(count), cells)
        mean, spread = self._network.predict(
            self._inputs(states, rows, np.tile(np.arange(cells), count))
        )
        return mean.reshape(count, cells), spread.reshape(count, cells)

    def decide(
        self,
        states: Floats,
        *,
        remaining: int,
        limits: Sequence[int],
        stream: Sequence[str | int],
    ) -> list[Decision]:
        """Serve the anchors of one live round.

        Args:
            states: z of the anchors, (A, Z), in proposal order; at most one anchor per task.
            remaining: Rollouts left in the step.
            limits: Rollouts each anchor's task may still take, A values.
            stream: Names the round's random stream, e.g. (step, round).
        """
        settings = self.settings
        predictions, spreads = self.predict(states)
        rates = exploration_rates(
            self.decisions,
            len(states),
            len(self.space),
            start=settings.explore_start,
            scale=settings.explore_scale,
            floor=settings.explore_floor,
        )
        problem = Round(
            predictions=predictions,
            costs=self._costs,
            remaining=remaining,
            limits=np.asarray(limits, dtype=np.int64),
            counts=self.replay.counts(len(self.space)),
            gate=settings.gate,
        )
        chance = toss(rates, generator(self._seed, "controller", "serve", *stream))
        services = serve(problem, rates, chance)
        self.decisions += len(states)
        return [
            Decision(service, float(rate), predictions[i], spreads[i])
            for i, (service, rate) in enumerate(zip(services, rates, strict=True))
        ]

    def regime_order(self) -> list[int]:
        """Return regimes for a shadow sweep, the least used in the replay first."""
        counts = self.replay.counts(len(self.space))
        return least_used_first(counts, len(self.space.budgets))

    def observe(self, traces: Sequence[Trace]) -> tuple[Floats, Floats]:
        """Score labels with the present weights, then keep them for the next refit.

        Returns:
            Mean and sd over heads of each trace's own cell, (n,): predictions made before learning.

        Raises:
            ValueError: If a state has the wrong size, a cell is not in the space, or a value is not
                finite.
        """
        if not traces:
            return np.zeros(0), np.zeros(0)
        for trace in traces:
            if trace.state.shape != (self._state_size,) or not 0 <= trace.cell < len(self.space):
                raise ValueError(
                    f"trace of step {trace.step}: state shape {trace.state.shape}, cell "
                    f"{trace.cell}; expected ({self._state_size},) and 0..{len(self.space) - 1}"
                )
        self.replay.extend(traces)
        states = np.array([trace.state for trace in traces])
        cells = np.array([trace.cell for trace in traces])
        mean, spread = self._network.predict(self._inputs(states, np.arange(len(traces)), cells))
        self._unseen += len(traces)
        for trace, predicted in zip(traces, mean, strict=True):
            if trace.last_of_sweep:
                self.deployment.record(float(predicted), trace.gain, trace.step)
        return mean, spread

    def refit(self, step: int) -> float:
        """Fit on the replay as of `step`; return the last loss, NaN if nothing was learned.

        Does nothing without traces, and after promotion where the settings freeze the controller.
        """
        if not len(self.replay) or (self.settings.frozen and self.live):
            return float("nan")
        self._standardiser.update(self.replay.newest(self._unseen))
        self._unseen = 0
        size = len(self.replay)
        return self._fitter.fit(
            self._inputs(self.replay.states(), np.arange(size), self.replay.cells()),
            self.replay.gains(),
            recency_weights(self.replay.steps(), step, self.settings.half_life),
            half_samples(self.replay.numbers, self.settings.heads, self._seed),
            self.settings.fit_steps,
        )

    def close_step(self, step: int) -> dict[str, float]:
        """Refit, then decide on promotion; return figures for the log.

        Keys: controller_loss; controller_r, _mae, _mae_constant, _agreement, _base_rate, _labels of
        the window at the gate; controller_promoted (1 at the step's end that promoted).
        """
        loss = self.refit(step)
        figures = self.deployment.figures(self.settings.gate)
        promoted = self.deployment.close_step(step)
        return {
            "controller_loss": loss,
            "controller_r": figures.correlation,
            "controller_mae": figures.error,
            "controller_mae_constant": figures.constant_error,
            "controller_agreement": figures.agreement,
            "controller_base_rate": figures.base_rate,
            "controller_labels": float(figures.count),
            "controller_promoted": float(promoted),
        }

    def _inputs(self, states: Floats, rows: NDArray[np.int64], cells: NDArray[np.int64]) -> Floats:
        """Return network inputs of pairs (states[rows[i]], cells[i]), (n, Z + code)."""
        return np.concatenate([self._standardiser(states)[rows], self._codes[cells]], axis=1)

    def state_dict(self) -> dict[str, Any]:
        """Return everything that going on needs, as tensors and plain values.

        The tensors are copies: training on does not change them.
        """
        return {
            "network": {k: v.clone() for k, v in self._network.state_dict().items()},
            "optimiser": deepcopy(self._fitter.state_dict()),
            "standardiser": self._standardiser.state_dict(),
            "replay": self.replay.state_dict(),
            "deployment": self.deployment.state_dict(),
            "history": self.history.state_dict(),
            "decisions": self.decisions,
            "unseen": self._unseen,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the settings and the seed must be those of the saved controller."""
        self._network.load_state_dict(state["network"])
        self._fitter.load_state_dict(deepcopy(state["optimiser"]))
        self._standardiser.load_state_dict(state["standardiser"])
        self.replay.load_state_dict(state["replay"])
        self.deployment.load_state_dict(state["deployment"])
        self.history.load_state_dict(state["history"])
        self.decisions = state["decisions"]
        self._unseen = state["unseen"]
