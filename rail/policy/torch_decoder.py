"""Backend `torch`: cached decoding with repacked weights, for Llama-shaped models."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from rail.policy.decoder import Decoder, Entries
from rail.policy.row_cache import Plan, RowCache
from rail.policy.weights import Layer, Shape, repack, rotations


class TorchDecoder(Decoder):
    """See `Decoder`. Neighbours change a row's log-probabilities by rounding only, below 1e-5."""

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Allocate the cache and repack the weights.

        Raises:
            PolicyError: If `rail.policy.weights.repack` does not know the architecture.
        """
        super().__init__(model, rows, length)
        self.load_weights()
        self._shape = shape = Shape.of(model.config)
        self._eps: float = model.config.rms_norm_eps
        layers = model.config.num_hidden_layers
        self._cache = RowCache(layers, rows, shape.kv_heads, length, shape.head_dim)
        self._cos, self._sin = rotations(model, length)

    def load_weights(self) -> None:
        """Repack the module's present weights."""
        self._weights = repack(self._model)

    def lift(self, row: int, length: int) -> Tensor:
        """See `RowCache.lift`."""
        return self._cache.lift(row, length)

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """See `RowCache.lay`."""
        self._cache.lay(row, prefix, length)

    def logits(self, states: Tensor) -> Tensor:
        """Return logits (N, V) of final-norm states (N, D)."""
        return functional.linear(states, self._weights.head)

    @torch.no_grad()
    def step(self, entries: Entries) -> Tensor:
        """Run all entries; return the final-norm states at the end of each run, shape (m, D)."""
        plan = Plan(entries)
        self.tokens_computed += len(plan.tokens)
        cos, sin = self._cos[plan.positions][:, None], self._sin[plan.positions][:, None]
        x = self._weights.embed[plan.tokens]
        for index, layer in enumerate(self._weights.layers):
            q, k, v = self._heads(x, layer, cos, sin)
            mixed = self._cache.attend(index, q, k, v, plan)
            x = x + functional.linear(mixed.reshape(len(x), -1), layer.out)
            gate, up = functional.linear(_unit(x, self._eps), layer.gate_up).chunk(2, dim=-1)
            x = x + functional.linear(functional.silu(gate) * up, layer.down)
        return _unit(x[plan.last], self._eps) * self._weights.norm

    def _heads(self, x: Tensor, layer: Layer, cos: Tensor, sin: Tensor) -> tuple[Tensor, ...]:
        queries, keys = self._shape.q_heads, self._shape.kv_heads
        qkv = functional.linear(_unit(x, self._eps), layer.qkv, layer.qkv_bias)
        qk, v = qkv.view(len(x), queries + 2 * keys, -1).split([queries + keys, keys], dim=1)
        if layer.qk_norm is not None:
            qk = _unit(qk, self._eps) * layer.qk_norm
        q, k = _rotate(qk, cos, sin).split([queries, keys], dim=1)
        return q, k, v


def _unit(x: Tensor, eps: float) -> Tensor:
    # Cheaper on small CPU tensors than functional.rms_norm, whose kernel is a composite there.
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
