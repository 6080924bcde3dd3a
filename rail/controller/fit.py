"""The recency-weighted Huber fit of the ensemble, warm-started at every refit.

Source: RAIL (arXiv 2608.05080): Huber loss, exponential recency weights. Optimiser, number of steps
and the bootstrap are `our choice`.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rail.controller.network import HeadEnsemble, normalise
from rail.seeding import seed_of

Floats = NDArray[np.float64]


def weighted_huber(predictions: Tensor, targets: Tensor, weights: Tensor, delta: float) -> Tensor:
    """Return sum_i w_i huber(f_i - y_i) / sum_i w_i over the last axis, summed over heads.

    huber(e) is e^2 / 2 within `delta` and delta (|e| - delta / 2) beyond. All tensors are (H, n).
    """
    losses = functional.huber_loss(predictions, targets, reduction="none", delta=delta)
    return ((weights * losses).sum(dim=-1) / weights.sum(dim=-1)).sum()


def half_samples(numbers: range, heads: int, seed: int) -> NDArray[np.bool_]:
    """Return which traces each head learns from, (heads, n): a fair coin per head and trace.

    Half-sampling has the bootstrap's variance (double-or-nothing, Owen and Eckles 2012) and halves
    the refit. The coin is a function of the trace's number alone: a head keeps its half for good,
    so that warm-started heads stay apart, and a resumed run needs no generator state.
    """
    bits = np.array([seed_of(seed, "controller", "bootstrap", number) for number in numbers])
    return (bits >> np.arange(heads)[:, None] & 1).astype(bool)


def gather(chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return row indices (H, k) of each head's traces, padded to the longest, and a 0/1 mask.

    A head whose coins left it nothing gets everything.
    """
    chosen = chosen | ~chosen.any(axis=1, keepdims=True)
    longest = int(chosen.sum(axis=1).max())
    order = np.argsort(~chosen, axis=1, kind="stable")[:, :longest]
    return order, np.take_along_axis(chosen, order, axis=1).astype(np.float64)


class Fitter:
    """AdamW over all heads; its moments live on between refits."""

    def __init__(
        self, network: HeadEnsemble, *, learning_rate: float, weight_decay: float, delta: float
    ) -> None:
        self._network = network
        self._delta = delta
        self._optimiser = torch.optim.AdamW(
            network.parameters(), lr=learning_rate, weight_decay=weight_decay, fused=True
        )

    def fit(
        self,
        inputs: Floats,
        targets: Floats,
        weights: Floats,
        chosen: NDArray[np.bool_],
        steps: int,
    ) -> float:
        """Take full-batch steps from the present weights; return the last loss, mean over heads.

        Args:
            inputs: Raw network inputs, (n, D).
            targets: Gains, (n,).
            weights: Recency weights, (n,).
            chosen: Traces of each head, (H, n).
            steps: Number of steps, at least 1.
        """
        rows, mask = gather(chosen)
        x = normalise(inputs)[torch.from_numpy(rows)]
        y = torch.from_numpy(targets[rows]).float()
        w = torch.from_numpy(weights[rows] * mask).float()
        loss = torch.zeros(())
        for _ in range(steps):
            self._optimiser.zero_grad()
            loss = weighted_huber(self._network(x), y, w, self._delta)
            loss.backward()
            self._optimiser.step()
        return loss.item() / self._network.heads

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser's moments."""
        return self._optimiser.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self._optimiser.load_state_dict(state)
