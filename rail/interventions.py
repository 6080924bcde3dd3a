"""The structured action space B = M x T: how many branches, decoded how.

Source: RAIL (arXiv 2608.05080): M = {4, 8, 12}, three regimes. The temperatures are `our choice`
(the paper sets them by hand per benchmark); top-p is 1 so that importance weights are exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decoding:
    """How tokens are drawn: softmax(logits / temperature), cut to the nucleus `top_p`."""

    temperature: float = 1.0
    top_p: float = 1.0


ON_POLICY = Decoding()


@dataclass(frozen=True, slots=True)
class Regime:
    """A named decoding."""

    name: str
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class Intervention:
    """b = (branches, regime): draw `branches` continuations of an anchor under `regime`."""

    branches: int
    regime: Regime


@dataclass(frozen=True, slots=True)
class InterventionSpace:
    """All cells, in the order regime-major then branches: cell = regime * len(budgets) + budget.

    Attributes:
        budgets: Branch budgets m, ascending.
        regimes: Decoding regimes.
        cost_weight: lambda, the price of one unit of C(b) = m, in units of d.
    """

    budgets: tuple[int, ...]
    regimes: tuple[Regime, ...]
    cost_weight: float

    def __len__(self) -> int:
        return len(self.budgets) * len(self.regimes)

    def __getitem__(self, cell: int) -> Intervention:
        if not 0 <= cell < len(self):
            raise IndexError(f"cell {cell} is not one of 0..{len(self) - 1}")
        regime, budget = divmod(cell, len(self.budgets))
        return Intervention(self.budgets[budget], self.regimes[regime])

    def cell(self, branches: int, regime: str) -> int:
        """Return the cell of a pair.

        Raises:
            ValueError: If the pair is not in the space.
        """
        names = [r.name for r in self.regimes]
        if branches not in self.budgets or regime not in names:
            raise ValueError(f"({branches}, {regime}) is not in {self.budgets} x {names}")
        return names.index(regime) * len(self.budgets) + self.budgets.index(branches)

    def cost(self, branches: int) -> float:
        """Return lambda * C(b) with C(b) = m, in units of d (C = m is `our choice`)."""
        return self.cost_weight * branches

    def encode(self, cell: int) -> list[float]:
        """Return b as features: m / max m, one-hot regime, (m / max m) * one-hot regime."""
        regime, budget = divmod(cell, len(self.budgets))
        share = self.budgets[budget] / self.budgets[-1]
        one_hot = [float(i == regime) for i in range(len(self.regimes))]
        return [share, *one_hot, *(share * x for x in one_hot)]

    @staticmethod
    def build(
        budgets: Sequence[int], regimes: dict[str, Decoding], cost_weight: float
    ) -> "InterventionSpace":
        """Make a space from plain values, budgets sorted ascending."""
        return InterventionSpace(
            tuple(sorted(budgets)),
            tuple(Regime(name, decoding) for name, decoding in regimes.items()),
            cost_weight,
        )
