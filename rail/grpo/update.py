"""The one policy update of all methods: trees and advantages in, a better policy out."""

import copy
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rail.config import TrainConfig, UpdateConfig
from rail.errors import CheckpointError, DataError
from rail.grpo.advantages import group_advantages, is_mixed
from rail.grpo.batch import (
    Doubles,
    Row,
    coefficients,
    equalise_tasks,
    split_minibatches,
    training_rows,
)
from rail.grpo.forward import packing, plan_microbatches, token_logprobs
from rail.grpo.loss import k3, surrogate, total
from rail.grpo.optimizer import PolicyOptimizer
from rail.rollout.tree import Tree

LOGGER = logging.getLogger(__name__)
GAP_LIMIT = 1e-3
"""Sampler and trainer log-probabilities that differ by more are logged; `our choice`."""


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """Figures of one update.

    Attributes:
        loss: Mean over the minibatches that made an optimizer step; 0 when none did.
        grad_norm: Gradient norm before clipping, mean over the same; 0 when none did.
        clip_share: Tokens at an active bound (see `rail.grpo.loss.surrogate`), of the tokens in
            groups with a gradient; 0 without such tokens.
        kl: Mean k3 over the same tokens; 0 without a KL term.
        steps: Optimizer steps made.
        trained_tokens: Tokens with a loss term, copies counted, groups without gradient included.
        trained_leaves_per_task: Mean number of rollouts per group of the update.
        mixed_share_update: Share of the update's groups whose rewards differ.
        max_logprob_gap: Largest |trainer - sampler| log-probability before the first step, nats.
        mean_ratio: Mean trainer / sampler probability before the first step; 1 without tokens.
        advantages: For each tree, those of `tree.retained()`, in that order.
    """

    loss: float
    grad_norm: float
    clip_share: float
    kl: float
    steps: int
    trained_tokens: int
    trained_leaves_per_task: float
    mixed_share_update: float
    max_logprob_gap: float
    mean_ratio: float
    advantages: list[Doubles]


@dataclass(slots=True)
class _Tally:
    """What the microbatches of an update add up to; `first_*` before the first optimizer step."""

    losses: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    tokens: int = 0
    clipped: int = 0
    kl: float = 0.0
    first_tokens: int = 0
    first_gap: float = 0.0
    first_ratio: float = 0.0

    def count(self, log_ratio: Tensor, clipped: Tensor, kl: Tensor | None) -> None:
        """Add one microbatch, all of shape (M,)."""
        self.tokens += clipped.numel()
        self.clipped += int(clipped.sum())
        self.kl += 0.0 if kl is None else float(kl.sum())
        if not self.norms:
            self.first_tokens += log_ratio.numel()
            self.first_gap = max(self.first_gap, float(log_ratio.abs().max()))
            self.first_ratio += float(log_ratio.exp().sum())


