"""Cached decoding for Llama-shaped Hugging Face models (Llama, SmolLM2, Qwen2, Qwen3), torch only.

One call, `step`, advances any mix of rows: rows that decode a single token and rows that read a
whole chunk (a prompt or an observation). Keys and values of a prefix can be lifted out of a row and
laid into another, so a branch computes no prefix token again. The weights are repacked copies of
the module's; `load_weights` refreshes them after each update, `check` compares with the module's
own forward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rail.errors import PolicyError

SUPPORTED = ("llama", "qwen2", "qwen3")
TOLERANCE = 1e-4
"""Largest accepted gap to the module's own log-probabilities, nats."""


@dataclass(slots=True)
class _Layer:
    qkv: Tensor  # ((Hq + 2 Hk) * hd, D), input norm folded in
    qkv_bias: Tensor | None
    qk_norm: Tensor | None  # (Hq + Hk, hd)
    out: Tensor  # (D, Hq * hd)
    gate_up: Tensor  # (2 F, D), norm folded in
    down: Tensor  # (D, F)


@dataclass(frozen=True, slots=True)
class Chunk:
    """Tokens that a row reads in one call: ids at positions start, start + 1, ..."""

    row: int
    start: int
    tokens: Sequence[int]


class Decoder:
    """Rows of cached keys and values over one model.

    Attributes:
        rows: Number of rows.
        length: Positions per row.
        tokens_computed: Tokens that went through the layers so far (prefix reuse shows here).
    """

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Allocate the cache and pack the weights.

        Raises:
            PolicyError: If the architecture is not one of `SUPPORTED`.
        """
        config = model.config
        if config.model_type not in SUPPORTED:
            raise PolicyError(
                f"the sampler knows the architectures {', '.join(SUPPORTED)}, got "
                f"{config.model_type!r}: load a model of one of these"
            )
        self._model, self._config = model, config
        self.rows, self.length = rows, length
        self.tokens_computed = 0
        self._q_heads = config.num_attention_heads
        self._kv_heads = config.num_key_value_heads
        head_dim = getattr(config, "head_dim", None)
        self._head_dim = head_dim or config.hidden_size // self._q_heads
        self._eps = config.rms_norm_eps
        self._allocate()
        with torch.no_grad():
            positions = torch.arange(self.length)[None]
            cos, sin = model.model.rotary_emb(torch.zeros(1, 1, 1), positions)
        half = self._head_dim // 2
        self._cos, self._sin = cos[0, :, :half].clone(), sin[0, :, :half].clone()
        self.load_weights()

    def _allocate(self) -> None:
        layers = self._config.num_hidden_layers
        shape = (layers, 2, self.rows, self._kv_heads, self.length, self._head_dim)
        self._cache = torch.zeros(shape)
        self._steps = torch.arange(self.length)

    @torch.no_grad()
    def load_weights(self) -> None:
        """Take over the module's present weights."""
        base = self._model.model
        self._embed = base.embed_tokens.weight
        self._layers = [self._pack(layer) for layer in base.layers]
        self._norm = base.norm.weight
        self._head = self._model.lm_head.weight

    def _pack(self, layer: Any) -> _Layer:
        attention, mlp = layer.self_attn, layer.mlp
        projections = (attention.q_proj, attention.k_proj, attention.v_proj)
        biases = [p.bias for p in projections]
        has_bias = all(b is not None for b in biases)
        if attention.o_proj.bias is not None or mlp.down_proj.bias is not None:
            raise PolicyError("the sampler knows no bias in o_proj or down_proj")
        before, after = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
        norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
        return _Layer(
            qkv=torch.cat([p.weight for p in projections]) * before,
            qkv_bias=torch.cat(biases) if has_bias else None,
            qk_norm=self._stack(norms),
            out=attention.o_proj.weight,
            gate_up=torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]) * after,
            down=mlp.down_proj.weight,
        )

    def _stack(self, norms: list[Any]) -> Tensor | None:
        if any(norm is None for norm in norms):
            return None
        heads = (self._q_heads, self._kv_heads)
        return torch.cat([norm.weight.expand(n, -1) for norm, n in zip(norms, heads, strict=True)])

    def lift(self, row: int, length: int) -> Tensor:
        """Return a copy of a row's first positions, shape (layers, 2, heads, length, hd)."""
        return self._cache[:, :, row, :, :length].clone()

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """Copy the first `length` positions of `prefix` (see `lift`) into a row."""
        self._cache[:, :, row, :, :length] = prefix[:, :, :, :length]

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits (N, V) of final hidden states (N, D)."""
        return F.linear(hidden, self._head)

    @torch.no_grad()
    def step(
        self,
        rows: Sequence[int],
        tokens: Sequence[int],
        starts: Sequence[int],
        chunks: Sequence[Chunk],
    ) -> Tensor:
        """Advance single-token rows and chunk rows together.

        Args:
            rows: Rows that take one token each, n of them.
            tokens: Their tokens, n.
            starts: Position of each of these tokens, n.
            chunks: c rows that read several tokens each.

        Returns:
            Final-norm hidden states at each row's last token, shape (n + c, D), singles first.
        """
        plan = _Plan(rows, tokens, starts, chunks, self._steps)
        self.tokens_computed += len(plan.ids)
        cos, sin = self._cos[plan.positions][:, None], self._sin[plan.positions][:, None]
        x = self._embed[plan.ids]
        for cache, layer in zip(self._cache, self._layers, strict=True):
            x = x + F.linear(self._attend(x, cache, layer, plan, cos, sin), layer.out)
            gate, up = F.linear(_unit(x, self._eps), layer.gate_up).chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        return _unit(x[plan.last], self._eps) * self._norm

    def _attend(
        self, x: Tensor, cache: Tensor, layer: _Layer, plan: "_Plan", cos: Tensor, sin: Tensor
    ) -> Tensor:
        heads = self._q_heads + 2 * self._kv_heads
        qkv = F.linear(_unit(x, self._eps), layer.qkv, layer.qkv_bias).view(len(x), heads, -1)
        qk, v = qkv.split([self._q_heads + self._kv_heads, self._kv_heads], dim=1)
        if layer.qk_norm is not None:
            qk = _unit(qk, self._eps) * layer.qk_norm
        q, k = _rotate(qk, cos, sin).split([self._q_heads, self._kv_heads], dim=1)
        cache[0][plan.entry_rows, :, plan.positions] = k
        cache[1][plan.entry_rows, :, plan.positions] = v
        out = torch.empty_like(q)
        grouped = self._q_heads != self._kv_heads
        if plan.singles:
            dense = q.new_zeros(plan.width, self._q_heads, self._head_dim)
            dense[plan.rows] = q[: plan.singles]
            keys, values = (
                cache[0, : plan.width, :, : plan.reach],
                cache[1, : plan.width, :, : plan.reach],
            )
            y = F.scaled_dot_product_attention(
                dense[:, :, None], keys, values, plan.mask, enable_gqa=grouped
            )
            out[: plan.singles] = y[plan.rows, :, 0]
        if plan.chunk_rows is not None:
            padded = q[plan.gather].view(*plan.gather_shape, *q.shape[1:]).transpose(1, 2)
            keys, values = cache[:, plan.chunk_rows, :, : plan.chunk_reach]
            y = F.scaled_dot_product_attention(
                padded, keys, values, plan.chunk_mask, enable_gqa=grouped
            )
            out[plan.singles :] = y.transpose(1, 2).reshape(-1, *q.shape[1:])[plan.scatter]
        return out.view(len(x), -1)

    @torch.no_grad()
    def check(self, tokens: Sequence[int]) -> float:
        """Return the largest log-probability gap to the module's forward pass on `tokens`, nats.

        Row 0 is used. Raises:
            PolicyError: If the gap passes `TOLERANCE`.
        """
        split = max(1, len(tokens) // 2)
        hidden = [self.step([], [], [], [Chunk(0, 0, tokens[:split])])]
        hidden += [self.step([0], [tokens[p]], [p], []) for p in range(split, len(tokens))]
        ours = self.logits(torch.cat(hidden)).log_softmax(-1)
        theirs = self._model(torch.tensor([list(tokens)])).logits[0].float().log_softmax(-1)
        gap = float((ours - theirs[split - 1 :]).abs().max())
        if not gap < TOLERANCE:
            raise PolicyError(
                f"the sampler's log-probabilities differ from the model's own by {gap:.1e} nats, "
                f"more than {TOLERANCE:.0e}: the architecture has a part that the sampler does "
                "not know"
            )
        return gap


def _unit(x: Tensor, eps: float) -> Tensor:
    # Cheaper on small CPU tensors than F.rms_norm, whose kernel is a composite there.
    return x * (x.square().mean(-1, keepdim=True) + eps).rsqrt()


def _rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class _Plan:
    """Index tensors of one call, shared by all layers.

    Entries are the flat tokens of the call: n singles, then the chunks' tokens. Singles attend as
    one dense batch over rows 0..width-1 (a view of the cache, nothing gathered); chunks as a padded
    batch.
    """

    def __init__(
        self,
        rows: Sequence[int],
        tokens: Sequence[int],
        starts: Sequence[int],
        chunks: Sequence[Chunk],
        steps: Tensor,
    ) -> None:
        lengths = [len(c.tokens) for c in chunks]
        self.singles = len(rows)
        self.ids = torch.tensor([*tokens, *(t for c in chunks for t in c.tokens)])
        positions = [*starts]
        entry_rows = [*rows]
        for chunk, length in zip(chunks, lengths, strict=True):
            positions += range(chunk.start, chunk.start + length)
            entry_rows += [chunk.row] * length
        self.positions = torch.tensor(positions)
        self.entry_rows = torch.tensor(entry_rows)
        ends = self.singles - 1 + torch.tensor(lengths, dtype=torch.long).cumsum(0)
        self.last = torch.cat([torch.arange(self.singles), ends])
        if rows:
            self.rows = self.entry_rows[: self.singles]
            self.width, self.reach = max(rows) + 1, max(starts) + 1
            limit = torch.zeros(self.width, dtype=torch.long)
            limit[self.rows] = self.positions[: self.singles]
            self.mask = (steps[: self.reach] <= limit[:, None])[:, None, None]
        self.chunk_rows = torch.tensor([c.row for c in chunks]) if chunks else None
        if chunks:
            self._plan_chunks(chunks, lengths, steps)

    def _plan_chunks(self, chunks: Sequence[Chunk], lengths: list[int], steps: Tensor) -> None:
        longest = max(lengths)
        self.gather_shape = (len(chunks), longest)
        self.chunk_reach = max(c.start + n for c, n in zip(chunks, lengths, strict=True))
        size = torch.tensor(lengths)
        offset = self.singles + size.cumsum(0) - size
        column = torch.arange(longest)
        inside = column < size[:, None]
        # Padding repeats the chunk's last token: computed, never read.
        self.gather = (offset[:, None] + column.minimum(size[:, None] - 1)).view(-1)
        self.scatter = inside.view(-1).nonzero()[:, 0]
        start = torch.tensor([c.start for c in chunks])
        self.chunk_mask = (steps[: self.chunk_reach] <= (start[:, None] + column)[:, :, None])[
            :, None
        ]
