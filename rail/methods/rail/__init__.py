"""RAIL (arXiv 2608.05080): learn where and how to branch from realised recoverability gains.

Shadow: entropy proposes anchors, a sweep labels regimes and budgets, the controller only learns.
Live: the controller picks one cell per anchor, acts above the utility gate, explores at a logged
rate, and goes on learning. The policy update is the common one, uncorrected (the paper's appendix
D.1). Choices that the seeds of the paper do not fix are `our choice`; `docs/choices.md` has the
reasons.
"""

from typing import Any

from rail.controller.controller import Controller
from rail.errors import ConfigError
from rail.methods.base import Branch, Method, MethodContext, StepContext
from rail.methods.rail.live import LiveStep
from rail.methods.rail.settings import Settings
from rail.methods.rail.shadow import ShadowStep
from rail.methods.rail.view import View

__all__ = ["Rail", "Settings", "build"]


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
        self._view = View(settings, context)
        self._running: ShadowStep | LiveStep | None = None

    @property
    def controller(self) -> Controller:
        """Return the controller, for measures and tests."""
        return self._view.controller

    @property
    def promoted_step(self) -> int:
        """Return the first live step, -1 in shadow."""
        return self.controller.deployment.promoted_step

    @property
    def promoted_by(self) -> str:
        """Return criterion | forced, empty in shadow."""
        return self.controller.deployment.promoted_by

    def branches(self, context: StepContext) -> list[Branch]:
        """Return the next round of a sweep (shadow) or of decisions (live)."""
        if self._running is None:
            kind = LiveStep if self.controller.live else ShadowStep
            self._running = kind(self._view, context)
            self.phase = kind.phase
        found = self._running.branches(context)
        if not found:
            self._running = None
        return found

    def learn(self, context: StepContext) -> dict[str, float]:
        """Record the tasks' success, refit, decide on promotion."""
        for tree in context.trees:
            self.controller.history.record(tree.task.id, tree.rewards(tree.base()))
        return self.controller.close_step(context.step)

    def state_dict(self) -> dict[str, Any]:
        """Return the controller's state; between steps there is no other."""
        return self.controller.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the controller."""
        self.controller.load_state_dict(state)


def build(settings: Settings, context: MethodContext) -> Method:
    """Return the method."""
    return Rail(settings, context)
