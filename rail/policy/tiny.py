"""The embedded policy's network: a Qwen3-shaped language model of half a million weights."""

from typing import TYPE_CHECKING

import torch

from rail.config import PolicyConfig
from rail.errors import ConfigError
from rail.policy.tokenizer import END, PAD

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

INITIAL_STD = 0.05
"""Standard deviation of initial weights, embeddings included; `our choice`."""


def build_model(
    config: PolicyConfig, tokenizer: "PreTrainedTokenizerFast", seed: int
) -> "PreTrainedModel":
    """Return a freshly initialised model in float32, embeddings tied.

    Equal seeds give equal weights. The global random state of torch is left as it was found.

    Args:
        config: Sizes.
        tokenizer: The embedded one; sets the vocabulary, end and padding.
        seed: Any integer below 2**63.

    Raises:
        ConfigError: If `hidden` is no multiple of twice `heads` (rotary embeddings need an even
            width).
    """
    from transformers import AutoModelForCausalLM, Qwen3Config

    if config.hidden % (2 * config.heads):
        raise ConfigError(
            f"policy.hidden is {config.hidden} and policy.heads {config.heads}: each head needs an"
            f" even width; make hidden a multiple of {2 * config.heads}"
        )
    ids = tokenizer.get_vocab()
    architecture = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=config.hidden,
        intermediate_size=config.feed_forward,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        num_key_value_heads=config.heads,
        head_dim=config.hidden // config.heads,
        max_position_embeddings=config.max_tokens,
        initializer_range=INITIAL_STD,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=ids[END],
        pad_token_id=ids[PAD],
    )
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForCausalLM.from_config(architecture, dtype=torch.float32)
    # transformers draws initial weights from the global generator, so they are drawn again from
    # ours: matrices normal, norms one, in the fixed order of named_parameters.
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 2:
                parameter.normal_(0.0, INITIAL_STD, generator=generator)
            else:
                parameter.fill_(1.0)
    return model
