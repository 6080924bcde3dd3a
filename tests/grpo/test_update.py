"""The update moves the policy the right way, exactly, and repeats bit by bit."""

import copy
import logging

import numpy as np
import pytest
import torch

from rail.config import TrainConfig, UpdateConfig
from rail.errors import CheckpointError, DataError, PolicyError
from rail.grpo.batch import training_rows
from rail.grpo.forward import packing, token_logprobs
from rail.grpo.update import Updater
from rail.seeding import generator
from tests.grpo.trees import branched_tree, random_tree, record, tiny_policy

TRAIN = TrainConfig(learning_rate=1e-3)
MIXED = (1.0, 0.0, 1.0, 0.0, 0.0, 1.0)
FAILED = (0.0,) * 6


def groups(model, rewards=(MIXED, MIXED, MIXED)):
    return [record(model, random_tree(k, 3, 3, r)) for k, r in enumerate(rewards)]


def run(updater, trees, seed=0):
    return updater.step(trees, [None] * len(trees), generator(seed, "update"))


def weights_of(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()]).clone()


def scores(model, tree):
    config = UpdateConfig(packing="padded")
    rollouts = tree.retained()
    rows = training_rows(0, tree, rollouts, np.ones(len(rollouts)), config)
    with packing(model, config), torch.no_grad():
        flat = token_logprobs(model, rows, config).logprob
    return [float(part.mean()) for part in flat.split([int(r.trained.sum()) for r in rows])]


def test_rewarded_rollouts_become_likelier_and_failed_ones_less():
    model = tiny_policy()
    tree = record(model, branched_tree((1.0, 0.0, 0.0)))
    before = scores(model, tree)
    updater = Updater(model, TRAIN, UpdateConfig(prefix_policy="suffix"))
    for k in range(5):
        run(updater, [tree], k)
    after = scores(model, tree)
    assert after[0] > before[0] + 0.01
    assert after[1] < before[1] - 0.01


def test_first_minibatch_sees_the_policy_that_sampled():
    model = tiny_policy()
    result = run(Updater(model, TRAIN, UpdateConfig()), groups(model))
    assert result.max_logprob_gap < 1e-5
    assert result.mean_ratio == pytest.approx(1.0, abs=1e-5)
    assert result.clip_share == pytest.approx(0.0, abs=0.5)
    assert result.steps == 2
    assert result.grad_norm > 0


def test_loss_of_the_first_minibatch_by_hand():
    # Ratio 1: loss = -mean of A over tokens. Advantages 2/3, -1/3, -1/3 (no std), tokens 4, 2, 3.
    model = tiny_policy()
    tree = record(model, branched_tree((1.0, 0.0, 0.0)))
    result = run(Updater(model, TRAIN, UpdateConfig(advantage_std=False)), [tree])
    assert result.loss == pytest.approx(-(4 * 2 - 2 - 3) / 3 / 9, abs=1e-6)
    np.testing.assert_allclose(result.advantages[0], [2 / 3, -1 / 3, -1 / 3])
    assert (result.steps, result.trained_tokens) == (1, 9)
    assert result.trained_leaves_per_task == 3.0
    assert result.mixed_share_update == 1.0


def test_gap_between_sampler_and_trainer_is_reported(caplog):
    model = tiny_policy()
    trees = groups(model)
    for turn in trees[0].turns:
        turn.logprob = turn.logprob - 0.25
    with caplog.at_level(logging.WARNING):
        result = run(Updater(model, TRAIN, UpdateConfig(minibatches=1)), trees)
    assert result.max_logprob_gap == pytest.approx(0.25, abs=1e-4)
    assert 1.0 < result.mean_ratio < np.exp(0.25)
    assert "log-probabilities differ" in caplog.text


def step_weights(rewards, **options):
    model = tiny_policy()
    result = run(Updater(model, TRAIN, UpdateConfig(**options)), groups(model, rewards))
    return weights_of(model), result


def test_tree_and_padded_updates_agree():
    tree, first = step_weights((MIXED, MIXED, FAILED))
    padded, second = step_weights((MIXED, MIXED, FAILED), packing="padded")
    assert first.grad_norm == pytest.approx(second.grad_norm, rel=1e-5)
    assert first.loss == pytest.approx(second.loss, abs=1e-6)
    assert first.clip_share == second.clip_share
    # Adam divides by the gradient's size, so weights with tiny gradients amplify rounding.
    assert (tree - padded).abs().max() < 1e-5