class Updater:
    """Makes the optimizer steps of a run; deterministic, and blind to global random state."""

    def __init__(
        self, model: nn.Module, train: TrainConfig, update: UpdateConfig, native: bool = False
    ) -> None:
        """Take over the training of `model`, in place.

        The model is put in evaluation mode: dropout would make the trainer's probabilities differ
        from the sampler's. With a KL term, the reference policy is `model` as it is now, or the one
        in a restored state.

        Args:
            model: A Hugging Face causal LM.
            train: Reads the optimizer's settings.
            update: The update's settings.
            native: Let the compiled kernel attend along trees; it must know the architecture.
        """
        self._config, self._native = update, native
        self._reference: nn.Module | None = None
        model.eval()
        if update.kl_weight > 0:
            self._reference = copy.deepcopy(model).requires_grad_(False)
        self._optimizer = PolicyOptimizer(model, train, update.max_grad_norm)

    def step(
        self,
        trees: Sequence[Tree],
        advantages: Sequence[Doubles | None],
        rng: np.random.Generator,
        weights: Sequence[Doubles | None] | None = None,
    ) -> UpdateResult:
        """Update the policy on one step's groups.

        Whole groups are dealt to `minibatches` minibatches (`split_minibatches`), each of which
        makes one optimizer step. Groups in which every advantage is 0 count in the denominators but
        are not run, unless there is a KL term. A minibatch without any gradient makes no step,
        since AdamW would move the weights by momentum alone: with one group that has a gradient
        there is one step, with none there is none.

        Args:
            trees: The groups; trees without a retained rollout are passed over.
            advantages: For each tree, those of `tree.retained()`, or None for the group baseline.
            rng: The stream of this step's minibatch order.
            weights: For each tree, tree weights of `tree.retained()`; None: all 1.

        Returns:
            Figures of the update.

        Raises:
            DataError: Arguments of different lengths, or rows that cannot be trained.
            PolicyError: The gradient is not finite.
        """
        weights = [None] * len(trees) if weights is None else weights
        if not len(trees) == len(advantages) == len(weights):
            raise DataError(
                f"policy update: got {len(trees)} trees, {len(advantages)} advantages and "
                f"{len(weights)} weights, expected one each per tree"
            )
        used, rows = self._rows(trees, advantages, weights)
        groups = [t.rewards(t.retained()) for t in trees if t.retained()]
        tally = _Tally()
        temper = self._config.logp_temperature != 1.0
        self._train(self._rescore(rows) if temper else rows, rng, tally)
        mean_ratio = tally.first_ratio / tally.first_tokens if tally.first_tokens else 1.0
        if tally.first_gap > GAP_LIMIT:
            LOGGER.warning(
                "sampler and trainer log-probabilities differ by up to %.2e nats (mean ratio %.6f)",
                tally.first_gap,
                mean_ratio,
            )
        return UpdateResult(
            loss=_mean(tally.losses),
            grad_norm=_mean(tally.norms),
            clip_share=tally.clipped / max(tally.tokens, 1),
            kl=tally.kl / max(tally.tokens, 1),
            steps=len(tally.norms),
            trained_tokens=sum(int(row.trained.sum()) for row in rows),
            trained_leaves_per_task=_mean([len(group) for group in groups]),
            mixed_share_update=_mean([is_mixed(group) for group in groups]),
            max_logprob_gap=tally.first_gap,
            mean_ratio=mean_ratio,
            advantages=used,
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the optimizer's state and the KL reference; the weights are the caller's."""
        reference = None if self._reference is None else self._reference.state_dict()
        return {"optimizer": self._optimizer.state_dict(), "reference": reference}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`, so that with equal weights every later step gives equal bits.

        Raises:
            CheckpointError: The state has a KL reference and this update none, or the reverse.
        """
        if (state["reference"] is None) != (self._reference is None):
            raise CheckpointError(
                "update state: it was saved "
                f"{'without' if state['reference'] is None else 'with'} a KL reference, but "
                f"update.kl_weight is {self._config.kl_weight}; resume with the saved configuration"
            )
        self._optimizer.load_state_dict(state["optimizer"])
        if self._reference is not None:
            self._reference.load_state_dict(state["reference"])

    def _rows(
        self,
        trees: Sequence[Tree],
        advantages: Sequence[Doubles | None],
        weights: Sequence[Doubles | None],
    ) -> tuple[list[Doubles], list[Row]]:
        """Return the advantages of each tree, and the rows of all trees in order."""
        config, used, rows = self._config, [], []
        for task, (tree, given, mass) in enumerate(zip(trees, advantages, weights, strict=True)):
            rollouts = tree.retained()
            if given is None:
                given = group_advantages(tree.rewards(rollouts), config, mass)
            used.append(np.asarray(given, dtype=np.float64))
            rows += training_rows(task, tree, rollouts, used[-1], config, mass)
        return used, equalise_tasks(rows, config) if config.task_equal else rows

    def _train(self, rows: list[Row], rng: np.random.Generator, tally: _Tally) -> None:
        """Make the optimizer steps."""
        config, keep_all = self._config, self._config.kl_weight > 0
        for minibatch in split_minibatches(rows, config.minibatches, keep_all, rng):
            members = [rows[i] for i in minibatch]
            scaled = zip(members, coefficients(members, config), strict=True)
            run = [(row, scale) for row, scale in scaled if keep_all or row.live]
            if not run:
                continue
            loss = 0.0
            for chunk in plan_microbatches([row for row, _ in run], config):
                loss += self._backward([run[k] for k in chunk], tally)
            tally.losses.append(loss)
            tally.norms.append(self._optimizer.step())

    def _backward(self, part: Sequence[tuple[Row, Doubles]], tally: _Tally) -> float:
        """Add the gradient of one microbatch of rows and coefficients; return its loss."""
        config, rows = self._config, [row for row, _ in part]
        model = self._optimizer.model
        device = next(model.parameters()).device

        def flat(arrays: Sequence[NDArray[np.floating]]) -> Tensor:
            kept = [a[row.trained] for a, row in zip(arrays, rows, strict=True)]
            return torch.from_numpy(np.concatenate(kept).astype(np.float32)).to(device)

        logprob = self._score(model, rows)
        old = flat([row.old_logprob for row in rows])
        loss, clipped = surrogate(logprob, old, flat([row.advantage for row in rows]), config)
        kl = None
        if self._reference is not None:
            with torch.no_grad():
                reference = self._score(self._reference, rows)
            kl = k3(logprob, reference)
        scalar = total(
            loss, kl, flat([c for _, c in part]), flat([row.importance for row in rows]), config
        )
        self._optimizer.backward(scalar)
        tally.count(logprob.detach() - old, clipped, None if kl is None else kl.detach())
        return float(scalar.detach())

    def _score(self, model: nn.Module, rows: Sequence[Row]) -> Tensor:
        with packing(model, self._config):
            return token_logprobs(model, rows, self._config, native=self._native).logprob

    def _rescore(self, rows: list[Row]) -> list[Row]:
        """Replace the sampler's T = 1 log-probabilities by the policy's at `logp_temperature`."""
        scored = list(rows)
        for chunk in plan_microbatches(rows, self._config):
            part = [rows[i] for i in chunk]
            with torch.no_grad():
                values = self._score(self._optimizer.model, part).cpu().numpy()
            ends = np.cumsum([row.trained.sum() for row in part])[:-1]
            for i, row, new in zip(chunk, part, np.split(values, ends), strict=True):
                old = np.zeros_like(row.old_logprob)
                old[row.trained] = new
                scored[i] = replace(row, old_logprob=old)
        return scored


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0
