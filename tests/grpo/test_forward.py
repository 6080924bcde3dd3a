"""The prefix tree agrees with the padded oracle, and the oracle with one token at a time."""

import numpy as np
import pytest
import torch

from rail.config import UpdateConfig
from rail.errors import PolicyError
from rail.grpo.batch import Row, coefficients, training_rows
from rail.grpo.forward import packing, plan_microbatches, token_logprobs
from rail.grpo.loss import surrogate
from rail.policy.prefix_tree import prefix_tree
from rail.seeding import generator
from tests.grpo.trees import branched_tree, random_tree, tiny_policy
from tests.policy.models import needs_kernel

POLICIES = [("qwen3", 4), ("qwen3", 2), ("llama", 1)]  # plain, grouped and multi-query attention
TREES = {
    "uniform": [(1, 8, 0), (2, 8, 0)],
    "branched": [(3, 4, 8), (4, 2, 12), (5, 4, 0)],
    "single": [(6, 1, 0)],
}


def rows_of(shapes, config):
    rows = []
    for task, (seed, roots, branches) in enumerate(shapes):
        tree = random_tree(seed, roots, branches)
        rollouts = tree.retained()
        advantages = generator(seed, "advantages").normal(size=len(rollouts))
        rows += training_rows(task, tree, rollouts, advantages, config)
    return rows


def gradient(model, rows, config, native=False):
    """Return the gradient of the whole loss, all microbatches, and the log-probabilities."""
    model.zero_grad(set_to_none=True)
    scale = coefficients(rows, config)
    scores = {}
    for part in plan_microbatches(rows, config):
        members = [rows[i] for i in part]
        with packing(model, config):
            got = token_logprobs(model, members, config, with_entropy=True, native=native)

        def flat(arrays, part=part):
            kept = [a[rows[i].trained] for i, a in zip(part, arrays, strict=True)]
            return torch.from_numpy(np.concatenate(kept).astype(np.float32))

        # Old log-probabilities a little off the model's, so that some ratios are bounded.
        loss, _ = surrogate(
            got.logprob,
            got.logprob.detach() + flat([0.4 * np.sin(rows[i].tokens) for i in part]),
            flat([rows[i].advantage for i in part]),
            config,
        )
        (loss * flat([scale[i] for i in part])).sum().backward()
        ends = np.cumsum([int(row.trained.sum()) for row in members])[:-1]
        assert got.entropy is not None
        both = torch.stack([got.logprob.detach(), got.entropy]).numpy()
        scores.update(zip(part, np.split(both, ends, axis=1), strict=True))
    vector = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    return vector, np.concatenate([scores[i] for i in range(len(rows))], axis=1)


CASES = [
    *[(*policy, "soft", 3000) for policy in POLICIES],
    *[("qwen3", 2, policy, 150) for policy in ("soft", "hard", "suffix")],
    ("qwen3", 4, "soft", 30),
]


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=needs_kernel)])
@pytest.mark.parametrize("shapes", TREES.values(), ids=TREES.keys())
@pytest.mark.parametrize(("kind", "heads", "policy", "microbatch"), CASES)
def test_tree_gradient_equals_padded_gradient(kind, heads, policy, microbatch, shapes, native):
    model = tiny_policy(kind, heads)
    options = {"prefix_policy": policy, "microbatch_tokens": microbatch, "logp_temperature": 0.8}
    padded = UpdateConfig(packing="padded", **options)
    rows = rows_of(shapes, padded)
    want, want_scores = gradient(model, rows, padded)
    got, scores = gradient(model, rows, UpdateConfig(packing="tree", **options), native)
    assert want.norm() > 1e-3
    assert ((got - want).norm() / want.norm()).item() < 1e-5
    np.testing.assert_allclose(scores, want_scores, atol=2e-5)