def test_dead_groups_are_not_run_but_count_in_the_denominator():
    _, alone = step_weights((MIXED,), minibatches=1)
    _, beside = step_weights((MIXED, FAILED), minibatches=1)
    share = alone.trained_tokens / beside.trained_tokens
    assert share < 1.0
    assert beside.grad_norm == pytest.approx(alone.grad_norm * share, rel=1e-5)
    assert beside.loss == pytest.approx(alone.loss * share, rel=1e-5)
    assert beside.mixed_share_update == 0.5


def test_dead_minibatches_make_no_step():
    # One group with a gradient: its minibatch steps, the other would move by momentum alone.
    model = tiny_policy()
    updater = Updater(model, TRAIN, UpdateConfig())
    assert run(updater, groups(model)).steps == 2
    assert run(updater, groups(model, (MIXED, FAILED, FAILED))).steps == 1
    before = weights_of(model)
    result = run(updater, groups(model, (FAILED, FAILED)))
    assert (result.steps, result.loss, result.grad_norm, result.mean_ratio) == (0, 0.0, 0.0, 1.0)
    assert torch.equal(weights_of(model), before)


def test_two_optimizer_steps_whatever_the_number_of_groups():
    for count in (2, 3, 5):
        assert step_weights((MIXED,) * count)[1].steps == 2


def test_rollouts_that_are_not_retained_have_no_influence():
    def after(spoil):
        model = tiny_policy()
        tree = record(model, branched_tree((1.0, 0.0, 0.0)))
        tree.trajectories[2].retained = False
        tree.trajectories[2].reward = spoil
        result = run(Updater(model, TRAIN, UpdateConfig()), [tree])
        assert len(result.advantages[0]) == 2
        return weights_of(model)

    assert torch.equal(after(0.0), after(1.0))


def test_given_advantages_replace_the_baseline():
    model = tiny_policy()
    tree = record(model, branched_tree((0.0, 0.0, 0.0)))
    updater = Updater(model, TRAIN, UpdateConfig())
    result = updater.step([tree], [np.array([1.0, -1.0, 0.0])], generator(0))
    assert result.steps == 1
    assert result.advantages[0].tolist() == [1.0, -1.0, 0.0]


def test_tree_weights_enter_baseline_and_tokens():
    model = tiny_policy()
    tree = record(model, branched_tree((1.0, 0.0, 0.0)))
    updater = Updater(model, TRAIN, UpdateConfig(advantage_std=False))
    result = updater.step([tree], [None], generator(0), [np.array([2.0, 1.0, 1.0])])
    # A = 1/2, -1/2, -1/2; loss = -(2 x 4 - 2 - 3) / 2 over 2 x 4 + 2 + 3
    np.testing.assert_allclose(result.advantages[0], [0.5, -0.5, -0.5])
    assert result.loss == pytest.approx(-1.5 / 13, abs=1e-6)


def test_importance_weights_enter_the_numerator_only():
    model = tiny_policy()
    tree = record(model, branched_tree((1.0, 0.0, 0.0)))
    for turn in tree.turns:
        turn.logprob_sampled = turn.logprob - 5.0
    config = UpdateConfig(advantage_std=False, importance_cap=2.0)
    result = run(Updater(model, TRAIN, config), [tree])
    assert result.loss == pytest.approx(2 * -(4 * 2 - 2 - 3) / 3 / 9, abs=1e-6)


def test_kl_term_keeps_dead_groups_and_pulls_back_to_the_reference():
    model = tiny_policy()
    updater = Updater(model, TRAIN, UpdateConfig(kl_weight=0.5))
    first = run(updater, groups(model, (FAILED, FAILED)))
    assert first.steps == 2  # run, though the policy is still the reference
    assert first.kl == pytest.approx(0.0, abs=1e-6)
    start = weights_of(tiny_policy())
    with torch.no_grad():
        for k, parameter in enumerate(model.parameters()):
            parameter += 0.05 * (-1) ** k
    gone = run(updater, groups(model, (FAILED, FAILED)))
    assert gone.kl > 1e-3
    values = [gone.kl, *(run(updater, groups(model, (FAILED, FAILED))).kl for _ in range(4))]
    assert values[-1] < values[0]
    assert not torch.equal(weights_of(model), start)


def test_other_temperatures_measure_their_own_old_policy():
    # The sampler's T = 1 log-probabilities would give ratios far from 1 at T = 0.5.
    model = tiny_policy()
    result = run(Updater(model, TRAIN, UpdateConfig(logp_temperature=0.5)), groups(model))
    assert result.max_logprob_gap < 1e-5


