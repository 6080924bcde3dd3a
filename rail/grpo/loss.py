"""The clipped surrogate and its KL term, per token.

Source: PPO-style ratio clipping as in GRPO (arXiv 2402.03300), a wider upper bound (DAPO, arXiv
2503.14476) and a bound on the loss of negative advantages (dual clip, arXiv 1912.09729).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from rail.config import UpdateConfig

LOG_RATIO_LIMIT = 20.0
"""Bound on log-ratios before exp; beyond it float32 overflows or carries no information. `our
choice`, as in common trainers."""


class TokenLoss(NamedTuple):
    """Per-token result of `surrogate`, both of shape (M,): the loss, and where it is cut off."""

    loss: Tensor
    clipped: Tensor


def surrogate(
    logprob: Tensor, old_logprob: Tensor, advantage: Tensor, config: UpdateConfig
) -> TokenLoss:
    """Return the policy loss of each token.

    With rho = exp(logprob - old_logprob), the log-ratio limited to +-20:
    L = -min(rho A, clip(rho, 1 - clip_low, 1 + clip_high) A), and for A < 0 at most -dual_clip A.

    Args:
        logprob: Under the current policy, shape (M,).
        old_logprob: Under the policy that the rollouts came from, shape (M,).
        advantage: Shape (M,).
        config: Reads `clip_low`, `clip_high`, `dual_clip`.

    Returns:
        Loss of shape (M,) and a bool mask of shape (M,), True where a bound is active, that is
        where the loss does not depend on the policy although the advantage is not 0.
    """
    log_ratio = logprob - old_logprob
    ratio = log_ratio.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
    bounded = ratio.clamp(1.0 - config.clip_low, 1.0 + config.clip_high)
    loss = -(ratio * advantage).minimum(bounded * advantage)
    negative = advantage < 0
    loss = torch.where(negative, loss.minimum(-config.dual_clip * advantage), loss)
    clipped = (
        ((advantage > 0) & (ratio > 1.0 + config.clip_high))
        | (negative & (ratio < 1.0 - config.clip_low))
        | (negative & (ratio > config.dual_clip))
    )
    return TokenLoss(loss, clipped)


def k3(logprob: Tensor, reference: Tensor) -> Tensor:
    """Return e^d - d - 1 with d = reference - logprob, an estimate of KL(policy, reference).

    It is never negative and its mean under the policy is the KL; the mean of its gradient is not
    the KL's gradient. d is limited to +-20.

    Args:
        logprob: Under the current policy, shape (M,).
        reference: Under the reference policy, shape (M,).

    Returns:
        Shape (M,), at least 0.
    """
    d = (reference - logprob).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return d.expm1() - d


def total(
    token: Tensor, kl: Tensor | None, coefficient: Tensor, importance: Tensor, config: UpdateConfig
) -> Tensor:
    """Sum the loss terms of one microbatch: sum c (u L + kl_weight k3), a scalar.

    Args:
        token: L, shape (M,).
        kl: k3, shape (M,), or None without a KL term.
        coefficient: c = w over the minibatch's denominator (see `batch.coefficients`), shape (M,).
        importance: u, shape (M,).
        config: Reads `kl_weight`.
    """
    terms = importance * token
    if kl is not None:
        terms = terms + config.kl_weight * kl
    return (coefficient * terms).sum()
