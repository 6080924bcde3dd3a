"""Drawing tokens: one uniform per token, inverse of the cumulative distribution, exact top-p."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Draw:
    """Drawn tokens and what was known of them, each of shape (N,).

    Attributes:
        tokens: Token ids.
        logprob: Under softmax(logits), nats.
        logprob_sampled: Under the decoding that drew the token, nats.
        entropy: Of softmax(logits), nats.
    """

    tokens: Tensor
    logprob: Tensor
    logprob_sampled: Tensor
    entropy: Tensor


@torch.no_grad()
def draw(logits: Tensor, uniforms: Tensor, temperature: Tensor, top_p: Tensor) -> Draw:
    """Draw one token per row.

    Args:
        logits: Shape (N, V).
        uniforms: One number in [0, 1) per row, shape (N,).
        temperature: Per row, shape (N,); 0 takes the most likely token.
        top_p: Per row, shape (N,); the smallest set of most likely tokens that reaches this mass.
    """
    plain = logits.log_softmax(-1)
    probabilities = plain.exp()
    entropy = -(probabilities * plain).sum(-1)
    sampled, mass = plain, probabilities
    if bool((temperature != 1.0).any()):
        warm = temperature.clamp(min=1e-6)[:, None]
        sampled = torch.where(temperature[:, None] == 1.0, plain, (logits / warm).log_softmax(-1))
        mass = sampled.exp()
    if bool((top_p < 1.0).any()):
        mass = _nucleus(mass, top_p)
        sampled = (mass / mass.sum(-1, keepdim=True)).log()
    # In float64 the cumulative sum keeps tokens below 1e-7 reachable; the last entry is the total.
    cumulative = mass.double().cumsum(-1)
    target = uniforms.double() * cumulative[:, -1]
    tokens = torch.searchsorted(cumulative, target[:, None], right=True)[:, 0]
    greedy = temperature == 0.0
    if bool(greedy.any()):
        tokens = torch.where(greedy, logits.argmax(-1), tokens)
    index = tokens[:, None]
    logprob_sampled = sampled.gather(-1, index)[:, 0].masked_fill(greedy, 0.0)
    return Draw(tokens, plain.gather(-1, index)[:, 0], logprob_sampled, entropy)


def _nucleus(mass: Tensor, top_p: Tensor) -> Tensor:
    ordered, index = mass.sort(dim=-1, descending=True, stable=True)
    before = ordered.double().cumsum(-1) - ordered.double()
    keep = (before < top_p.double()[:, None]) | (top_p >= 1.0)[:, None]
    return torch.zeros_like(mass).scatter(-1, index, ordered * keep)
