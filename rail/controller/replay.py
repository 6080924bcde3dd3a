"""What the controller has seen: the last traces, weighted by how recent they are."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Trace:
    """One label.

    Attributes:
        state: z of the anchor, shape (Z,).
        cell: Cell of the intervention space.
        gain: y, net of cost.
        step: 0-based policy step of the label.
        last_of_sweep: Final label of a shadow sweep, or a live label: it counts for promotion.
    """

    state: NDArray[np.float64]
    cell: int
    gain: float
    step: int
    last_of_sweep: bool = True


def recency_weights(steps: NDArray[np.int64], now: int, half_life: float) -> NDArray[np.float64]:
    """Return 2^{-(now - step) / half_life}, shape (n,); half-life in policy steps.

    Source: RAIL (arXiv 2608.05080), recency-weighted regression.
    """
    return np.exp2((np.asarray(steps, dtype=np.float64) - now) / half_life)


class Replay:
    """A buffer of the last `capacity` traces.

    Traces are numbered from 0 in the order they came (`seen` so far), so that anything random about
    one can be a function of its number.
    """

    def __init__(self, capacity: int) -> None:
        self._traces: deque[Trace] = deque(maxlen=capacity)
        self.seen = 0

    def __len__(self) -> int:
        return len(self._traces)

    def extend(self, traces: Sequence[Trace]) -> None:
        """Append traces; the oldest fall out.

        Raises:
            ValueError: If a state or a gain is not finite.
        """
        for trace in traces:
            if not (np.isfinite(trace.gain) and np.isfinite(trace.state).all()):
                raise ValueError(
                    f"trace of step {trace.step}, cell {trace.cell}: gain {trace.gain} and all of "
                    "the state must be finite; a skipped anchor has no label and is no trace"
                )
        self._traces.extend(traces)
        self.seen += len(traces)

    @property
    def numbers(self) -> range:
        """Return the numbers of the stored traces, oldest first."""
        return range(self.seen - len(self._traces), self.seen)

    def newest(self, count: int) -> NDArray[np.float64]:
        """Return the states of the `count` newest traces still stored, (<= count, Z)."""
        states = self.states()
        return states[max(0, len(states) - count) :]

    def states(self) -> NDArray[np.float64]:
        """Return all states, (n, Z), oldest first."""
        return np.array([trace.state for trace in self._traces])

    def cells(self) -> NDArray[np.int64]:
        """Return all cells, (n,)."""
        return np.array([trace.cell for trace in self._traces], dtype=np.int64)

    def gains(self) -> NDArray[np.float64]:
        """Return all gains, (n,)."""
        return np.array([trace.gain for trace in self._traces])

    def steps(self) -> NDArray[np.int64]:
        """Return all steps, (n,)."""
        return np.array([trace.step for trace in self._traces], dtype=np.int64)

    def counts(self, cells: int) -> NDArray[np.int64]:
        """Return how many stored traces each of `cells` cells has, (cells,)."""
        return np.bincount(self.cells(), minlength=cells)

    def state_dict(self) -> dict[str, Any]:
        """Return the traces as tensors."""
        return {
            "seen": self.seen,
            "states": torch.from_numpy(self.states()),
            "cells": torch.from_numpy(self.cells()),
            "gains": torch.from_numpy(self.gains()),
            "steps": torch.from_numpy(self.steps()),
            "last_of_sweep": [trace.last_of_sweep for trace in self._traces],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        columns = (state[k].numpy() for k in ("states", "cells", "gains", "steps"))
        rows = zip(*columns, state["last_of_sweep"], strict=True)
        self._traces.clear()
        self._traces.extend(
            Trace(z.copy(), int(cell), float(gain), int(step), bool(last))
            for z, cell, gain, step, last in rows
        )
        self.seen = state["seen"]
