"""Sequences merged from the front, so that each distinct (prefix, token) is computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from rail.policy.chat import Ints
from rail.policy.tree_attention import TreeLayout


@dataclass(frozen=True, slots=True)
class PrefixTree:
    """Sequences merged from the front: one node per distinct (prefix, token).

    Attributes:
        tokens: Token of each node, shape (N,).
        position: Its place in its sequences, shape (N,).
        parent: Node before it, -1 at position 0, shape (N,).
        rows: Node at each position of each sequence, 0 after its end, shape (B, L).
        back: For each node, one flat position in `rows` that holds it, shape (N,).
    """

    tokens: Ints
    position: Ints
    parent: Ints
    rows: Ints
    back: Ints


def prefix_order(sequences: Sequence[Ints]) -> list[int]:
    """Return an order in which, for every prefix, the sequences that share it are neighbours."""
    # Bytes compare front to back: not in the order of the values, but equal prefixes stay together.
    return sorted(range(len(sequences)), key=lambda i: sequences[i].tobytes())


def prefix_tree(sequences: Sequence[Ints]) -> PrefixTree:
    """Merge token sequences, each of shape (T_i,), into a prefix tree."""
    length = max(len(s) for s in sequences)
    rows = np.zeros((len(sequences), length), dtype=np.int64)
    tokens, position, parent, back = [], [], [], []
    count, before = 0, -1
    for i in prefix_order(sequences):
        sequence, shared = sequences[i], 0
        if before >= 0:
            shared = _common_prefix(sequences[before], sequence)
            rows[i, :shared] = rows[before, :shared]
        fresh = np.arange(shared, len(sequence))
        nodes = np.arange(count, count + len(fresh))
        rows[i, shared : len(sequence)] = nodes
        above = nodes - 1
        if len(fresh):
            above[0] = rows[i, shared - 1] if shared else -1
        tokens.append(sequence[shared:])
        position.append(fresh)
        parent.append(above)
        back.append(i * length + fresh)
        count, before = count + len(fresh), i
    return PrefixTree(
        tokens=np.concatenate(tokens),
        position=np.concatenate(position),
        parent=np.concatenate(parent),
        rows=rows,
        back=np.concatenate(back),
    )


def layout(tree: PrefixTree, device: torch.device, native: bool) -> TreeLayout:
    """Return what attention needs to know of a tree; `native`: to the kernel."""
    positions = torch.from_numpy(tree.position.astype(np.int32)).to(device)
    length = tree.rows.shape[1]
    if native:
        return TreeLayout(positions, length)
    rows, back = (torch.from_numpy(x).to(device) for x in (tree.rows, tree.back))
    return TreeLayout(positions, length, rows, back)


def _common_prefix(left: Ints, right: Ints) -> int:
    length = min(len(left), len(right))
    different = np.flatnonzero(left[:length] != right[:length])
    return int(different[0]) if len(different) else length
