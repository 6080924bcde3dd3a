"""Small random models of several architectures, and the backends that can run them."""

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from rail.policy.decoder import Decoder
from rail.policy.hf_decoder import HfDecoder
from rail.policy.kernel import build
from rail.policy.kernel.decoder import NativeDecoder
from rail.policy.torch_decoder import TorchDecoder

SMALL = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
}


def model(kind: str, **options: object) -> torch.nn.Module:
    config = AutoConfig.for_model(kind, **(SMALL | options))
    with torch.random.fork_rng():
        torch.manual_seed(3)  # noqa: TID251 - inside fork_rng: from_config takes no generator
        made = AutoModelForCausalLM.from_config(config).eval()
        for name, parameter in made.named_parameters():  # norms and biases away from 1 and 0
            if parameter.dim() == 1:
                torch.nn.init.normal_(parameter, mean=0.0 if "bias" in name else 1.0, std=0.3)
    return made


needs_kernel = pytest.mark.skipif(bool(build.unsupported()), reason=build.unsupported())
BACKENDS: list[object] = [
    TorchDecoder,
    HfDecoder,
    pytest.param(NativeDecoder, marks=needs_kernel),
]
backends = pytest.mark.parametrize("backend", BACKENDS)
__all__ = ["Decoder", "backends", "model", "needs_kernel"]
