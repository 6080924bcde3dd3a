"""What both phases see of a step: its anchors, their states, and the branches to ask for."""

import numpy as np
from numpy.typing import NDArray

from rail.controller.controller import Controller
from rail.controller.embedding import TaskEmbedding
from rail.controller.features import gaussian_projection, state_features
from rail.methods.base import Branch, MethodContext, StepContext
from rail.methods.rail.settings import Settings
from rail.rollout.anchors import Anchor, propose
from rail.seeding import generator, seed_of


class View:
    """The controller's eyes: fixed maps from the run's tasks and hidden states to z.

    Attributes:
        controller: Decides and learns.
        settings: The method's values.
        space: The intervention space of K cells.
        seed: Root of the method's random streams.
    """

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        """Build the controller and the maps."""
        self.settings = settings
        self.seed = seed = context.seed
        self.space = settings.space.build()
        self.controller = Controller(self.space, settings.controller, seed)
        self._max_turns = context.max_turns
        self._projection = gaussian_projection(
            context.hidden, settings.controller.hidden_size, seed
        )
        prompts = [task.prompt for task in context.pool]
        embedding = TaskEmbedding.fit(
            prompts, settings.controller.task_size, seed_of(seed, "controller", "embedding") % 2**31
        )
        vectors = embedding.transform(prompts)
        self._tasks = {task.id: vectors[i] for i, task in enumerate(context.pool)}

    def anchors(self, context: StepContext) -> list[list[Anchor]]:
        """Return the step's anchors by round, at most one per task in each."""
        found: list[list[Anchor]] = [[] for _ in range(self.settings.rounds)]
        for index, tree in enumerate(context.trees):
            ties = generator(self.seed, "anchors", context.step, tree.task.id)
            for round_, anchor in enumerate(propose(tree, index, self.settings.rounds, ties)):
                found[round_].append(anchor)
        return found

    def before(self, context: StepContext, anchor: Anchor) -> list[float]:
        """Return Y_before: the rewards of what the anchor's task retains so far."""
        tree = context.trees[anchor.tree]
        return tree.rewards(tree.retained())

    def state(
        self, context: StepContext, anchor: Anchor, before: list[float]
    ) -> NDArray[np.float64]:
        """Return z of an anchor, shape (Z,)."""
        tree = context.trees[anchor.tree]
        return state_features(
            tree,
            anchor.rollout,
            anchor.turn,
            before=before,
            step=context.step,
            steps=context.steps,
            task_ema=self.controller.history[tree.task.id],
            hidden_projection=self._projection,
            task_embedding=self._tasks[tree.task.id],
            max_turns=self._max_turns,
            group_scale=self.settings.controller.group_scale,
            prefix_only=self.settings.controller.prefix_only,
        )

    def branch(
        self, anchor: Anchor, cell: int, rollouts: int, stream: tuple[str, int, str]
    ) -> Branch:
        """Return the request for `rollouts` continuations of an anchor in the regime of `cell`.

        Args:
            anchor: Where.
            cell: Cell of the space.
            rollouts: Continuations.
            stream: Origin (shadow | live), round, and a key that no other request shares.
        """
        regime = self.space[cell].regime
        return Branch(
            tree=anchor.tree,
            rollout=anchor.rollout,
            turn=anchor.turn,
            rollouts=rollouts,
            decoding=regime.decoding,
            regime=regime.name,
            origin=stream[0],
            stream=stream,
        )
