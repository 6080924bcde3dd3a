"""Cheap scalar draws from one of `rail.seeding`'s streams.

Scripted demonstrations need some sixty scalar draws each; numpy's scalar calls cost more than the
database. Uniforms are taken from the stream in blocks, so results depend on the stream alone.
"""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")

_BLOCK = 4096


class Draws:
    """A stream of scalar random values."""

    def __init__(self, stream: np.random.Generator) -> None:
        self._stream = stream
        self._block: list[float] = []

    def uniform(self) -> float:
        """Return a float in [0, 1)."""
        if not self._block:
            self._block = self._stream.random(_BLOCK).tolist()
        return self._block.pop()

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit)."""
        return int(self.uniform() * limit)

    def between(self, low: float, high: float) -> float:
        """Return a float in [low, high)."""
        return low + (high - low) * self.uniform()

    def happens(self, probability: float) -> bool:
        """Return True with `probability`."""
        return self.uniform() < probability

    def choice(self, items: Sequence[Item]) -> Item:
        """Return one item."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Return `count` different positions' items in random order.

        Raises:
            ValueError: If there are fewer than `count` items.
        """
        if count > len(items):
            raise ValueError(f"cannot draw {count} of {len(items)} items")
        pool = list(items)
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Return all items in random order."""
        return self.sample(items, len(items))