def test_resuming_repeats_the_run_bit_by_bit():
    def trained(cuts, kl_weight=0.0):
        config = UpdateConfig(kl_weight=kl_weight)
        model = tiny_policy()
        updater = Updater(model, TRAIN, config)
        trees = groups(model, (MIXED, MIXED))
        for k in range(3):
            run(updater, trees, k)
            if k in cuts:
                saved, state = weights_of(model), updater.state_dict()
                fresh = tiny_policy(seed=99)
                updater = Updater(fresh, TRAIN, config)
                updater.load_state_dict(state)
                fresh.load_state_dict(model.state_dict())
                model = fresh
                assert torch.equal(weights_of(model), saved)
        return weights_of(model)

    whole = trained(())
    assert torch.equal(trained((0,)), whole)
    assert torch.equal(trained((0, 1)), whole)
    assert not torch.equal(whole, trained((), kl_weight=0.3))
    assert torch.equal(trained((), kl_weight=0.3), trained((1,), kl_weight=0.3))


def test_a_saved_state_stays_as_it_was():
    model = tiny_policy()
    updater = Updater(model, TRAIN, UpdateConfig())
    trees = groups(model, (MIXED,))
    run(updater, trees)
    state, weights = updater.state_dict(), copy.deepcopy(model.state_dict())
    ends = []
    for _ in range(2):
        updater.load_state_dict(state)
        model.load_state_dict(weights)
        run(updater, trees, 1)
        ends.append(weights_of(model))
    assert torch.equal(ends[0], ends[1])


def test_state_with_another_reference_is_refused():
    without = Updater(tiny_policy(), TRAIN, UpdateConfig()).state_dict()
    updater = Updater(tiny_policy(), TRAIN, UpdateConfig(kl_weight=0.1))
    with pytest.raises(CheckpointError, match="without a KL reference"):
        updater.load_state_dict(without)


def test_global_random_state_is_neither_used_nor_set():
    def state():
        numpy = np.random.get_state(legacy=False)  # noqa: NPY002 - looks at it, draws nothing
        return torch.random.get_rng_state(), torch.from_numpy(numpy["state"]["key"].astype(int))

    model = tiny_policy()
    trees = groups(model)
    before = state()
    run(Updater(model, TRAIN, UpdateConfig(kl_weight=0.1)), trees)
    for old, new in zip(before, state(), strict=True):
        assert torch.equal(old, new)


def test_gradients_that_are_not_finite_stop_the_run_and_leave_the_weights():
    model = tiny_policy()
    trees = groups(model)
    with torch.no_grad():
        next(model.parameters())[3] = 1e30  # its square overflows in the norm
    before = weights_of(model)
    with pytest.raises(PolicyError, match="finite"):
        run(Updater(model, TRAIN, UpdateConfig(minibatches=1)), trees)
    assert torch.equal(weights_of(model), before)


def test_arguments_of_different_lengths_are_refused():
    model = tiny_policy()
    updater = Updater(model, TRAIN, UpdateConfig())
    with pytest.raises(DataError, match="1 trees, 0 advantages"):
        updater.step(groups(model, (MIXED,)), [], generator(0))


def test_trees_without_retained_rollouts_are_passed_over():
    model = tiny_policy()
    trees = groups(model)
    for trajectory in trees[1].trajectories:
        trajectory.error_type = "EnvError"
    result = run(Updater(model, TRAIN, UpdateConfig()), trees)
    assert [len(a) for a in result.advantages] == [6, 0, 6]
    assert result.trained_leaves_per_task == 6.0
    assert run(Updater(model, TRAIN, UpdateConfig()), []).steps == 0


def test_gradient_clipping_reports_the_norm_before_it():
    _, free = step_weights((MIXED, MIXED))
    _, bound = step_weights((MIXED, MIXED), max_grad_norm=free.grad_norm / 100, minibatches=1)
    _, whole = step_weights((MIXED, MIXED), minibatches=1)
    assert bound.grad_norm == pytest.approx(whole.grad_norm)


def test_learning_rate_zero_changes_nothing():
    model = tiny_policy()
    before = weights_of(model)
    run(Updater(model, replace_rate(0.0), UpdateConfig()), groups(model))
    assert torch.equal(weights_of(model), before)


def replace_rate(rate):
    return TRAIN.model_copy(update={"learning_rate": rate})
