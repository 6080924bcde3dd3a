import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from rail.errors import PolicyError
from rail.policy.decoder import Chunk, Decoder
from rail.policy.kernel import build
from rail.policy.kernel.decoder import NativeDecoder

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


BACKENDS = [
    Decoder,
    pytest.param(
        NativeDecoder,
        marks=pytest.mark.skipif(bool(build.unsupported()), reason=build.unsupported()),
    ),
]
backends = pytest.mark.parametrize("kind_of_decoder", BACKENDS)


@backends
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("qwen3", {"head_dim": 16}),
        ("qwen3", {"head_dim": 16, "num_key_value_heads": 2}),
        ("qwen2", {"hidden_size": 64}),
        ("llama", {"hidden_size": 64, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    ],
)
def test_logprobs_equal_the_modules_own(
    kind_of_decoder: type[Decoder], kind: str, options: dict[str, object]
) -> None:
    decoder = kind_of_decoder(model(kind, **options), rows=3, length=40)
    assert decoder.check(list(range(1, 30))) < 1e-4


def test_an_unknown_architecture_is_refused_by_name() -> None:
    with pytest.raises(PolicyError, match="llama, qwen2, qwen3, got 'gpt2'"):
        Decoder(AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", n_layer=1)), 1, 8)


@backends
def test_a_part_that_the_sampler_does_not_know_is_found_at_load(
    kind_of_decoder: type[Decoder],
) -> None:
    made = model("qwen3", head_dim=16)
    made.model.layers[1].mlp.act_fn = torch.nn.GELU()  # type: ignore[union-attr]
    with pytest.raises(PolicyError, match=r"differ from the model's own by \d"):
        kind_of_decoder(made, 1, 40).check(list(range(1, 20)))


@backends
def test_mixed_rows_give_what_each_gives_alone(kind_of_decoder: type[Decoder]) -> None:
    made = model("qwen3", head_dim=16)
    together, alone = kind_of_decoder(made, 4, 40), kind_of_decoder(made, 4, 40)
    texts = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14], [20, 21]]
    together.step([], [], [], [Chunk(row, 0, text) for row, text in enumerate(texts)])
    # Rows 0 and 3 decode one token while row 1 reads three and row 2 reads one more chunk.
    chunks = [Chunk(1, 2, [30, 31, 32]), Chunk(2, 5, [33, 34])]
    states = together.step([0, 3], [40, 41], [3, 2], chunks)
    for state, row, tail in zip(
        states, (0, 3, 1, 2), ([40], [41], [30, 31, 32], [33, 34]), strict=True
    ):
        expected = alone.step([], [], [], [Chunk(0, 0, texts[row] + tail)])[0]
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=0)


@backends
def test_a_lifted_prefix_continues_in_another_row_without_being_computed_again(
    kind_of_decoder: type[Decoder],
) -> None:
    decoder = kind_of_decoder(model("qwen3", head_dim=16), 3, 40)
    decoder.step([], [], [], [Chunk(0, 0, [1, 2, 3, 4, 5])])
    whole = decoder.step([], [], [], [Chunk(1, 0, [1, 2, 3, 60])])[0]
    before = decoder.tokens_computed
    decoder.lay(2, decoder.lift(0, 5), 3)
    state = decoder.step([2], [60], [3], [])[0]
    assert decoder.tokens_computed == before + 1
    torch.testing.assert_close(state, whole, atol=1e-5, rtol=0)


@backends
def test_new_weights_are_taken_over(kind_of_decoder: type[Decoder]) -> None:
    made = model("qwen3", head_dim=16)
    decoder = kind_of_decoder(made, 1, 40)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(1.1)
    with pytest.raises(PolicyError):
        decoder.check(list(range(1, 20)))
    decoder.load_weights()
    assert decoder.check(list(range(1, 20))) < 1e-4


def test_the_kernels_bits_do_not_depend_on_the_neighbours() -> None:
    made = model("qwen3", head_dim=16)
    alone, together = NativeDecoder(made, 1, 40), NativeDecoder(made, 9, 40)
    text = [3, 1, 4, 1, 5, 9, 2, 6]
    others = [Chunk(row, 0, list(range(row, row + 3 + row))) for row in range(8)]
    expected = alone.step([], [], [], [Chunk(0, 0, text)])[0]
    got = together.step([], [], [], [*others, Chunk(8, 0, text)])[-1]
    assert torch.equal(got, expected)
    assert torch.equal(alone.logits(expected[None])[0], together.logits(got.expand(7, -1))[3])
