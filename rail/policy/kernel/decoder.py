"""The compiled decoder: same calls as `rail.policy.decoder.Decoder`, batch-invariant to the bit."""

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rail.policy.decoder import Chunk, Decoder
from rail.policy.kernel.build import library

_PANEL = 16
_FLOATS = ctypes.c_void_p


class _Layer(ctypes.Structure):
    _fields_ = [
        (name, _FLOATS)
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
        *((name, _FLOATS) for name in ("embed", "norm", "cos", "sin")),
        ("layer", ctypes.POINTER(_Layer)),
    ]  # fmt: skip


def unsupported(config: Any) -> str:
    """Return why the kernel cannot run an architecture, empty if it can."""
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    if head_dim % _PANEL:
        return f"heads of size {head_dim} are no multiple of {_PANEL}"
    if config.hidden_size % _PANEL or config.intermediate_size % 8:
        return f"sizes {config.hidden_size} and {config.intermediate_size} do not fill its vectors"
    return ""


class NativeDecoder(Decoder):
    """See `Decoder`; the forward pass and the logits are the kernel's."""

    def _allocate(self) -> None:
        self.length = -(-self.length // 8) * 8
        layers, rows, heads = self._config.num_hidden_layers, self.rows, self._kv_heads
        self._keys = torch.zeros(layers, rows, heads, self._head_dim, self.length)
        self._values = torch.zeros(layers, rows, heads, self.length, self._head_dim)
        self._work = torch.zeros(0)
        self._library = library()
        self._library.workspace.restype = ctypes.c_long

    @torch.no_grad()
    def load_weights(self) -> None:
        """Take over the module's present weights."""
        super().load_weights()
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
            for layer, keys, values in zip(self._layers, self._keys, self._values, strict=True)
        ]  # fmt: skip
        self._layer_array = (_Layer * len(layers))(*layers)
        self._packed_head = _pack(self._head)
        self._outputs = self._packed_head.shape[0] * _PANEL
        self._model_struct = _Model(
            self._config.hidden_size,
            self._q_heads,
            self._kv_heads,
            self._head_dim,
            self._config.intermediate_size,
            len(layers),
            self.length,
            self._eps,
            *(self._pointer(t) for t in (self._embed, self._norm, self._cos, self._sin)),
            self._layer_array,
        )

    def _pointer(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        kept = tensor.detach().contiguous()
        self._held.append(kept)
        return kept.data_ptr()

    def lift(self, row: int, length: int) -> Tensor:
        """Return a copy of a row's first positions, shape (layers, 2, heads, length, hd)."""
        keys = self._keys[:, row, :, :, :length].transpose(-1, -2)
        return torch.stack([keys, self._values[:, row, :, :length]], dim=1)

    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """Copy the first `length` positions of `prefix` (see `lift`) into a row."""
        self._keys[:, row, :, :, :length] = prefix[:, 0, :, :length].transpose(-1, -2)
        self._values[:, row, :, :length] = prefix[:, 1, :, :length]

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits (N, V) of final hidden states (N, D)."""
        states = hidden.contiguous()
        found = torch.empty(len(states), self._outputs)
        self._library.project(
            _at(states),
            len(states),
            states.shape[1],
            _at(self._packed_head),
            self._outputs,
            _at(found),
        )
        return found[:, : self._head.shape[0]]

    def step(
        self,
        rows: Sequence[int],
        tokens: Sequence[int],
        starts: Sequence[int],
        chunks: Sequence[Chunk],
    ) -> Tensor:
        """Advance single-token rows and chunk rows together; see `Decoder.step`."""
        lengths = [len(chunk.tokens) for chunk in chunks]
        ids = [*tokens, *(token for chunk in chunks for token in chunk.tokens)]
        entry_rows = [*rows, *np.repeat([chunk.row for chunk in chunks], lengths).tolist()]
        positions = [*starts]
        for chunk, length in zip(chunks, lengths, strict=True):
            positions += range(chunk.start, chunk.start + length)
        last = [*range(len(rows)), *(len(rows) - 1 + np.cumsum(lengths)).tolist()]
        plan = torch.tensor([*ids, *entry_rows, *positions, *last], dtype=torch.int32)
        count = len(ids)
        self.tokens_computed += count
        needed = self._library.workspace(ctypes.byref(self._model_struct), count)
        if len(self._work) < needed:
            self._work = torch.zeros(needed)
        states = torch.empty(len(last), self._config.hidden_size)
        base = plan.data_ptr()
        places = [ctypes.c_void_p(base + 4 * count * part) for part in range(4)]
        self._library.forward(
            ctypes.byref(self._model_struct),
            count,
            *places[:3],
            len(last),
            places[3],
            _at(self._work),
            _at(states),
        )
        return states


def _at(tensor: Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def _pack(weight: Tensor) -> Tensor:
    """Return (outputs, inputs) as panels (outputs / 16, inputs, 16), padded with zeros."""
    padded = F.pad(weight.detach(), (0, 0, 0, -len(weight) % _PANEL))
    return padded.view(-1, _PANEL, padded.shape[1]).transpose(1, 2).contiguous()
