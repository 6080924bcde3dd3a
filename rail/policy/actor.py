"""A policy ready to act: the module, its chat frames, and a sampler checked against the module."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rail.config import PolicyConfig
from rail.errors import PolicyError
from rail.policy import weights
from rail.policy.chat import Chat
from rail.policy.decoder import Decoder
from rail.policy.hf_decoder import HfDecoder
from rail.policy.kernel.decoder import NativeDecoder
from rail.policy.kernel.decoder import unsupported as unknown_to_kernel
from rail.policy.loading import load_policy
from rail.policy.sampler import Sampler
from rail.policy.torch_decoder import TorchDecoder

LOGGER = logging.getLogger(__name__)
_CHECKED_TOKENS = 32
_Reason = Callable[[Any], str]
BACKENDS: dict[str, tuple[type[Decoder], _Reason]] = {
    "native": (NativeDecoder, unknown_to_kernel),
    "torch": (TorchDecoder, weights.unsupported),
    "hf": (HfDecoder, lambda config: ""),
}
"""Fastest first: a backend that cannot run a policy, or is wrong on it, gives way to the next."""


@dataclass(frozen=True, slots=True)
class Actor:
    """One policy and what samples from it.

    Attributes:
        model: A Hugging Face causal LM; after an update call `sampler.decoder.load_weights()`.
        backend: native | torch | hf: what decodes.
        logprob_gap: Largest gap between sampler and module at load, nats.
    """

    model: Any
    chat: Chat
    sampler: Sampler
    backend: str
    logprob_gap: float


def open_actor(path: Path, config: PolicyConfig) -> Actor:
    """Load a policy folder for acting on one CPU thread.

    The backend asked for decodes if it can and agrees with the module; else the next one does, and
    one warning says why.

    Raises:
        PolicyError: If the folder cannot be loaded, or no backend agrees with the module.
    """
    torch.set_num_threads(1)
    model, chat = load_policy(path)
    try:
        name, decoder, gap = choose_decoder(model, config, config.slots)
    except PolicyError as error:
        raise PolicyError(f"{path}: {error}") from None
    return Actor(model, chat, Sampler(decoder, chat.end_id, config.max_turn_tokens), name, gap)


def choose_decoder(model: Any, config: PolicyConfig, rows: int) -> tuple[str, Decoder, float]:
    """Return name, decoder and gap (see `Decoder.check`) of the first backend that is right.

    Starts at the backend asked for; one warning says why others were passed over.

    Raises:
        PolicyError: If no backend agrees with the module.
    """
    vocabulary = model.config.vocab_size
    tokens = [(7 * i * i + 3 * i + 1) % vocabulary for i in range(_CHECKED_TOKENS)]
    names = list(BACKENDS)
    refused: list[str] = []
    for name in names[names.index(config.backend) :]:
        kind, unsupported = BACKENDS[name]
        if reason := unsupported(model.config):
            refused.append(f"not {name}: {reason}")
            continue
        try:
            decoder = kind(model, rows, config.max_tokens)
            gap = decoder.check(tokens)
        except PolicyError as error:
            refused.append(f"not {name}: {error}")
            continue
        if refused:
            LOGGER.warning("decoding with %s, slower; %s", name, "; ".join(refused))
        return name, decoder, gap
    raise PolicyError(f"no backend can decode this policy; {'; '.join(refused)}")
