"""Backend `native`: the compiled decoder, batch-invariant to the bit."""

import ctypes
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from rail.errors import PolicyError
from rail.policy import weights
from rail.policy.decoder import TOLERANCE, Decoder, Entries, Indices
from rail.policy.draw import Draw
from rail.policy.kernel import build
from rail.policy.kernel.build import at, compiled
from rail.policy.kernel.draw import draw
from rail.policy.tree_attention import TreeLayout, tree_attention

_PANEL = 16
_BLOCK = 32
_POINTER = ctypes.c_void_p


class _Layer(ctypes.Structure):
    _fields_ = [
        (name, _POINTER)
        for name in (
            "qkv", "qkv_bias", "qk_norm", "out", "gate_up", "down", "keys", "values",
        )
    ]  # fmt: skip


class _Model(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int) for name in (
            "hidden", "q_heads", "kv_heads", "head_dim", "feed_forward", "layers", "length",
        )),
        ("eps", ctypes.c_float),
        *((name, _POINTER) for name in ("embed", "norm", "cos", "sin")),
        ("layer", ctypes.POINTER(_Layer)),
    ]  # fmt: skip


def unsupported(config: Any) -> str:
    """Return why the kernel cannot run an architecture on this machine, empty if it can."""
    if reason := weights.unsupported(config):
        return reason
    head_dim = weights.Shape.of(config).head_dim
    if head_dim % _PANEL:
        return f"heads of size {head_dim} are no multiple of {_PANEL}"
    if config.hidden_size % _PANEL or config.intermediate_size % 8:
        return f"sizes {config.hidden_size} and {config.intermediate_size} do not fill its vectors"
    return build.unsupported()


