"""Random twins of RAIL: they spend what RAIL spent, without its map from state to action.

Source: protocol section 4. `uniform`: anchors in random order, cells uniform, until RAIL's branch
total of the step is spent; the last m is cut to the remainder. `permuted`: RAIL's executed cells of
the step, skips included, dealt by a random permutation to the twin's own anchors. Both share RAIL's
shadow phase: they start from its promotion checkpoint. What cannot be spent in a step is owed to
the next.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rail.config import SpaceConfig, Strict
from rail.controller.labels import SKIP, decision_row, fill_in, label, verdicts
from rail.interventions import InterventionSpace
from rail.methods.base import Branch, Method, MethodContext, Record, StepContext
from rail.rollout.anchors import Anchor, propose
from rail.seeding import generator


class Settings(Strict):
    """How cells are dealt; the space must be RAIL's."""

    deal: Literal["uniform", "permuted"]
    rounds: int = 2
    space: SpaceConfig = SpaceConfig()


@dataclass(frozen=True, slots=True)
class _Deal:
    """Draw `branches` continuations of an anchor in `cell` (SKIP: none), in round `round`."""

    anchor: Anchor
    round: int
    cell: int
    branches: int
    propensity: float
    cut: bool = False


@dataclass(frozen=True, slots=True)
class _Hand:
    """What the deal of a step starts from.

    Attributes:
        anchors: Each with its round, in the order in which they are served.
        recorded: RAIL's decisions of the step: cell, and branches drawn (0: none).
        budget: Rollouts left in the step.
        rng: The stream of the deal.
    """

    anchors: list[tuple[Anchor, int]]
    recorded: list[tuple[int, int]]
    budget: int
    rng: np.random.Generator


class Yoked(Method, ABC):
    """Reads RAIL's interventions of the same seed and step; the twins differ in `_deal` only."""

    branches_from_base = True
    shares_shadow = True

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        """Take the recorded run."""
        record = context.needs_record(f"the {settings.deal} twin")
        self._settings = settings
        self._space = settings.space.build()
        self._seed = context.seed
        self._plans = _recorded(record)
        self._deals: list[_Deal] = []
        self._round = -1
        self._asked: list[tuple[_Deal, dict[str, Any]]] = []

    def branches(self, context: StepContext) -> list[Branch]:
        """Deal once per step, then draw round by round, so that Y_before counts earlier rounds."""
        if self._round < 0:
            self.phase = "live"
            self._deals = self._deal(self._hand(context))
        self._settle(context)
        while self._round + 1 < self._settings.rounds:
            self._round += 1
            found = self._draw_round(context)
            if found:
                return found
        self._round = -1
        return []

    @abstractmethod
    def _deal(self, hand: _Hand) -> list[_Deal]:
        """Return one deal per anchor, and set `carry` to the branches owed to the next step."""

    def _hand(self, context: StepContext) -> _Hand:
        rng = generator(self._seed, "yoked", self._settings.deal, context.step)
        anchors: list[tuple[Anchor, int]] = []
        for index, tree in enumerate(context.trees):
            ties = generator(self._seed, "anchors", context.step, tree.task.id)
            anchors += [
                (a, r) for r, a in enumerate(propose(tree, index, self._settings.rounds, ties))
            ]
        anchors = [anchors[i] for i in rng.permutation(len(anchors))]
        anchors.sort(key=lambda pair: pair[1])
        return _Hand(anchors, self._plans.get(context.step, []), context.budget_left, rng)

    def _draw_round(self, context: StepContext) -> list[Branch]:
        found: list[Branch] = []
        for deal in self._deals:
            if deal.round != self._round:
                continue
            tree = context.trees[deal.anchor.tree]
            row = decision_row(context.step, deal.round, deal.anchor, tree, "yoked", "yoked")
            row |= {"propensity": deal.propensity, "cut": deal.cut}
            context.interventions.append(row)
            if deal.cell == SKIP:
                continue
            regime = self._space[deal.cell].regime
            row |= {"cell": deal.cell, "branches": deal.branches, "regime": regime.name}
            self._asked.append((deal, row))
            found.append(_branch(deal, self._space))
        return found

    def _settle(self, context: StepContext) -> None:
        for (deal, row), drawn in zip(self._asked, context.drawn, strict=False):
            tree = context.trees[deal.anchor.tree]
            rewards = verdicts(tree, drawn)
            before = tree.rewards([i for i in tree.retained() if i not in drawn])
            fill_in(row, label(self._space, before, rewards), accepted=True)
        self._asked = []

    def state_dict(self) -> dict[str, Any]:
        """Return what is owed."""
        return {"carry": self.carry}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what is owed."""
        self.carry = state["carry"]


class UniformTwin(Yoked):
    """Cells at random, until RAIL's branches are spent."""

    def _deal(self, hand: _Hand) -> list[_Deal]:
        owed = self.carry + sum(branches for _, branches in hand.recorded)
        left = min(owed, hand.budget)
        propensity = 1.0 / len(self._space)
        deals: list[_Deal] = []
        for anchor, round_ in hand.anchors:
            cell = int(hand.rng.integers(len(self._space)))
            wanted = self._space[cell].branches
            branches = min(wanted, left)
            left -= branches
            owed -= branches
            dealt = cell if branches else SKIP
            cut = 0 < branches < wanted
            deals.append(_Deal(anchor, round_, dealt, branches, propensity, cut))
        self.carry = owed
        return deals


