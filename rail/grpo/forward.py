"""Log-probabilities of given tokens under the current policy, in two layouts that agree.

`padded` runs every sequence in full. `tree` runs each distinct (prefix, token) of a microbatch
once: the rollouts of a group share their prompt, branches share their prefix, and siblings often
share whole turns, so this is a third to a half of the tokens. `padded` is the oracle that tests
hold `tree` against.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from rail.config import UpdateConfig
from rail.grpo.batch import Row
from rail.policy.prefix_tree import layout, prefix_order, prefix_tree
from rail.policy.tree_attention import tree_attention
from rail.rollout.tree import Ints


class TokenLogprobs(NamedTuple):
    """Figures of the M trained tokens of some rows, row after row, ascending positions.

    Attributes:
        logprob: Log-probability under softmax(logits / logp_temperature), nats, shape (M,).
        entropy: Entropy of that softmax, nats, detached, shape (M,); None where not asked for.
    """

    logprob: Tensor
    entropy: Tensor | None


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
    model: nn.Module,
    rows: Sequence[Row],
    config: UpdateConfig,
    with_entropy: bool = False,
    native: bool = False,
) -> TokenLogprobs:
    """Score the trained tokens of one microbatch with one forward pass.

    Args:
        model: A Hugging Face causal LM, inside `packing(model, config)`.
        rows: The microbatch.
        config: Reads `packing` and `logp_temperature`.
        with_entropy: Return entropies too.
        native: Under `tree`, attention by the compiled kernel, which must be able to run `model`.

    Returns:
        Figures of the trained tokens of all rows, M in all.
    """
    if config.packing == "padded":
        return _padded(model, rows, config.logp_temperature, with_entropy)
    return _tree(model, rows, config.logp_temperature, with_entropy, native)


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
    model: nn.Module, rows: Sequence[Row], temperature: float, with_entropy: bool, native: bool
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
        tree=layout(tree, device, native),
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
