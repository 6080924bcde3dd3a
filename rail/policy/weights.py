"""Weights of Llama-shaped Hugging Face models (Llama, SmolLM2, Qwen2, Qwen3), laid out to decode.

Projections of one input are stacked, and norms' scales are folded into the matrices after them.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rail.errors import PolicyError

SUPPORTED = ("llama", "qwen2", "qwen3")


@dataclass(frozen=True, slots=True)
class Shape:
    """Numbers of heads and their size, read from a model's configuration."""

    q_heads: int
    kv_heads: int
    head_dim: int

    @classmethod
    def of(cls, config: Any) -> "Shape":
        """Read a Hugging Face configuration."""
        heads = config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // heads
        return cls(heads, getattr(config, "num_key_value_heads", None) or heads, size)


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer; D hidden size, F inner size, Hq and Hk heads of size hd.

    Attributes:
        qkv: Shape ((Hq + 2 Hk) * hd, D), the norm before it folded in.
        qkv_bias: Shape ((Hq + 2 Hk) * hd,), or None.
        qk_norm: Scales of the norms on queries and keys, shape (Hq + Hk, hd), or None.
        out: Shape (D, Hq * hd).
        gate_up: Shape (2 F, D), the norm before it folded in.
        down: Shape (D, F).
    """

    qkv: Tensor
    qkv_bias: Tensor | None
    qk_norm: Tensor | None
    out: Tensor
    gate_up: Tensor
    down: Tensor


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole model: embedding and head (V, D), layers, scale of the last norm (D,)."""

    embed: Tensor
    layers: list[Layer]
    norm: Tensor
    head: Tensor


def unsupported(config: Any) -> str:
    """Return why `repack` cannot take an architecture, empty if it can."""
    if config.model_type not in SUPPORTED:
        return f"its architecture is {config.model_type!r}, not one of {', '.join(SUPPORTED)}"
    return ""


@torch.no_grad()
def repack(model: Any) -> Weights:
    """Lay out the module's present weights.

    Raises:
        PolicyError: A part that the layout has no room for.
    """
    if reason := unsupported(model.config):
        raise PolicyError(f"cannot repack the weights of a model: {reason}")
    base, shape = model.model, Shape.of(model.config)
    return Weights(
        embed=base.embed_tokens.weight.detach(),
        layers=[_layer(layer, shape) for layer in base.layers],
        norm=base.norm.weight.detach(),
        head=model.lm_head.weight.detach(),
    )


@torch.no_grad()
def rotations(model: Any, length: int) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the rotary embedding, each (length, hd / 2)."""
    cos, sin = model.model.rotary_emb(torch.zeros(1, 1, 1), torch.arange(length)[None])
    half = cos.shape[-1] // 2
    return cos[0, :, :half].clone(), sin[0, :, :half].clone()


def _layer(layer: Any, shape: Shape) -> Layer:
    attention, mlp = layer.self_attn, layer.mlp
    projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    if attention.o_proj.bias is not None or mlp.down_proj.bias is not None:
        raise PolicyError("cannot repack a model with a bias in o_proj or down_proj")
    before, after = layer.input_layernorm.weight, layer.post_attention_layernorm.weight
    biases = [p.bias for p in projections]
    return Layer(
        qkv=torch.cat([p.weight for p in projections]) * before,
        qkv_bias=torch.cat(biases) if all(b is not None for b in biases) else None,
        qk_norm=_stack(attention, shape),
        out=attention.o_proj.weight.detach(),
        gate_up=torch.cat([mlp.gate_proj.weight, mlp.up_proj.weight]) * after,
        down=mlp.down_proj.weight.detach(),
    )


def _stack(attention: Any, shape: Shape) -> Tensor | None:
    if getattr(attention, "q_norm", None) is None:
        return None
    queries = attention.q_norm.weight.expand(shape.q_heads, -1)
    return torch.cat([queries, attention.k_norm.weight.expand(shape.kv_heads, -1)])
