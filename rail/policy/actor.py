"""A policy ready to act: the module, its chat frames, and a sampler checked against the module."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rail.config import PolicyConfig
from rail.policy.chat import Chat
from rail.policy.decoder import Decoder
from rail.policy.kernel import build
from rail.policy.kernel.decoder import NativeDecoder, unsupported
from rail.policy.loading import load_policy
from rail.policy.sampler import Sampler

LOGGER = logging.getLogger(__name__)
_CHECKED_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Actor:
    """One policy and what samples from it.

    Attributes:
        model: A Hugging Face causal LM; after an update call `sampler.decoder.load_weights()`.
        backend: native | torch: what decodes.
        logprob_gap: Largest gap between sampler and module at load, nats.
    """

    model: Any
    chat: Chat
    sampler: Sampler
    backend: str
    logprob_gap: float


def open_actor(path: Path, config: PolicyConfig) -> Actor:
    """Load a policy folder for acting on one CPU thread.

    Raises:
        PolicyError: If the folder cannot be loaded, or the sampler does not agree with the module.
    """
    torch.set_num_threads(1)
    model, chat = load_policy(path)
    backend = config.backend
    if backend == "native" and (reason := build.unsupported() or unsupported(model.config)):
        LOGGER.warning("decoding with torch, several times slower than the kernel: %s", reason)
        backend = "torch"
    kind = NativeDecoder if backend == "native" else Decoder
    decoder = kind(model, config.slots, config.max_tokens)
    vocabulary = model.config.vocab_size
    tokens = [(7 * i * i + 3 * i + 1) % vocabulary for i in range(_CHECKED_TOKENS)]
    gap = decoder.check(tokens)
    sampler = Sampler(decoder, chat.end_id, config.max_turn_tokens)
    return Actor(model, chat, sampler, backend, gap)