class PermutedTwin(Yoked):
    """RAIL's own cells, at anchors drawn by a permutation."""

    def __init__(self, settings: Settings, context: MethodContext) -> None:
        """Take the recorded run."""
        super().__init__(settings, context)
        self._owed: list[int] = []  # executed cells not dealt yet

    def _deal(self, hand: _Hand) -> list[_Deal]:
        anchors, budget = hand.anchors, hand.budget
        executed = self._owed + [cell for cell, branches in hand.recorded if branches]
        dealt: list[int] = []
        self._owed = []
        for cell in executed:
            size = self._space[cell].branches
            if len(dealt) < len(anchors) and size <= budget:
                dealt.append(cell)
                budget -= size
            else:
                self._owed.append(cell)
        self.carry = sum(self._space[cell].branches for cell in self._owed)
        dealt += [SKIP] * (len(anchors) - len(dealt))
        order = hand.rng.permutation(len(dealt))
        deals: list[_Deal] = []
        for (anchor, round_), place in zip(anchors, order, strict=True):
            cell = dealt[place]
            branches = 0 if cell == SKIP else self._space[cell].branches
            deals.append(_Deal(anchor, round_, cell, branches, dealt.count(cell) / len(dealt)))
        return deals

    def state_dict(self) -> dict[str, Any]:
        """Return what is owed, the cells as well."""
        return {**super().state_dict(), "owed": list(self._owed)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what is owed."""
        super().load_state_dict(state)
        self._owed = list(state["owed"])


def _branch(deal: _Deal, space: InterventionSpace) -> Branch:
    regime = space[deal.cell].regime
    return Branch(
        tree=deal.anchor.tree,
        rollout=deal.anchor.rollout,
        turn=deal.anchor.turn,
        rollouts=deal.branches,
        decoding=regime.decoding,
        regime=regime.name,
        origin="live",
        stream=("live", deal.round),
    )


def _recorded(record: Record) -> dict[int, list[tuple[int, int]]]:
    plans: dict[int, list[tuple[int, int]]] = {}
    for row in record.interventions:
        if row["mode"] == "live":
            branches = int(row["branches"]) if row["executed"] else 0
            plans.setdefault(int(row["step"]), []).append((int(row["cell"]), branches))
    return plans


def build(settings: Settings, context: MethodContext) -> Method:
    """Return the method."""
    twin = UniformTwin if settings.deal == "uniform" else PermutedTwin
    return twin(settings, context)