class NativeDecoder(Decoder):
    """See `Decoder`; a row's bits do not depend on its neighbours, their number or their order."""

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Allocate the cache and pack the weights.

        Raises:
            PolicyError: If the kernel does not know the architecture, or cannot be compiled.
        """
        if reason := unsupported(model.config):
            raise PolicyError(f"the kernel cannot run this model: {reason}")
        super().__init__(model, rows, -(-length // _BLOCK) * _BLOCK)
        self._shape = shape = weights.Shape.of(model.config)
        layers = model.config.num_hidden_layers
        # (layers, 2, rows, heads, length * hd): keys in blocks of 32 positions, then values.
        self._cache = torch.zeros(layers, 2, rows, shape.kv_heads, self.length * shape.head_dim)
        self._cos, self._sin = weights.rotations(model, self.length)
        self._work, self._places = torch.zeros(0), torch.zeros(0, dtype=torch.int32)
        self._library = compiled()
        self.load_weights()

    def load_weights(self) -> None:
        """Pack the module's present weights."""
        packed, config, shape = weights.repack(self._model), self._model.config, self._shape
        self._held: list[Tensor] = []
        layers = [
            _Layer(
                *(
                    self._pointer(tensor)
                    for tensor in (
                        _pack(layer.qkv), layer.qkv_bias, layer.qk_norm, _pack(layer.out),
                        _pack(layer.gate_up), _pack(layer.down), keys, values,
                    )
                )
            )
            for layer, (keys, values) in zip(packed.layers, self._cache, strict=True)
        ]  # fmt: skip
        self._layer_array = (_Layer * len(layers))(*layers)
        self._head = _pack(packed.head)
        self._vocabulary = len(packed.head)
        self._outputs = self._head.shape[0] * _PANEL
        self._model_struct = _Model(
            self.width,
            shape.q_heads,
            shape.kv_heads,
            shape.head_dim,
            config.intermediate_size,
            len(layers),
            self.length,
            config.rms_norm_eps,
            *(self._pointer(t) for t in (packed.embed, packed.norm, self._cos, self._sin)),
            self._layer_array,
        )

    def _pointer(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        kept = tensor.detach().contiguous()
        self._held.append(kept)
        return kept.data_ptr()

    def lift(self, row: int, length: int) -> Tensor:
        """Return a copy of a row's first positions, in whole blocks of the kernel's layout."""
        return self._cache[:, :, row, :, : self._floats(length)].clone()

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """Copy the first `length` positions of `prefix` (see `lift`) into a row."""
        floats = self._floats(length)
        self._cache[:, :, row, :, :floats] = prefix[..., :floats]

    def _floats(self, length: int) -> int:
        return -(-length // _BLOCK) * _BLOCK * self._shape.head_dim

    def logits(self, states: Tensor) -> Tensor:
        """Return logits (N, V) of final-norm states (N, D)."""
        return self._padded_logits(states)[:, : self._vocabulary]

    def _padded_logits(self, states: Tensor) -> Tensor:
        states = states.contiguous()
        found = torch.empty(len(states), self._outputs)
        self._library.project(
            at(states), len(states), self.width, at(self._head), self._outputs, at(found)
        )
        return found

    def draw(self, states: Tensor, uniforms: Tensor, temperature: Tensor, top_p: Tensor) -> Draw:
        """Draw the token that follows each state (N, D); see `rail.policy.draw.draw`."""
        return draw(self._padded_logits(states), self._vocabulary, uniforms, temperature, top_p)

    def check(self, tokens: Sequence[int]) -> float:
        """See `Decoder.check`; the walk along trees must give the module's gradient as well."""
        gap = super().check(tokens)
        ids = torch.tensor([list(tokens)])
        places = torch.arange(len(tokens))
        layout = TreeLayout(places.to(torch.int32), len(tokens))
        found = []
        with torch.enable_grad():
            for walked in (False, True):
                with tree_attention(self._model) if walked else nullcontext():
                    given = {"position_ids": places[None], "tree": layout} if walked else {}
                    logits = self._model(input_ids=ids, use_cache=False, **given).logits[0]
                chosen = logits.log_softmax(-1)[places[:-1], ids[0, 1:]].mean()
                weights_of = [p for p in self._model.parameters() if p.requires_grad]
                slopes = torch.autograd.grad(chosen, weights_of)
                found.append(torch.cat([slope.flatten() for slope in slopes]))
        off = float((found[0] - found[1]).norm() / found[0].norm())
        if not off < TOLERANCE:
            raise PolicyError(
                f"NativeDecoder: a gradient along a tree is off by a share of {off:.1e}, more than "
                f"{TOLERANCE:.0e}: its kernel is damaged"
            )
        return gap

    def step(self, entries: Entries) -> Tensor:
        """Run all entries; return the final-norm states at the end of each run, shape (m, D)."""
        count, runs = len(entries.tokens), len(entries.rows)
        self.tokens_computed += count
        needed = self._library.workspace(ctypes.byref(self._model_struct), count)
        if len(self._work) < needed:
            self._work = torch.zeros(needed)
            self._places = torch.zeros(2 * count, dtype=torch.int32)
        states = torch.empty(runs, self.width)
        self._library.forward(
            ctypes.byref(self._model_struct),
            runs,
            *(_values(x) for x in (entries.rows, entries.starts, entries.lengths)),
            count,
            _values(entries.tokens),
            at(self._places),
            at(self._work),
            at(states),
        )
        return states


def _values(array: Indices) -> ctypes.c_void_p:
    """Return the address of a contiguous int64 array, alive as long as its owner."""
    if not array.flags.c_contiguous or array.dtype != np.int64:
        raise PolicyError(f"the kernel reads contiguous int64, got {array.dtype} {array.strides}")
    return _POINTER(array.__array_interface__["data"][0])


def _pack(weight: Tensor) -> Tensor:
    """Return (outputs, inputs) as panels (outputs / 16, inputs, 16), padded with zeros."""
    padded = functional.pad(weight.detach(), (0, 0, 0, -len(weight) % _PANEL))
    return padded.view(-1, _PANEL, padded.shape[1]).transpose(1, 2).contiguous()
