import pytest
import torch

from rail.errors import PolicyError
from rail.policy.decoder import Decoder, Entries
from rail.policy.hf_decoder import HfDecoder
from rail.policy.kernel.decoder import NativeDecoder
from rail.policy.torch_decoder import TorchDecoder
from tests.policy.models import backends, model, needs_kernel


def test_entries_know_row_and_position_of_each_token() -> None:
    entries = Entries.of([(4, 7, [1]), (2, 0, [5, 6, 7]), (0, 3, [8])])
    assert entries.flat_rows().tolist() == [4, 2, 2, 2, 0]
    assert entries.flat_positions().tolist() == [7, 0, 1, 2, 3]
    assert entries.last().tolist() == [0, 3, 4]


@backends
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("qwen3", {"head_dim": 16}),
        ("qwen3", {"head_dim": 16, "num_key_value_heads": 2}),
        ("qwen3", {"head_dim": 32, "num_key_value_heads": 1}),
        ("qwen2", {"hidden_size": 64}),
        ("llama", {"hidden_size": 64, "num_key_value_heads": 2, "tie_word_embeddings": True}),
    ],
)
def test_logprobs_equal_the_modules_own(
    backend: type[Decoder], kind: str, options: dict[str, object]
) -> None:
    decoder = backend(model(kind, **options), rows=3, length=40)
    assert decoder.check(list(range(1, 30))) < 1e-4


@pytest.mark.parametrize("kind", ["gpt_neox", "phi"])
def test_hf_runs_architectures_that_the_others_do_not_know(kind: str) -> None:
    made = model(kind, hidden_size=64, layer_norm_eps=1e-5)
    for backend in (TorchDecoder, NativeDecoder):
        with pytest.raises(PolicyError, match=f"its architecture is '{kind}', not one of llama"):
            backend(made, 1, 40)
    assert HfDecoder(made, 2, 40).check(list(range(1, 30))) < 1e-4


@pytest.mark.parametrize("backend", [TorchDecoder, pytest.param(NativeDecoder, marks=needs_kernel)])
def test_a_part_that_the_sampler_does_not_know_is_found_at_load(backend: type[Decoder]) -> None:
    made = model("qwen3", head_dim=16)
    made.get_submodule("model.layers.1.mlp").act_fn = torch.nn.GELU()
    with pytest.raises(PolicyError, match=r"differ from the model's own by \d"):
        backend(made, 1, 40).check(list(range(1, 20)))


@backends
def test_mixed_rows_give_what_each_gives_alone(backend: type[Decoder]) -> None:
    made = model("qwen3", head_dim=16)
    together, alone = backend(made, 4, 40), backend(made, 4, 40)
    texts = [[5, 6, 7], [8, 9], [10, 11, 12, 13, 14], [20, 21]]
    together.step(Entries.of([(row, 0, text) for row, text in enumerate(texts)]))
    # Rows 0 and 3 decode one token while row 1 reads three and row 2 reads two.
    tails = [[40], [30, 31, 32], [33, 34], [41]]
    states = together.step(
        Entries.of([(row, len(texts[row]), tail) for row, tail in enumerate(tails)])
    )
    for state, text, tail in zip(states, texts, tails, strict=True):
        expected = alone.step(Entries.of([(0, 0, text + tail)]))[0]
        torch.testing.assert_close(state, expected, atol=1e-5, rtol=0)


@backends
def test_a_lifted_prefix_continues_in_another_row_without_being_computed_again(
    backend: type[Decoder],
) -> None:
    decoder = backend(model("qwen3", head_dim=16), 3, 40)
    decoder.step(Entries.of([(0, 0, list(range(1, 14)))]))
    whole = decoder.step(Entries.of([(1, 0, [*range(1, 12), 60])]))[0]
    before = decoder.tokens_computed
    decoder.lay(2, decoder.lift(0, 13), 11)
    state = decoder.step(Entries.of([(2, 11, [60])]))[0]
    assert decoder.tokens_computed == before + 1
    torch.testing.assert_close(state, whole, atol=1e-5, rtol=0)


@backends
def test_new_weights_are_taken_over(backend: type[Decoder]) -> None:
    made = model("qwen3", head_dim=16)
    decoder = backend(made, 1, 40)
    before = decoder.step(Entries.of([(0, 0, [1, 2, 3])]))
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(1.1)
    decoder.load_weights()
    assert not torch.allclose(before, decoder.step(Entries.of([(0, 0, [1, 2, 3])])))
    assert decoder.check(list(range(1, 20))) < 1e-4


@needs_kernel
def test_the_last_position_of_the_cache_is_usable() -> None:
    decoder = NativeDecoder(model("qwen3", head_dim=16), 2, 32)
    tokens = [(7 * i) % 97 for i in range(32)]
    assert decoder.check(tokens) < 1e-4


@needs_kernel
def test_the_kernels_bits_do_not_depend_on_the_neighbours() -> None:
    made = model("qwen3", head_dim=16)
    alone, together = NativeDecoder(made, 1, 40), NativeDecoder(made, 9, 40)
    text = [3, 1, 4, 1, 5, 9, 2, 6]
    others = [(row, 0, list(range(row, row + 3 + row))) for row in range(8)]
    expected = alone.step(Entries.of([(0, 0, text)]))[0]
    got = together.step(Entries.of([*others[:5], (8, 0, text), *others[5:]]))[5]
    assert torch.equal(got, expected)
    assert torch.equal(alone.logits(expected[None])[0], together.logits(got.expand(7, -1))[3])
