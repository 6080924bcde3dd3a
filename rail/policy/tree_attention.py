"""Attention for sequences packed as a prefix tree, plugged into an unmodified Hugging Face model.

Token-wise layers see each distinct (prefix, token) once, as one flat sequence of nodes. Only inside
attention are queries, keys and values laid out as the full sequences, since a node attends to
exactly the nodes on its path. Exact: what a node computes depends on its prefix alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from rail.errors import PolicyError

NAME = "rail_tree"


class TreeLayout(NamedTuple):
    """How N nodes form B sequences.

    Attributes:
        rows: Node at each position of each sequence, int64, shape (B, L); 0 after a sequence's end,
            where causal attention keeps it from mattering.
        back: For each node, one flat position in `rows` that holds it, int64, shape (N,).
    """

    rows: Tensor
    back: Tensor


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: TreeLayout,
    scaling: float | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attend along the paths of a tree.

    Args:
        module: The attention layer; not used.
        query: Shape (1, H, N, D).
        key: Shape (1, G, N, D), G dividing H (grouped queries).
        value: Shape (1, G, N, D).
        attention_mask: None; the layout says who attends to whom.
        tree: The layout, handed through by the model's keyword arguments.
        scaling: Factor on the scores; None: D ** -0.5.
        sliding_window: Refused where shorter than the longest sequence.
        softcap: Refused.

    Returns:
        Output of shape (1, N, H, D), and None in the place of attention weights.

    Raises:
        PolicyError: The layer asks for something that is not plain causal attention.
    """
    batch, length = tree.rows.shape
    if attention_mask is not None or softcap is not None or 0 < (sliding_window or 0) < length:
        raise PolicyError(
            f"tree packing: {type(module).__name__} wants a mask, a soft cap or a window "
            f"shorter than {length} tokens; set update.packing to `padded`"
        )
    flat = tree.rows.reshape(-1)

    def lay_out(states: Tensor) -> Tensor:
        heads, width = states.shape[1], states.shape[3]
        return states[0].index_select(1, flat).view(heads, batch, length, width).transpose(0, 1)

    output = functional.scaled_dot_product_attention(
        lay_out(query),
        lay_out(key),
        lay_out(value),
        is_causal=True,
        scale=scaling,
        enable_gqa=query.shape[1] != key.shape[1],
    )
    heads, width = output.shape[1], output.shape[3]
    nodes = output.transpose(1, 2).reshape(batch * length, heads, width)
    return nodes.index_select(0, tree.back)[None], None


@contextmanager
def tree_attention(model: nn.Module) -> Iterator[None]:
    """Let `model` attend along trees within the block; calls then need a `tree` keyword.

    Raises:
        PolicyError: The model does not take its attention from `transformers.AttentionInterface`.
    """
    from transformers import AttentionInterface, PreTrainedModel  # takes about a second

    AttentionInterface.register(NAME, attend)
    if not isinstance(model, PreTrainedModel):
        raise PolicyError(
            f"tree packing: got a {type(model).__name__}, expected a transformers.PreTrainedModel; "
            "set update.packing to `padded`"
        )
    before = model.config._attn_implementation or "eager"
    model.set_attn_implementation(NAME)
    if model.config._attn_implementation != NAME:
        raise PolicyError(
            f"tree packing: {type(model).__name__} has an attention of its own that cannot be "
            "replaced; set update.packing to `padded`"
        )
    try:
        yield
    finally:
        model.set_attn_implementation(before)
