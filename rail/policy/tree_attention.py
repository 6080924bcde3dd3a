"""Attention for sequences packed as a prefix tree, plugged into an unmodified Hugging Face model.

Token-wise layers see each distinct (prefix, token) once, as one flat sequence of nodes. A node
attends to exactly the nodes on its path: either the compiled kernel walks the tree, or queries,
keys and values are laid out as the full sequences inside attention. Exact: what a node computes
depends on its prefix alone.
"""

from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from rail.errors import PolicyError
from rail.policy.attention import plain_causal, replaced_attention
from rail.policy.kernel.tree import walk

_ADVICE = "set update.packing to `padded`"


class TreeLayout(NamedTuple):
    """How N nodes form B sequences.

    Attributes:
        positions: Place of each node in its sequences, int32, shape (N,); nodes come depth first.
        length: Longest sequence.
        rows: Node at each position of each sequence, int64, shape (B, L); 0 after a sequence's end,
            where causal attention keeps it from mattering. None: let the kernel walk the tree.
        back: For each node, one flat position in `rows` that holds it, int64, shape (N,), or None.
    """

    positions: Tensor
    length: int
    rows: Tensor | None = None
    back: Tensor | None = None


def tree_attention(model: nn.Module) -> AbstractContextManager[None]:
    """Let `model` attend along trees within the block; calls then need a `tree` keyword.

    Raises:
        PolicyError: The model does not take its attention from `transformers.AttentionInterface`.
    """
    return replaced_attention(model, "rail_tree", attend, _ADVICE)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    tree: TreeLayout | None = None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """Attend along the paths of a tree.

    Args:
        module: The attention layer, for messages.
        query: Shape (1, H, N, D).
        key: Shape (1, G, N, D), G dividing H (grouped queries).
        value: Shape (1, G, N, D).
        attention_mask: None; the layout says who attends to whom.
        tree: The layout, handed through by the model's keyword arguments.
        scaling: Factor on the scores; None: D ** -0.5.
        options: See `plain_causal`.

    Returns:
        Output of shape (1, N, H, D), and None in the place of attention weights.

    Raises:
        PolicyError: The layer asks for something that is not plain causal attention.
    """
    if tree is None:
        raise PolicyError(f"{type(module).__name__} does not hand its options on; {_ADVICE}")
    plain_causal(module, attention_mask, tree.length, options, _ADVICE)
    if tree.rows is None or tree.back is None:
        scale = query.shape[-1] ** -0.5 if scaling is None else scaling
        return walk(query, key, value, tree.positions, tree.length, scale), None
    batch, length = tree.rows.shape
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
