"""The order in which a run meets its pool: epochs without replacement, common to all methods."""

from collections.abc import Sequence

from rail.envs.base import Task
from rail.seeding import generator


class TaskOrder:
    """An endless sequence of tasks, a function of the seed alone."""

    def __init__(self, pool: Sequence[Task], seed: int, stream: str = "tasks") -> None:
        """`stream` tells apart the common order and, say, the order of fill groups."""
        self._pool, self._seed, self._stream = pool, seed, stream

    def take(self, start: int, count: int) -> list[Task]:
        """Return the tasks at places start, start + 1, ... of the sequence."""
        return [self._at(place) for place in range(start, start + count)]

    def _at(self, place: int) -> Task:
        epoch, index = divmod(place, len(self._pool))
        order = generator(self._seed, self._stream, epoch).permutation(len(self._pool))
        return self._pool[int(order[index])]
