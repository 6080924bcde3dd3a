"""Log-probabilities of given tokens under the current policy, in two layouts that agree.

`padded` runs every sequence in full. `tree` runs each distinct (prefix, token) of a microbatch
once: the rollouts of a group share their prompt, branches share their prefix, and siblings often
share whole turns, so this is a third to a half of the tokens. `padded` is the oracle that tests
hold `tree` against.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rail.config import UpdateConfig
from rail.grpo.batch import Row
from rail.policy.tree_attention import TreeLayout, tree_attention
from rail.rollout.tree import Ints


class TokenLogprobs(NamedTuple):
    """Figures of the M trained tokens of some rows, row after row, ascending positions.

    Attributes:
        logprob: Log-probability under softmax(logits / logp_temperature), nats, shape (M,).
        entropy: Entropy of that softmax, nats, detached, shape (M,); None where not asked for.
    """

    logprob: Tensor
    entropy: Tensor | None


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


def _common_prefix(left: Ints, right: Ints) -> int:
    length = min(len(left), len(right))
    different = np.flatnonzero(left[:length] != right[:length])
    return int(different[0]) if len(different) else length


def plan_microbatches(rows: Sequence[Row], config: UpdateConfig) -> list[list[int]]:
    """Cut rows into microbatches of at most `microbatch_tokens` padded tokens (rows x longest).

    `padded` sorts by length, so that little is padding; `tree` keeps a group together where it fits
    and orders a group that does not by prefix, so that each part still shares as much as it can. A
    single row longer than the limit is a microbatch of its own.

    Returns:
        Indices into `rows`; every row occurs once.
    """
    lengths = [len(row.tokens) for row in rows]
    if config.packing == "padded":
        pieces = [[i] for i in sorted(range(len(rows)), key=lengths.__getitem__)]
    else:
        tasks: dict[int, list[int]] = {}
        for i, row in enumerate(rows):
            tasks.setdefault(row.task, []).append(i)
        pieces = []
        for members in tasks.values():
            if len(members) * max(lengths[i] for i in members) <= config.microbatch_tokens:
                pieces.append(members)
            else:
                order = prefix_order([rows[i].tokens for i in members])
                pieces += [[members[k]] for k in order]
    microbatches: list[list[int]] = []
    for piece in pieces:
        joined = (microbatches[-1] if microbatches else []) + piece
        padded = len(joined) * max(lengths[i] for i in joined)
        if microbatches and padded <= config.microbatch_tokens:
            microbatches[-1] = joined
        else:
            microbatches.append(piece)
    return microbatches


def packing(model: nn.Module, config: UpdateConfig) -> AbstractContextManager[None]:
    """Return the block within which `token_logprobs` may be called on `model`."""
    return tree_attention(model) if config.packing == "tree" else nullcontext()


def token_logprobs(
    model: nn.Module, rows: Sequence[Row], config: UpdateConfig, with_entropy: bool = False
) -> TokenLogprobs:
    """Score the trained tokens of one microbatch with one forward pass.

    Args:
        model: A Hugging Face causal LM, inside `packing(model, config)`.
        rows: The microbatch.
        config: Reads `packing` and `logp_temperature`.
        with_entropy: Return entropies too.

    Returns:
        Figures of the trained tokens of all rows, M in all.
    """
    run = _tree if config.packing == "tree" else _padded
    return run(model, rows, config.logp_temperature, with_entropy)


def _padded(
    model: nn.Module, rows: Sequence[Row], temperature: float, with_entropy: bool
) -> TokenLogprobs:
    device = next(model.parameters()).device
    shape = (len(rows), max(len(row.tokens) for row in rows))
    tokens, trained = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.bool_)
    for i, row in enumerate(rows):
        tokens[i, : len(row.tokens)] = row.tokens
        trained[i, : len(row.tokens)] = row.trained
    ids = torch.from_numpy(tokens).to(device)
    # Padding is on the right: causal attention hides it, no mask needed.
    logits = model(input_ids=ids, use_cache=False).logits
    row_index, column = (torch.from_numpy(x).to(device) for x in trained.nonzero())
    scores = (logits[row_index, column - 1].float() / temperature).log_softmax(-1)
    logprob = scores.gather(1, ids[row_index, column][:, None])[:, 0]
    return TokenLogprobs(logprob, _entropy(scores) if with_entropy else None)


def _tree(
    model: nn.Module, rows: Sequence[Row], temperature: float, with_entropy: bool
) -> TokenLogprobs:
    device = next(model.parameters()).device
    tree = prefix_tree([row.tokens for row in rows])

    def put(array: Ints) -> Tensor:
        return torch.from_numpy(array).to(device)

    wanted = np.concatenate(
        [tree.rows[i, : len(r.tokens)][r.trained] for i, r in enumerate(rows)]
    )  # (M,) node of each trained token
    nodes, expand = np.unique(wanted, return_inverse=True)  # each node is scored once, (K,)
    above, scored_by = np.unique(tree.parent[nodes], return_inverse=True)  # logits needed, (P,)
    logits = model(
        input_ids=put(tree.tokens)[None],
        position_ids=put(tree.position)[None],
        logits_to_keep=put(above),
        tree=TreeLayout(put(tree.rows), put(tree.back)),
        use_cache=False,
    ).logits[0]
    scores = (logits.float() / temperature).log_softmax(-1)  # (P, V)
    by_node = scores[put(scored_by), put(tree.tokens[nodes])]  # (K,)
    entropy = _entropy(scores)[put(scored_by[expand])] if with_entropy else None
    return TokenLogprobs(by_node.index_select(0, put(expand)), entropy)


def _entropy(scores: Tensor) -> Tensor:
    """Return the entropy of log-probabilities, shape (..., V) -> (...), without gradient."""
    scores = scores.detach()
    return -(scores.exp() * scores).sum(-1)
