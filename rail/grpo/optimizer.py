"""AdamW through `accelerate`: gradients, clipping, steps, exact state."""

import copy
from typing import Any

import torch
from torch import Tensor, nn

from rail.config import TrainConfig
from rail.errors import ConfigError, PolicyError


class PolicyOptimizer:
    """Owns the optimizer of one policy; neither reads nor sets any random state.

    Attributes:
        model: The policy as `accelerate` prepared it; call this one.
    """

    def __init__(self, model: nn.Module, config: TrainConfig, max_grad_norm: float) -> None:
        """Prepare `model`, on the device where it is.

        Args:
            model: The policy.
            config: Reads `learning_rate`, `betas`, `weight_decay`.
            max_grad_norm: Gradients with a larger norm are scaled down to it.

        Raises:
            ConfigError: Started as one of several processes; the update is written for one.
        """
        from accelerate import Accelerator

        device = next(model.parameters()).device
        accelerator = Accelerator(cpu=device.type == "cpu", mixed_precision="no")
        if accelerator.num_processes != 1:
            raise ConfigError(
                f"policy update: got {accelerator.num_processes} processes, expected 1; "
                "start rail without `accelerate launch`"
            )
        optimizer = torch.optim.AdamW(
            model.parameters(),
            lr=config.learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.model, self._optimizer = accelerator.prepare(model, optimizer)
        self._accelerator = accelerator
        self._max_grad_norm = max_grad_norm

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of `loss`, a scalar."""
        self._accelerator.backward(loss)

    def step(self) -> float:
        """Clip, step, clear the gradients; return the norm before clipping.

        Raises:
            PolicyError: The gradient is not finite; the weights are left as they are.
        """
        norm = self._accelerator.clip_grad_norm_(self.model.parameters(), self._max_grad_norm)
        value = float(norm) if norm is not None else 0.0
        if value != value or value == float("inf"):
            self._optimizer.zero_grad(set_to_none=True)
            raise PolicyError(
                f"policy update: the gradient norm is {value}, expected a finite number; lower "
                "train.learning_rate"
            )
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        return value

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the optimizer's moments and step counts."""
        # Torch hands out its live tensors, and takes those that it is given without copying them.
        return copy.deepcopy(self._optimizer.state_dict())

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; the model's weights are the caller's."""
        self._optimizer.load_state_dict(copy.deepcopy(state))
