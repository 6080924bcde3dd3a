"""Backend `hf`: the unmodified Hugging Face module over the row cache; oracle and last resort.

Entries go through the module as one flat sequence. Only its attention is replaced, through
`transformers.AttentionInterface`, by one that keeps keys and values per row. So any architecture
that takes its attention from there works, at the module's own speed.
"""

from typing import Any

import torch
from torch import Tensor, nn

from rail.errors import PolicyError
from rail.policy.attention import plain_causal, replaced_attention
from rail.policy.decoder import Decoder, Entries
from rail.policy.row_cache import Plan, RowCache
from rail.policy.weights import Shape

_ADVICE = "use a model with plain causal attention"


class HfDecoder(Decoder):
    """See `Decoder`. Neighbours change a row's log-probabilities by rounding only, below 1e-5."""

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Allocate the cache; the module's own weights are read at each call."""
        super().__init__(model, rows, length)
        shape = Shape.of(model.config)
        layers = model.config.num_hidden_layers
        self._cache = RowCache(layers, rows, shape.kv_heads, length, shape.head_dim)

    def load_weights(self) -> None:
        """Do nothing: there is no copy of the weights."""

    def lift(self, row: int, length: int) -> Tensor:
        """See `RowCache.lift`."""
        return self._cache.lift(row, length)

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """See `RowCache.lay`."""
        self._cache.lay(row, prefix, length)

    @torch.no_grad()
    def logits(self, states: Tensor) -> Tensor:
        """Return logits (N, V) of final-norm states (N, D)."""
        return self._model.get_output_embeddings()(states).float()

    @torch.no_grad()
    def step(self, entries: Entries) -> Tensor:
        """Run all entries; return the final-norm states at the end of each run, shape (m, D)."""
        plan = Plan(entries)
        self.tokens_computed += len(plan.tokens)
        with replaced_attention(self._model, "rail_rows", _attend, _ADVICE):
            states = self._model.base_model(
                input_ids=plan.tokens[None],
                position_ids=plan.positions[None],
                use_cache=False,
                rail_rows=(self._cache, plan),
            ).last_hidden_state[0]
        return states[plan.last]


def _attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    rail_rows: tuple[RowCache, Plan] | None = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend over the row cache; query (1, H, n, hd), key and value (1, G, n, hd)."""
    layer = getattr(module, "layer_idx", None)
    if rail_rows is None or layer is None:
        raise PolicyError(f"{type(module).__name__} does not hand its options on; {_ADVICE}")
    cache, plan = rail_rows
    plain_causal(module, attention_mask, int(plan.positions.max()) + 1, options, _ADVICE)
    q, k, v = (states[0].transpose(0, 1) for states in (query, key, value))
    return cache.attend(int(layer), q, k, v, plan, scaling)[None], None
