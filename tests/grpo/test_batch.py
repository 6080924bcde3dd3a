"""Rows, minibatches and coefficients on hand-laid trees."""

import numpy as np
import pytest

from rail.config import UpdateConfig
from rail.errors import DataError
from rail.grpo.batch import Row, coefficients, equalise_tasks, split_minibatches, training_rows
from rail.seeding import generator
from tests.grpo.trees import branched_tree, random_tree

ADVANTAGES = np.array([2.0, -1.0, -3.0])


def rows_of(policy, rollouts=(0, 1, 2), **options):
    config = UpdateConfig(prefix_policy=policy, **options.pop("config", {}))
    advantages = ADVANTAGES[list(rollouts)]
    return training_rows(0, branched_tree(), list(rollouts), advantages, config, **options)


def plain_row(task, trained, advantage=1.0, weight=1.0):
    n = len(trained)
    return Row(
        task,
        np.arange(n),
        np.array(trained, dtype=np.bool_),
        np.zeros(n, dtype=np.float32),
        np.full(n, float(advantage)),
        np.full(n, float(weight)),
        np.ones(n),
    )


def test_soft_trains_every_sampled_token_of_every_copy():
    root, other, branch = rows_of("soft")
    assert root.tokens.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert root.trained.tolist() == [False, False, True, True, False, True, True]
    assert other.trained.tolist() == [False, False, True, True]
    assert branch.tokens.tolist() == [1, 2, 3, 4, 5, 8]
    assert branch.trained.tolist() == [False, False, True, True, False, True]
    for row, advantage in zip((root, other, branch), ADVANTAGES, strict=True):
        assert (row.advantage == advantage).all()
        assert (row.weight == 1.0).all()
        assert (row.importance == 1.0).all()


def test_suffix_trains_what_the_rollout_generated_itself():
    root, _, branch = rows_of("suffix")
    assert root.trained.tolist() == [False, False, True, True, False, True, True]
    assert branch.trained.tolist() == [False, False, False, False, False, True]


def test_hard_trains_a_shared_turn_once_with_the_mean_advantage():
    root, other, branch = rows_of("hard")
    assert root.trained.tolist() == [False, False, True, True, False, True, True]
    assert branch.trained.tolist() == [False, False, False, False, False, True]
    assert root.advantage[root.trained].tolist() == [-0.5, -0.5, 2.0, 2.0]  # (2 - 3) / 2, own
    assert other.advantage[other.trained].tolist() == [-1.0, -1.0]
    assert branch.advantage[branch.trained].tolist() == [-3.0]


def test_hard_counts_only_retained_rollouts_as_sharers():
    _, branch = rows_of("hard", rollouts=(1, 2))
    assert branch.trained.tolist() == [False, False, True, True, False, True]
    assert branch.advantage[branch.trained].tolist() == [-3.0, -3.0, -3.0]


def test_hard_is_soft_over_the_number_of_copies_for_a_linear_loss():
    # Sum of w A over the copies of the shared turn: soft 2 - 3 = -1 per token, hard -1 / 2.
    def shared_mass(policy, weights):
        rows = rows_of(policy, weights=weights)
        return sum(
            float((r.weight * r.advantage)[2:4][r.trained[2:4]].sum()) for r in (rows[0], rows[2])
        )

    assert shared_mass("hard", None) == pytest.approx(shared_mass("soft", None) / 2)
    tree_weights = np.array([3.0, 1.0, 2.0])  # (3 x 2 - 2 x 3) / 2 = 0 per token
    assert shared_mass("hard", tree_weights) == pytest.approx(0.0)


def test_ratio_denominator_is_the_plain_policy_and_importance_is_capped():
    (row,) = rows_of("soft", rollouts=(1,), config={"importance_cap": 2.0})
    np.testing.assert_allclose(row.old_logprob, [0, 0, -0.9, -0.3], rtol=1e-6)
    # plain / sampled: exp(-0.9 + 0.45), exp(-0.3 + 0.15); untrained tokens are 1
    np.testing.assert_allclose(row.importance, [1, 1, np.exp(-0.45), np.exp(-0.15)], rtol=1e-6)
    tree = branched_tree()
    tree.turns[2].logprob_sampled = tree.turns[2].logprob - 1.0  # e > 2
    (row,) = training_rows(0, tree, [1], np.ones(1), UpdateConfig(importance_cap=2.0))
    np.testing.assert_allclose(row.importance[row.trained], [2.0, 2.0])


def test_rows_refuse_what_does_not_fit():
    tree = branched_tree()
    with pytest.raises(DataError, match="advantages"):
        training_rows(0, tree, [0, 1], np.ones(3), UpdateConfig())
    with pytest.raises(DataError, match="advantages"):
        training_rows(0, tree, [0], np.array([np.nan]), UpdateConfig())
    with pytest.raises(DataError, match="positive"):
        training_rows(0, tree, [0], np.ones(1), UpdateConfig(), np.zeros(1))
    tree.turns[0].logprob[1] = -np.inf
    with pytest.raises(DataError, match="not finite"):
        training_rows(0, tree, [0], np.ones(1), UpdateConfig())
    tree.prompt = tree.prompt[:0]
    with pytest.raises(DataError, match="prompt"):
        training_rows(0, tree, [0], np.ones(1), UpdateConfig())


