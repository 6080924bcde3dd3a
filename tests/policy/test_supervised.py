import numpy as np
import pytest
import torch

from rail.config import PolicyConfig, WarmStartConfig
from rail.policy.prefix_tree import prefix_tree
from rail.policy.supervised import Encoded, logits_at, train
from rail.policy.tiny import build_model
from rail.policy.tokenizer import train_tokenizer
from rail.policy.tree_attention import tree_attention
from tests.policy.models import needs_kernel

SMALL = PolicyConfig(hidden=32, layers=2, heads=2, feed_forward=32)
TOKENIZER = train_tokenizer(["a b c"] * 3, (), 400)


def sequences(*lengths: int) -> Encoded:
    rng = np.random.default_rng(0)
    ids = [rng.integers(5, 250, length) for length in lengths]
    return Encoded(ids, [np.arange(length) % 3 == 2 for length in lengths], 0)


def silent(line: str) -> None:
    assert line


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=needs_kernel)])
def test_logits_at_some_nodes_are_those_of_the_models_own_forward(native: bool) -> None:
    model = build_model(SMALL, TOKENIZER, 0)
    ids = np.random.default_rng(0).integers(5, 250, (3, 20))
    ids[1, :6] = ids[0, :6]
    tree = prefix_tree(list(ids))
    assert len(tree.tokens) == 54
    places = [(0, 4), (1, 19), (2, 0), (2, 1)]
    keep = np.array([tree.rows[place] for place in places])
    whole = model(input_ids=torch.from_numpy(ids)).logits
    with tree_attention(model):
        found = logits_at(model, tree, keep, native)
    for logits, place in zip(found, places, strict=True):
        assert torch.allclose(logits, whole[place], atol=1e-6)


def test_the_first_loss_is_the_mean_over_action_tokens_whatever_the_microbatches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = sequences(7, 12, 9, 5)
    model = build_model(SMALL, TOKENIZER, 0)
    losses = []
    with torch.no_grad():
        for ids, action in zip(data.ids, data.action, strict=True):
            tokens = torch.from_numpy(ids)
            logprobs = model(input_ids=tokens[None]).logits[0].log_softmax(-1)
            losses += [-logprobs[t - 1, tokens[t]].item() for t in np.flatnonzero(action)]
    for size in (1, 20, 1000):  # one dialogue each, pairs, all at once
        monkeypatch.setattr("rail.policy.supervised.MICROBATCH_TOKENS", size)
        fresh = build_model(SMALL, TOKENIZER, 0)
        curve, tokens = train(
            fresh, data, np.array([[0, 1, 2, 3]]), WarmStartConfig(steps=1, batch=4), silent
        )
        assert curve == [(1, pytest.approx(np.mean(losses), abs=1e-4))]
        assert tokens == 7 + 12 + 9 + 5


def test_training_learns_the_actions_and_ignores_what_it_is_not_scored_on() -> None:
    data = sequences(9, 9)
    config = WarmStartConfig(steps=80, batch=2, warmup=5)
    model = build_model(SMALL, TOKENIZER, 0)
    curve, _ = train(model, data, np.tile([0, 1], (80, 1)), config, silent)
    assert [step for step, _ in curve] == [*range(10, 81, 10)]
    assert curve[-1][1] < 0.15 < 4 < curve[0][1]
    with torch.no_grad():
        ids = torch.from_numpy(np.stack(data.ids))
        logprobs = model(input_ids=ids).logits.log_softmax(-1)
        chosen = logprobs[:, :-1].gather(2, ids[:, 1:, None])[..., 0]
    scored = torch.from_numpy(data.action[0][1:])
    assert chosen[:, scored].mean() > -0.15
    assert chosen[:, ~scored].mean() < -3


def test_training_leaves_the_number_of_threads_as_it_was() -> None:
    threads = torch.get_num_threads()
    model = build_model(SMALL, TOKENIZER, 0)
    train(model, sequences(6), np.array([[0]]), WarmStartConfig(), silent)
    assert torch.get_num_threads() == threads
