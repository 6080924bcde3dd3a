from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rail.recoverability import gain, imbalance

COST = 0.005  # lambda; C(b) = m


def outcomes(successes: int, size: int) -> list[float]:
    return [1.0] * successes + [0.0] * (size - successes)


def expected_gain(k: int, p: float, m: int, cost_weight: float) -> float:
    """E[y] for k of 8 base successes and m branches of success p, by enumeration."""
    return sum(
        comb(m, s) * p**s * (1 - p) ** (m - s)
        * gain(outcomes(k, 8), outcomes(s, m), cost_weight * m)
        for s in range(m + 1)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("rewards", "distance"),
    [([0, 0], 0.5), ([1, 1, 1], 0.5), ([0, 1], 0.0), ([1, 0, 0, 0], 0.25), ([0.5, 1.0], 0.25)],
)
def test_imbalance_by_hand(rewards: list[float], distance: float):
    assert imbalance(rewards) == pytest.approx(distance)


def test_gain_by_hand():
    # before 0/8: d = .5; after 3/12: d = .25; cost .005 * 4 = .02.
    assert gain(outcomes(0, 8), outcomes(3, 4), 0.02) == pytest.approx(0.23)
    # before 4/8: d = 0; after 4/12: d = 1/6: spoiling a balanced group loses.
    assert gain(outcomes(4, 8), outcomes(0, 4), 0.02) == pytest.approx(-1 / 6 - 0.02)


@pytest.mark.parametrize(
    ("k", "p", "values"),
    [
        (0, 0.05, (-0.003, -0.015, -0.030)),
        (0, 0.15, (0.030, 0.035, 0.030)),
        (0, 0.30, (0.080, 0.110, 0.120)),
        (0, 0.90, (0.280, 0.410, 0.386)),
        (1, 0.15, (-0.012, -0.028, -0.045)),
        (1, 0.50, (0.105, 0.147, 0.163)),
        (2, 0.90, (0.197, 0.130, 0.050)),
        (8, 0.00, (0.313, 0.460, 0.340)),
        (8, 0.90, (0.013, 0.010, 0.000)),
    ],
)
def test_expected_net_gain_by_enumeration(k: int, p: float, values: tuple[float, ...]):
    found = [expected_gain(k, p, m, COST) for m in (4, 8, 12)]
    assert found == pytest.approx(values, abs=6e-4)


@pytest.mark.parametrize(
    ("k", "p", "values"),
    [
        (0, 0.05, (0.017, 0.025, 0.030)),
        (0, 0.25, (0.083, 0.125, 0.150)),
        (0, 0.50, (0.167, 0.250, 0.300)),
        (0, 0.75, (0.250, 0.375, 0.431)),
        (1, 0.05, (-0.025, -0.038, -0.045)),
        (1, 0.25, (0.042, 0.062, 0.075)),
        (1, 0.50, (0.125, 0.187, 0.223)),
        (1, 0.75, (0.208, 0.300, 0.317)),
        (2, 0.25, (0.0, 0.0, 0.0)),
        (2, 0.50, (0.083, 0.120, 0.140)),
        (2, 0.75, (0.167, 0.192, 0.177)),
        (8, 0.05, (0.317, 0.475, 0.428)),
        (8, 0.25, (0.250, 0.375, 0.431)),
    ],
)
def test_expected_gross_gain_by_enumeration(k: int, p: float, values: tuple[float, ...]):
    found = [expected_gain(k, p, m, 0.0) for m in (4, 8, 12)]
    assert found == pytest.approx(values, abs=6e-4)


@pytest.mark.parametrize("p", [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0])
def test_a_balanced_group_can_only_lose(p: float):
    assert all(expected_gain(4, p, m, COST) < -0.08 for m in (4, 8, 12))


def test_every_budget_and_skip_is_best_somewhere():
    def best(k: int, p: float) -> int:
        return max((0.0, 0), *((expected_gain(k, p, m, COST), m) for m in (4, 8, 12)))[1]

    assert [best(4, 0.5), best(2, 0.9), best(0, 0.15), best(0, 0.3)] == [0, 4, 8, 12]


rewards = st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=16)


@given(rewards, rewards)
def test_the_label_is_symmetric_in_success_and_failure(before: list[float], drawn: list[float]):
    mirrored = gain([1 - r for r in before], [1 - r for r in drawn], 0.02)
    assert gain(before, drawn, 0.02) == pytest.approx(mirrored)


@given(rewards, rewards, rewards)
def test_nested_gross_labels_add_up(before: list[float], first: list[float], more: list[float]):
    # y(m1 + m2) = y(m1 | before) + y(m2 | before + first m1): distances telescope.
    whole = gain(before, [*first, *more], 0.0)
    assert whole == pytest.approx(gain(before, first, 0.0) + gain([*before, *first], more, 0.0))


@pytest.mark.parametrize("bad", [[], [1.5], [-0.1, 0.0]])
def test_what_is_no_reward_is_refused(bad: list[float]):
    with pytest.raises(ValueError, match="reward"):
        imbalance(bad)
