"""The predictor of the gain: an ensemble of small networks evaluated together.

LayerNorm -> width tanh -> width tanh -> 1 per head, last layer zero at the start: an untrained
controller predicts exactly 0, below any positive gate, so it stays silent until there is evidence
(architecture `our choice`; the paper says only that the controller is a small regressor).
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

Floats = NDArray[np.float64]


class HeadEnsemble(nn.Module):
    """Heads with their own weights, stored with a leading head axis H.

    `scale` (H, D, 1) and `shift` (H, 1, D) are the LayerNorm's affine part. Batched products over H
    replace a loop over heads: a refit is many small matrix products, where call overhead counts.
    """

    def __init__(self, inputs: int, width: int, heads: int, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def uniform(rows: int, columns: int, fan_in: int) -> nn.Parameter:
            bound = fan_in**-0.5  # torch.nn.Linear's default
            weights = torch.rand(heads, rows, columns, generator=generator)
            return nn.Parameter((2 * weights - 1) * bound)

        self.scale = nn.Parameter(torch.ones(heads, inputs, 1))
        self.shift = nn.Parameter(torch.zeros(heads, 1, inputs))
        self.weight1 = uniform(inputs, width, inputs)
        self.bias1 = uniform(1, width, inputs)
        self.weight2 = uniform(width, width, width)
        self.bias2 = uniform(1, width, width)
        self.weight3 = nn.Parameter(torch.zeros(heads, width, 1))
        self.bias3 = nn.Parameter(torch.zeros(heads, 1, 1))

    @property
    def heads(self) -> int:
        """Number of heads."""
        return self.scale.shape[0]

    def forward(self, inputs: Tensor) -> Tensor:
        """Return predictions (H, n) for normalised inputs (H, n, D); see `normalise`."""
        # The affine LayerNorm is folded into the first layer: x (scale * W) + (shift W + b).
        first = torch.baddbmm(self.bias1, self.shift, self.weight1)
        hidden = torch.tanh(torch.baddbmm(first, inputs, self.scale * self.weight1))
        hidden = torch.tanh(torch.baddbmm(self.bias2, hidden, self.weight2))
        return torch.baddbmm(self.bias3, hidden, self.weight3).squeeze(-1)

    def predict(self, inputs: Floats) -> tuple[Floats, Floats]:
        """Return mean and standard deviation over heads, each (n,), for raw inputs (n, D)."""
        with torch.no_grad():
            normalised = normalise(inputs)
            heads = self(normalised.expand(self.heads, *normalised.shape)).double().numpy()
        return heads.mean(axis=0), heads.std(axis=0)


def normalise(inputs: Floats) -> Tensor:
    """Return float32 rows (n, D) with mean 0 and variance 1 each: the LayerNorm's fixed part."""
    rows = torch.from_numpy(np.ascontiguousarray(inputs, dtype=np.float32))
    return functional.layer_norm(rows, rows.shape[-1:])


class Standardiser:
    """Running mean and variance per column, frozen between refits, floored and clipped."""

    def __init__(self, size: int, sd_floor: float, clip: float) -> None:
        self._sd_floor, self._clip = sd_floor, clip
        self._count = 0
        self._mean = np.zeros(size)
        self._square = np.zeros(size)  # sum of squared deviations

    def update(self, rows: Floats) -> None:
        """Merge rows (n, D) into the statistics (parallel variance update of Chan et al. 1979)."""
        if not len(rows):
            return
        count = self._count + len(rows)
        mean = rows.mean(axis=0)
        delta = mean - self._mean
        self._square += ((rows - mean) ** 2).sum(axis=0)
        self._square += delta**2 * (self._count * len(rows) / count)
        self._mean += delta * (len(rows) / count)
        self._count = count

    def __call__(self, rows: Floats) -> Floats:
        """Return (rows - mean) / max(sd, floor), clipped; before any data just clipped."""
        if not self._count:
            return np.clip(rows, -self._clip, self._clip)
        deviation = np.maximum(np.sqrt(self._square / self._count), self._sd_floor)
        return np.clip((rows - self._mean) / deviation, -self._clip, self._clip)

    def state_dict(self) -> dict[str, Any]:
        """Return count and statistics."""
        return {
            "count": self._count,
            "mean": torch.from_numpy(self._mean.copy()),
            "square": torch.from_numpy(self._square.copy()),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        self._count = state["count"]
        self._mean, self._square = state["mean"].numpy().copy(), state["square"].numpy().copy()