def test_token_mean_counts_every_trained_token_once():
    rows = [plain_row(0, [0, 1, 1, 1]), plain_row(0, [0, 1])]
    first, second = coefficients(rows, UpdateConfig())
    assert first.tolist() == [0, 0.25, 0.25, 0.25]
    assert second.tolist() == [0, 0.25]


def test_sequence_mean_gives_every_row_the_same_mass():
    rows = [plain_row(0, [0, 1, 1, 1]), plain_row(0, [0, 1], weight=3.0)]
    first, second = coefficients(rows, UpdateConfig(normalise="sequence_mean"))
    np.testing.assert_allclose(first, [0, 1 / 12, 1 / 12, 1 / 12])  # mass 1 of 4, over 3 tokens
    np.testing.assert_allclose(second, [0, 3 / 4])


def test_token_sum_const_divides_by_rows_and_constant_alone():
    rows = [plain_row(0, [0, 1, 1, 1]), plain_row(0, [0, 1])]
    first, second = coefficients(rows, UpdateConfig(normalise="token_sum_const", constant=50.0))
    np.testing.assert_allclose(first, [0, 0.01, 0.01, 0.01])
    np.testing.assert_allclose(second, [0, 0.01])


def test_rows_without_advantage_stay_in_the_denominator():
    rows = [plain_row(0, [0, 1]), plain_row(1, [0, 1, 1, 1], advantage=0.0)]
    assert coefficients(rows, UpdateConfig())[0].tolist() == [0, 0.25]
    assert rows[0].live
    assert not rows[1].live


@pytest.mark.parametrize("normalise", ["token_mean", "sequence_mean"])
def test_task_equal_gives_every_group_the_same_mass(normalise):
    config = UpdateConfig(normalise=normalise, task_equal=True)
    rows = [plain_row(0, [0, 1, 1, 1]), plain_row(0, [0, 1]), plain_row(1, [0, 1, 1])]
    mass = np.zeros(2)
    scaled = equalise_tasks(rows, config)
    for row, coefficient in zip(scaled, coefficients(scaled, config), strict=True):
        mass[row.task] += coefficient.sum()
    np.testing.assert_allclose(mass, [0.5, 0.5])
    # token_mean: groups of 4 and 2 tokens, mean 3; otherwise groups of 2 and 1 rows, mean 1.5
    want = [0.75, 0.75, 1.5]
    np.testing.assert_allclose([r.weight[-1] for r in scaled], want)


def groups_of(*sizes, dead=()):
    return [
        plain_row(task, [0] + [1] * size, advantage=0.0 if task in dead else 1.0)
        for task, size in enumerate(sizes)
    ]


def test_minibatches_hold_whole_groups_of_equal_mass():
    rows = groups_of(5, 4, 3, 2) + groups_of(5, 4, 3, 2)  # groups of 10, 8, 6, 4 tokens
    parts = split_minibatches(rows, 2, False, generator(0))
    tasks = [sorted({rows[i].task for i in part}) for part in parts]
    assert sorted(tasks) == [[0, 3], [1, 2]]
    assert sorted(i for part in parts for i in part) == list(range(8))


def test_groups_with_a_gradient_are_spread_before_the_others():
    # Live groups 0 and 1 of 6 and 2 tokens must part although 2 and 3 together weigh more.
    rows = groups_of(6, 2, 5, 1, dead=(2, 3))
    for seed in range(5):
        parts = split_minibatches(rows, 2, False, generator(seed))
        assert sorted(sorted(part) for part in parts) == [[0, 3], [1, 2]]


def test_minibatch_order_is_drawn_and_repeats_for_the_same_stream():
    rows = groups_of(3, 3, 3, 3)
    deals = [str(split_minibatches(rows, 2, False, generator(seed))) for seed in range(20)]
    again = [str(split_minibatches(rows, 2, False, generator(seed))) for seed in range(20)]
    assert deals == again
    assert len(set(deals)) > 3


def test_fewer_groups_than_minibatches_make_fewer_minibatches():
    assert split_minibatches(groups_of(3), 2, False, generator(0)) == [[0]]
    assert split_minibatches([], 2, False, generator(0)) == []


def test_every_prefix_policy_covers_each_generated_token_of_a_random_tree():
    tree = random_tree(3, roots=4, branches=5)
    rollouts = tree.retained()
    advantages = generator(3).normal(size=len(rollouts))
    generated = sum(len(t.action) for t in tree.turns)
    counts = {
        policy: sum(
            int(row.trained.sum())
            for row in training_rows(
                0, tree, rollouts, advantages, UpdateConfig(prefix_policy=policy)
            )
        )
        for policy in ("soft", "hard", "suffix")
    }
    assert counts["hard"] == counts["suffix"] == generated
    assert counts["soft"] > generated
