"""Who explores, who acts greedily, and with what probability: serving anchors under a budget.

Source: RAIL (arXiv 2608.05080): decayed exploration directed at rarely used cells, gate eta. Coins
before ranking, reserved budget, and propensities that include the cap: protocol section 3.

All chance is drawn before serving and independent of the states: per anchor a coin, a place in the
explorers' queue, and a uniform for its cell. Given the *other* anchors' chance and its own place,
an anchor's choice depends on its own coin and uniform alone, hence exactly
P(b) = rho q(b | eligible when exploring) + (1 - rho) 1[greedy choice = b],
both parts found by serving once with the coin each way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SKIP = -1
GREEDY, EXPLORE = "greedy", "explore"


@dataclass(frozen=True, slots=True)
class Chance:
    """The randomness of one round, all (A,).

    Attributes:
        coins: The anchor explores.
        places: Explorers are served by ascending place.
        uniforms: In [0, 1): picks the explorer's cell.
    """

    coins: NDArray[np.bool_]
    places: Floats
    uniforms: Floats


@dataclass(frozen=True, slots=True)
class Service:
    """What one anchor gets.

    Attributes:
        cell: Cell, or -1 for skip.
        draw: greedy | explore.
        eligible: Bit c: cell c fitted the remaining budget when the anchor was served.
        propensity: Probability of `cell`, skip included.
        probabilities: Of every cell and, last, of skip: (K + 1,), sums to 1.
    """

    cell: int
    draw: str
    eligible: int
    propensity: float
    probabilities: Floats


def exploration_rates(
    decisions: int, anchors: int, cells: int, *, start: float, scale: float, floor: float
) -> Floats:
    """Return rho_t = max(floor, min(start, scale sqrt(K / t))), t = decisions + 1, ...: (A,)."""
    count = np.arange(decisions + 1, decisions + anchors + 1)
    return np.maximum(floor, np.minimum(start, scale * np.sqrt(cells / count)))


def toss(rates: Floats, random: np.random.Generator) -> Chance:
    """Draw the round's chance; the coin of anchor a says explore with probability `rates[a]`."""
    uniforms = random.random((3, len(rates)))
    return Chance(uniforms[0] < rates, uniforms[1], uniforms[2])


def coverage(counts: NDArray[np.int64], eligible: NDArray[np.bool_]) -> Floats:
    """Return q(b) ~ 1 / sqrt(1 + N_b) over eligible cells, (K,); all 0 if none is eligible."""
    weights = np.where(eligible, 1.0 / np.sqrt(1.0 + counts), 0.0)
    total = weights.sum()
    return weights / total if total > 0.0 else weights


@dataclass(frozen=True, slots=True)
class Round:
    """One serving problem: everything but the chance.

    Attributes:
        predictions: Predicted gain f, (A, K).
        costs: Rollouts m of each cell, (K,).
        remaining: Rollouts left for all anchors together.
        limits: Rollouts each anchor's task may still take, (A,).
        counts: N_b, how often each cell was tried, (K,).
        gate: eta; a greedy anchor acts only on f > eta.
    """

    predictions: Floats
    costs: NDArray[np.int64]
    remaining: int
    limits: NDArray[np.int64]
    counts: NDArray[np.int64]
    gate: float

    def fits(self, anchor: int, left: int) -> NDArray[np.bool_]:
        """Return which cells fit the budget, (K,)."""
        return self.costs <= min(left, int(self.limits[anchor]))

    def explore(self, anchor: int, left: int, uniform: float) -> int:
        """Return the coverage draw's cell, or skip if none fits."""
        cumulative = np.cumsum(coverage(self.counts, self.fits(anchor, left)))
        if cumulative[-1] == 0.0:
            return SKIP
        return int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"))

    def greedy(self, anchor: int, left: int) -> int:
        """Return the best cell that fits, or skip if none exceeds the gate."""
        gains = np.where(self.fits(anchor, left), self.predictions[anchor], -np.inf)
        best = int(gains.argmax())
        return best if gains[best] > self.gate else SKIP

    def play(self, chance: Chance) -> tuple[list[int], list[int]]:
        """Serve all anchors; return each one's cell and the budget left when it was served.

        Explorers first, by place, so that no prediction can starve them; then the others by their
        highest prediction, largest first (ties: the earlier anchor).
        """
        anchors = range(len(self.predictions))
        cells, lefts = [SKIP] * len(anchors), [0] * len(anchors)
        ranks = -self.predictions.max(axis=1, initial=-np.inf)
        explorers = sorted((a for a in anchors if chance.coins[a]), key=lambda a: chance.places[a])
        others = sorted((a for a in anchors if not chance.coins[a]), key=lambda a: ranks[a])
        left = self.remaining
        for anchor in (*explorers, *others):
            if chance.coins[anchor]:
                cell = self.explore(anchor, left, float(chance.uniforms[anchor]))
            else:
                cell = self.greedy(anchor, left)
            cells[anchor], lefts[anchor] = cell, left
            left -= int(self.costs[cell]) if cell != SKIP else 0
        return cells, lefts

    def probabilities(
        self, anchor: int, rate: float, chance: Chance, played: tuple[list[int], list[int]]
    ) -> Floats:
        """Return the choice's distribution given the others' chance, (K + 1,), skip last.

        `played` is the outcome under `chance`: only the other side of the coin is played again.
        """
        coins = chance.coins.copy()
        coins[anchor] = not coins[anchor]
        flipped = self.play(Chance(coins, chance.places, chance.uniforms))
        exploring, acting = (played, flipped) if chance.coins[anchor] else (flipped, played)
        result = np.zeros(len(self.costs) + 1)
        drawn = coverage(self.counts, self.fits(anchor, exploring[1][anchor]))
        result[:-1] = rate * drawn
        result[SKIP] = rate * float(not drawn.any())
        result[acting[0][anchor]] += 1.0 - rate  # SKIP = -1 is the last entry
        return result


def serve(problem: Round, rates: Floats, chance: Chance) -> list[Service]:
    """Serve a round; `rates` (A,) are the exploration rates the coins were tossed with.

    Raises:
        ValueError: If shapes disagree.
    """
    anchors, cells = problem.predictions.shape
    shapes = [problem.costs.shape, problem.counts.shape, problem.limits.shape, rates.shape]
    if shapes != [(cells,), (cells,), (anchors,), (anchors,)] or len(chance.coins) != anchors:
        raise ValueError(
            f"serving {anchors} anchors x {cells} cells: costs, counts, limits, rates have shapes "
            f"{shapes} and there are {len(chance.coins)} coins"
        )
    played = problem.play(chance)
    services = []
    for anchor, (cell, left) in enumerate(zip(*played, strict=True)):
        probabilities = problem.probabilities(anchor, float(rates[anchor]), chance, played)
        services.append(
            Service(
                cell=cell,
                draw=EXPLORE if chance.coins[anchor] else GREEDY,
                eligible=bits(problem.fits(anchor, left)),
                propensity=float(probabilities[cell]),
                probabilities=probabilities,
            )
        )
    return services


def bits(mask: Sequence[bool] | NDArray[np.bool_]) -> int:
    """Return an integer whose bit c is set where mask[c] is."""
    return sum(1 << index for index, flag in enumerate(mask) if flag)


def least_used_first(counts: NDArray[np.int64], budgets: int) -> list[int]:
    """Return regime indices, the least used first (ties: their own order), for a shadow sweep.

    `counts` (K,) is ordered regime-major with `budgets` cells per regime.
    """
    usage = counts.reshape(-1, budgets).sum(axis=1)
    return [int(regime) for regime in np.argsort(usage, kind="stable")]
