"""Attention along the paths of a prefix tree in the compiled kernel, with its gradient."""

import ctypes
from typing import Any

import torch
from torch import Tensor

from rail.errors import PolicyError
from rail.policy.kernel.build import at, compiled


class _Tree(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in ("nodes", "q_heads", "kv_heads", "size", "length")),
        ("scale", ctypes.c_float),
        ("positions", ctypes.c_void_p),
    ]  # fmt: skip


def walk(
    query: Tensor, key: Tensor, value: Tensor, positions: Tensor, length: int, scale: float
) -> Tensor:
    """Let each node attend to the nodes on its path.

    Args:
        query: Shape (1, H, N, D), float32, D a multiple of 16.
        key: Shape (1, G, N, D), G dividing H.
        value: As `key`.
        positions: Of the nodes, depth first, int32, shape (N,).
        length: Positions are below it.
        scale: Factor on the scores.

    Returns:
        Shape (1, N, H, D).

    Raises:
        PolicyError: If the heads' size or the numbers are not what the kernel reads.
    """
    if query.shape[-1] % 16 or query.dtype != torch.float32:
        raise PolicyError(
            f"tree attention: the kernel reads float32 heads of a multiple of 16, got "
            f"{query.dtype} of {query.shape[-1]}; set policy.backend to torch"
        )
    return _Walk.apply(query, key, value, positions, length, scale)  # pyright: ignore[reportReturnType] - apply is untyped


class _Walk(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, positions: Tensor, length: int,
        scale: float,
    ) -> Tensor:  # fmt: skip
        q, k, v = (states[0].contiguous() for states in (query, key, value))
        heads, nodes, size = q.shape
        tree = _Tree(nodes, heads, k.shape[0], size, -(-length // 32) * 32, scale, at(positions))
        out, room = torch.empty(1, nodes, heads, size), _room(tree)
        compiled().tree_forward(ctypes.byref(tree), at(q), at(k), at(v), at(room), at(out))
        ctx.save_for_backward(q, k, v, positions)
        ctx.tree = tree
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, _ = ctx.saved_tensors
        found = [torch.empty_like(states) for states in (q, k, v)]
        gradient, room = gradients[0].contiguous(), _room(ctx.tree)
        compiled().tree_backward(
            ctypes.byref(ctx.tree), at(q), at(k), at(v), at(gradient), at(room),
            *map(at, found),
        )  # fmt: skip
        return (*(states[None] for states in found), None, None, None)


def _room(tree: _Tree) -> Tensor:
    return torch.empty(compiled().tree_workspace(ctypes.byref(tree)))