@pytest.mark.parametrize("layout", ["tree", "padded"])
def test_scores_are_those_of_each_token_given_the_tokens_before_it(layout):
    model = tiny_policy()
    config = UpdateConfig(packing=layout, logp_temperature=0.5)
    tree = branched_tree()
    rows = training_rows(0, tree, [0, 1, 2], np.ones(3), config)
    with packing(model, config), torch.no_grad():
        got = token_logprobs(model, rows, config, with_entropy=True)
    want, entropy = [], []
    for row in rows:
        for place in np.flatnonzero(row.trained):
            with torch.no_grad():
                before = torch.from_numpy(row.tokens[None, :place])
                p = (model(input_ids=before).logits[0, -1] / 0.5).softmax(-1)
            want.append(p[row.tokens[place]].log().item())
            entropy.append(-(p * p.log()).sum().item())
    assert len(want) == 4 + 2 + 3
    np.testing.assert_allclose(got.logprob.numpy(), want, atol=1e-5)
    assert got.entropy is not None
    np.testing.assert_allclose(got.entropy.numpy(), entropy, atol=1e-5)


def test_a_mask_shifted_by_one_changes_the_scores():
    model = tiny_policy()
    config = UpdateConfig()
    (row,) = training_rows(0, branched_tree(), [0], np.ones(1), config)
    shifted = Row(
        row.task,
        row.tokens,
        np.roll(row.trained, 1),
        row.old_logprob,
        row.advantage,
        row.weight,
        row.importance,
    )
    with packing(model, config), torch.no_grad():
        right = token_logprobs(model, [row], config).logprob
        wrong = token_logprobs(model, [shifted], config).logprob
    assert (right - wrong).abs().max() > 0.1


def test_prefix_tree_holds_each_prefix_once():
    sequences = [np.array(s) for s in ([1, 2, 3], [1, 2], [4], [1, 2, 3], [1, 5, 3], [1, 2, 300])]
    tree = prefix_tree(sequences)
    prefixes = {tuple(s[: k + 1]) for s in sequences for k in range(len(s))}
    assert len(tree.tokens) == len(prefixes) == 7
    for i, sequence in enumerate(sequences):
        nodes = tree.rows[i, : len(sequence)]
        assert tree.tokens[nodes].tolist() == sequence.tolist()
        assert tree.position[nodes].tolist() == list(range(len(sequence)))
        assert tree.parent[nodes].tolist() == [-1, *nodes[:-1].tolist()]
    assert tree.rows.reshape(-1)[tree.back].tolist() == list(range(7))
    assert len(set(tree.back.tolist())) == 7


def test_tree_runs_shared_turns_of_a_group_once():
    seen = []
    model = tiny_policy()
    model.get_input_embeddings().register_forward_hook(lambda _, args, __: seen.append(args[0]))
    config = UpdateConfig()
    rows = training_rows(0, branched_tree(), [0, 1, 2], np.ones(3), config)
    with packing(model, config), torch.no_grad():
        token_logprobs(model, rows, config)
    # 7 + 4 + 6 tokens; prompt 1 2 thrice and turn 3 4 5 twice: 17 - 4 - 3
    assert [ids.numel() for ids in seen] == [10]


def test_microbatches_respect_the_limit_and_keep_groups_together():
    config = UpdateConfig(microbatch_tokens=60)
    rows = rows_of(TREES["branched"], config)
    for layout in ("tree", "padded"):
        plan = plan_microbatches(rows, config.model_copy(update={"packing": layout}))
        assert sorted(i for part in plan for i in part) == list(range(len(rows)))
        for part in plan:
            longest = max(len(rows[i].tokens) for i in part)
            assert len(part) * longest <= 60 or len(part) == 1
    whole = plan_microbatches(rows, UpdateConfig(microbatch_tokens=100_000))
    assert whole == [list(range(len(rows)))]


def test_attention_is_put_back_after_the_block_even_on_error():
    model = tiny_policy()
    before = model.config._attn_implementation
    block = packing(model, UpdateConfig())
    block.__enter__()
    assert model.config._attn_implementation == "rail_tree"
    error = KeyError()
    assert not block.__exit__(KeyError, error, None)
    assert model.config._attn_implementation == before


def test_models_that_cannot_be_packed_are_refused():
    with pytest.raises(PolicyError, match="padded"), packing(torch.nn.Linear(2, 2), UpdateConfig()):
        pass
    model = tiny_policy()
    model.model.layers[0].self_attn.sliding_window = 3
    config = UpdateConfig()
    rows = training_rows(0, branched_tree(), [0], np.ones(1), config)
    with packing(model, config), pytest.raises(PolicyError, match="shorter than 7"):
        token_logprobs(model, rows, config)
