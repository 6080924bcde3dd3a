"""Supervised training of the embedded policy on encoded dialogues, on one CPU thread."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rail.config import WarmStartConfig
from rail.policy.chat import Bools, Ints
from rail.policy.muon import Muon
from rail.policy.prefix_tree import PrefixTree, layout, prefix_tree
from rail.policy.tree_attention import tree_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MICROBATCH_TOKENS = 1500
"""Padded tokens per forward pass (rows x longest); larger ones leave the cache (`our choice`,
measured)."""

ADAM_BETAS = (0.9, 0.95)
GRADIENT_NORM = 1.0
LOG_SECONDS = 10.0

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Dialogues as token ids.

    Attributes:
        ids: One array per dialogue, shape (T,).
        action: True on tokens of actions, shapes as `ids`.
        dropped: Dialogues left out because they exceed the policy's longest episode.
    """

    ids: list[Ints]
    action: list[Bools]
    dropped: int


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread: small matrices gain nothing from more, and sums keep their order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@one_thread()
def train(
    model: "PreTrainedModel",
    data: Encoded,
    order: Ints,
    config: WarmStartConfig,
    log: Log,
    native: bool = False,
) -> tuple[list[tuple[int, float]], int]:
    """Fit the model to the actions of `data`.

    Args:
        model: Changed in place.
        data: Encoded dialogues.
        order: Index of the dialogue at each place, shape (steps, batch).
        config: Learning rates and their schedule.
        log: Gets a line about every ten seconds.
        native: Let the compiled kernel attend.

    Returns:
        Mean loss in nats per action token as (step, loss) over each span of ten steps, and the
        number of tokens read, padding left out.
    """
    matrices, others = _split_parameters(model)
    optimizers: list[torch.optim.Optimizer] = [
        Muon(matrices, lr=config.muon_lr),
        torch.optim.AdamW(
            others, lr=config.adam_lr, betas=ADAM_BETAS, weight_decay=0.0, fused=True
        ),
    ]
    rates = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    model.train()
    curve: list[tuple[int, float]] = []
    recent: list[float] = []
    tokens = 0
    progress = _Progress(len(order), log)
    for step, chosen in enumerate(order):
        factor = _schedule(step, len(order), config)
        for optimizer, rate in zip(optimizers, rates, strict=True):
            optimizer.param_groups[0]["lr"] = rate * factor
        with tree_attention(model):
            recent.append(_accumulate(model, data, chosen, native))
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        tokens += sum(len(data.ids[i]) for i in chosen)
        if (step + 1) % 10 == 0 or step + 1 == len(order):
            curve.append((step + 1, round(float(np.mean(recent)), 5)))
            recent.clear()
            progress.say(step + 1, curve[-1][1], tokens)
    return curve, tokens


def logits_at(model: "PreTrainedModel", tree: PrefixTree, keep: Ints, native: bool) -> Tensor:
    """Return the logits at some nodes of packed dialogues.

    The embedded policy's own modules in their own order, except that the last feed-forward block
    and the output layer only see the nodes asked for, which saves about a tenth of the time.

    Args:
        model: A model of `rail.policy.tiny` (Qwen3 modules), inside `tree_attention(model)`.
        tree: The dialogues, N nodes.
        keep: K of the nodes.
        native: Let the compiled kernel attend.

    Returns:
        Shape (K, vocabulary).
    """
    decoder: Any = model.get_decoder()
    hidden = decoder.embed_tokens(torch.from_numpy(tree.tokens)[None])
    rotary = decoder.rotary_emb(hidden, torch.from_numpy(tree.position)[None])
    given = {
        "position_embeddings": rotary,
        "attention_mask": None,
        "tree": layout(tree, hidden.device, native),
    }
    for layer in decoder.layers[:-1]:
        hidden = layer(hidden, **given)
    last = decoder.layers[-1]
    attended, _ = last.self_attn(last.input_layernorm(hidden), **given)
    hidden = (hidden + attended)[0, torch.from_numpy(keep)]
    hidden = hidden + last.mlp(last.post_attention_layernorm(hidden))
    head: Any = model.get_output_embeddings()
    return head(decoder.norm(hidden))


class _Progress:
    """Says where training stands, at most once in LOG_SECONDS."""

    def __init__(self, steps: int, log: Log) -> None:
        self._steps = steps
        self._log = log
        self._began = self._said = time.perf_counter()

    def say(self, done: int, loss: float, tokens: int) -> None:
        now = time.perf_counter()
        if now - self._said < LOG_SECONDS:
            return
        self._said = now
        spent = now - self._began
        self._log(
            f"step {done}/{self._steps}  loss {loss:.3f}  {tokens / spent:.0f} tokens/s"
            f"  {spent / done * (self._steps - done):.0f} s left"
        )


def _split_parameters(model: "PreTrainedModel") -> tuple[list[Tensor], list[Tensor]]:
    embedding = model.get_input_embeddings().weight
    matrices, others = [], []
    for parameter in model.parameters():
        inner = parameter.ndim == 2 and parameter is not embedding
        (matrices if inner else others).append(parameter)
    return matrices, others


def _schedule(step: int, steps: int, config: WarmStartConfig) -> float:
    """Return the factor of the learning rate: linear warm-up, plateau, linear decay to zero."""
    warm = min(1.0, (step + 1) / max(1, config.warmup))
    left = (steps - step) / max(1.0, config.decay_share * steps)
    return min(warm, 1.0, left)


def _accumulate(model: "PreTrainedModel", data: Encoded, chosen: Ints, native: bool) -> float:
    """Add the gradient of a step's mean loss to the parameters; return the loss, nats per token."""
    total = sum(int(data.action[i].sum()) for i in chosen)
    loss_sum = 0.0
    for rows in _microbatches(data, chosen):
        tree = prefix_tree([data.ids[i] for i in rows])
        places = [np.flatnonzero(data.action[i][1:]) for i in rows]  # before each action token
        before = np.concatenate([tree.rows[k, at] for k, at in enumerate(places)])
        targets = np.concatenate([data.ids[i][at + 1] for i, at in zip(rows, places, strict=True)])
        nodes, expand = np.unique(before, return_inverse=True)
        logits = logits_at(model, tree, nodes, native)[torch.from_numpy(expand)]
        target = torch.from_numpy(targets)
        loss = functional.cross_entropy(logits, target, reduction="sum") / total
        loss.backward()
        loss_sum += loss.item()
    return loss_sum


def _microbatches(data: Encoded, chosen: Ints) -> Iterator[list[int]]:
    """Cut a step, sorted by length so that little is padded, into parts of MICROBATCH_TOKENS."""
    part: list[int] = []
    for row in sorted(chosen.tolist(), key=lambda i: (len(data.ids[i]), i)):
        if part and (len(part) + 1) * len(data.ids[row]) > MICROBATCH_TOKENS:
            yield part
            part = []
        part.append(row)
    yield part
