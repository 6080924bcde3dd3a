"""Keys and values of many rows in one torch tensor, and attention of a call's entries over them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from rail.policy.decoder import Entries


class Plan:
    """Index tensors of one call, shared by all layers.

    Runs of one token attend as one dense batch over rows 0..width-1 (a view of the cache, nothing
    gathered), longer runs as a padded batch.

    Attributes:
        tokens, rows, positions: Of each token, shape (n,).
        last: Index of each run's last token, shape (m,).
    """

    def __init__(self, entries: Entries) -> None:
        """Lay out one call."""
        put = torch.from_numpy
        self.tokens = put(entries.tokens)
        self.rows = put(entries.flat_rows())
        self.positions = put(entries.flat_positions())
        ends = entries.last()
        self.last = put(ends)
        single = entries.lengths == 1
        self.singles = put(ends[single])
        self.chunks: _Chunks | None = None
        if single.any():
            self.single_rows = self.rows[self.singles]
            self.width = int(self.single_rows.max()) + 1
            limit = torch.zeros(self.width, dtype=torch.long)
            limit[self.single_rows] = self.positions[self.singles]
            self.reach = int(limit.max()) + 1
            self.mask = (torch.arange(self.reach) <= limit[:, None])[:, None, None]
        if not single.all():
            self.chunks = _Chunks(entries, ~single)


class _Chunks:
    """Runs of several tokens as a padded batch (c, longest)."""

    def __init__(self, entries: Entries, chosen: NDArray[np.bool_]) -> None:
        lengths, starts = entries.lengths[chosen], entries.starts[chosen]
        first = (np.cumsum(entries.lengths) - entries.lengths)[chosen]
        column = np.arange(lengths.max())
        # Padding repeats the run's last token: computed, never read.
        gather = first[:, None] + np.minimum(column, lengths[:, None] - 1)
        inside = column < lengths[:, None]
        self.shape = gather.shape
        self.gather = torch.from_numpy(gather.reshape(-1))
        self.flat = torch.from_numpy(gather[inside])
        self.scatter = torch.from_numpy(np.flatnonzero(inside))
        self.rows = torch.from_numpy(entries.rows[chosen])
        self.reach = int((starts + lengths).max())
        limit = torch.from_numpy(starts[:, None] + column)
        self.mask = (torch.arange(self.reach) <= limit[:, :, None])[:, None]


class RowCache:
    """Keys and values, shape (layers, 2, rows, kv heads, length, head size)."""

    def __init__(self, layers: int, rows: int, kv_heads: int, length: int, head_dim: int) -> None:
        """Allocate, zeroed."""
        self._held = torch.zeros(layers, 2, rows, kv_heads, length, head_dim)

    def lift(self, row: int, length: int) -> Tensor:
        """Return a copy of a row's first positions, (layers, 2, kv heads, length, head size)."""
        return self._held[:, :, row, :, :length].clone()

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """Copy the first `length` positions of `prefix` into a row."""
        self._held[:, :, row, :, :length] = prefix[:, :, :, :length]

    def attend(
        self, layer: int, q: Tensor, k: Tensor, v: Tensor, plan: Plan, scale: float | None = None
    ) -> Tensor:
        """Write the entries' keys and values, then let each entry attend to its row up to itself.

        Args:
            layer: Index of the layer.
            q: Shape (n, q heads, head size).
            k: Shape (n, kv heads, head size).
            v: As `k`.
            plan: The call.
            scale: Factor on the scores; None: head size ** -0.5.

        Returns:
            Shape of `q`.
        """
        cache = self._held[layer]
        cache[0][plan.rows, :, plan.positions] = k
        cache[1][plan.rows, :, plan.positions] = v
        out = torch.empty_like(q)
        grouped = q.shape[1] != k.shape[1]
        if len(plan.singles):
            dense = q.new_zeros(plan.width, *q.shape[1:])
            dense[plan.single_rows] = q[plan.singles]
            keys, values = cache[:, : plan.width, :, : plan.reach]
            y = functional.scaled_dot_product_attention(
                dense[:, :, None], keys, values, plan.mask, scale=scale, enable_gqa=grouped
            )
            out[plan.singles] = y[plan.single_rows, :, 0]
        if (chunks := plan.chunks) is not None:
            padded = q[chunks.gather].view(*chunks.shape, *q.shape[1:]).transpose(1, 2)
            keys, values = cache[:, chunks.rows, :, : chunks.reach]
            y = functional.scaled_dot_product_attention(
                padded, keys, values, chunks.mask, scale=scale, enable_gqa=grouped
            )
            out[chunks.flat] = y.transpose(1, 2).reshape(-1, *q.shape[1:])[chunks.scatter]
        return out
