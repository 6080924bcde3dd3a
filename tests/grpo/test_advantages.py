"""Group advantages against hand arithmetic."""

import numpy as np
import pytest

from rail.config import UpdateConfig
from rail.errors import DataError
from rail.grpo.advantages import group_advantages, is_mixed

STANDARD = UpdateConfig()
DR_GRPO = UpdateConfig(advantage_std=False)


def test_lone_success_of_sixteen_stands_out():
    # p = 1/16; s^2 = p (1 - p) 16/15 = 1/16, s = 1/4: A = (15/16) / (1/4 + 1e-4), -(1/16) / (...)
    got = group_advantages([1.0] + [0.0] * 15, STANDARD)
    np.testing.assert_allclose(got, [0.9375 / 0.2501] + [-0.0625 / 0.2501] * 15, rtol=1e-12)


def test_without_std_only_the_mean_is_removed():
    np.testing.assert_allclose(
        group_advantages([1.0, 0.0, 0.0, 0.0], DR_GRPO), [0.75, -0.25, -0.25, -0.25]
    )


@pytest.mark.parametrize(
    "rewards", [[], [1.0], [0.0, 0.0], [0.3, 0.3, 0.3], [0.1 + 0.2, 0.3], [1.0, 1.0 - 5e-7]]
)
def test_groups_without_contrast_give_exactly_zero(rewards):
    for config in (STANDARD, DR_GRPO):
        got = group_advantages(rewards, config)
        assert got.shape == (len(rewards),)
        assert (got == 0.0).all()
    assert not is_mixed(rewards)


def test_a_small_real_difference_is_kept():
    got = group_advantages([0.0, 2e-6], DR_GRPO)
    np.testing.assert_allclose(got, [-1e-6, 1e-6])


def test_weights_move_the_baseline():
    # w = 1/2, 1/4, 1/4: m = 1/2; s^2 = (1/4) / (1 - 3/8) = 2/5
    got = group_advantages([1.0, 0.0, 0.0], STANDARD, weights=[2.0, 1.0, 1.0])
    scale = np.sqrt(0.4) + 1e-4
    np.testing.assert_allclose(got, [0.5 / scale, -0.5 / scale, -0.5 / scale], rtol=1e-12)


def test_equal_weights_change_nothing():
    rewards = [1.0, 0.0, 0.0, 0.5, 1.0]
    np.testing.assert_allclose(
        group_advantages(rewards, STANDARD, weights=[7.0] * 5),
        group_advantages(rewards, STANDARD),
        rtol=1e-14,
    )


def test_better_rollouts_get_larger_advantages():
    got = group_advantages([0.0, 0.5, 1.0], STANDARD)
    assert got[0] < got[1] < got[2]
    assert abs(got.sum()) < 1e-12


@pytest.mark.parametrize(
    ("rewards", "weights"),
    [
        ([1.0, float("nan")], None),
        ([1.0, 0.0], [1.0]),
        ([1.0, 0.0], [1.0, 0.0]),
        ([[1.0, 0.0]], None),
    ],
)
def test_bad_rewards_and_weights_are_refused(rewards, weights):
    with pytest.raises(DataError, match="expected"):
        group_advantages(rewards, STANDARD, weights)
