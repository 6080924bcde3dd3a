import pytest
import torch
from transformers import PreTrainedTokenizerFast

from rail.config import PolicyConfig
from rail.errors import ConfigError
from rail.policy.tiny import build_model
from rail.policy.tokenizer import train_tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer(["a b c"] * 3, (), 400)


def test_the_default_policy_has_the_planned_size(tokenizer: PreTrainedTokenizerFast) -> None:
    model = build_model(PolicyConfig(), tokenizer, 0)
    layer = 4 * 128 * 128 + 3 * 128 * 256 + 2 * 128 + 2 * 32
    assert model.num_parameters() == 128 * len(tokenizer) + 3 * layer + 128
    assert model.dtype == torch.float32
    assert model.config.model_type == "qwen3"
    assert (model.config.eos_token_id, model.config.pad_token_id) == (4, 0)


def test_embeddings_are_tied_and_weights_drawn_at_the_planned_scale(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    model = build_model(PolicyConfig(), tokenizer, 0)
    head = model.get_output_embeddings()
    assert head is not None
    assert head.weight is model.get_input_embeddings().weight
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        else:
            assert parameter.std().item() == pytest.approx(0.05, rel=0.03), name


def test_equal_seeds_give_equal_weights_and_leave_the_global_stream_alone(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    config = PolicyConfig(hidden=16, layers=1, heads=2, feed_forward=16)
    before = torch.get_rng_state()
    first, again, other = (build_model(config, tokenizer, seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert all(torch.equal(first[name], again[name]) for name in first)
    name = "model.layers.0.mlp.up_proj.weight"
    assert not torch.equal(first[name], other[name])


def test_an_odd_head_width_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ConfigError, match="make hidden a multiple of 8"):
        build_model(PolicyConfig(hidden=20, heads=4), tokenizer, 0)
