"""The clipped surrogate and k3 against hand arithmetic."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rail.config import UpdateConfig
from rail.grpo.loss import k3, surrogate, total

CONFIG = UpdateConfig()  # 0.2, 0.28, dual clip 3


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "slope", "clipped"),
    [
        (1.0, 2.0, -2.0, -2.0, False),
        (1.2, 1.0, -1.2, -1.2, False),
        (1.5, 1.0, -1.28, 0.0, True),  # upper bound
        (0.5, 1.0, -0.5, -0.5, False),  # a likely improvement is never cut from below
        (0.5, -1.0, 0.8, 0.0, True),  # lower bound
        (1.5, -1.0, 1.5, 1.5, False),
        (2.9, -2.0, 5.8, 5.8, False),
        (4.0, -2.0, 6.0, 0.0, True),  # dual clip: 3 x 2
        (1.5, 0.0, 0.0, 0.0, False),
    ],
)
def test_surrogate_and_its_slope_by_hand(ratio, advantage, loss, slope, clipped):
    # d loss / d logprob = d loss / d ratio x ratio: -A ratio inside the bounds, 0 outside.
    logprob = torch.tensor([math.log(ratio) - 1.0], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([-1.0], dtype=torch.float64)
    got = surrogate(logprob, old, torch.tensor([advantage], dtype=torch.float64), CONFIG)
    got.loss.sum().backward()
    assert got.loss.item() == pytest.approx(loss)
    assert logprob.grad is not None
    assert logprob.grad.item() == pytest.approx(slope)
    assert bool(got.clipped) is clipped


def test_bounds_come_from_the_configuration():
    config = UpdateConfig(clip_low=0.1, clip_high=0.5, dual_clip=1.2)
    ratio, advantage = torch.tensor([2.0, 0.5, 2.0]), torch.tensor([1.0, -1.0, -1.0])
    got = surrogate(ratio.log(), torch.zeros(3), advantage, config)
    torch.testing.assert_close(got.loss, torch.tensor([-1.5, 0.9, 1.2]))


@pytest.mark.parametrize("gap", [1e4, -1e4])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_extreme_ratios_stay_finite(gap, advantage):
    logprob = torch.tensor([gap], requires_grad=True)
    got = surrogate(logprob, torch.zeros(1), torch.tensor([advantage]), CONFIG)
    (got.loss + k3(logprob, torch.zeros(1))).sum().backward()
    assert got.loss.isfinite().all()
    assert logprob.grad is not None
    assert logprob.grad.isfinite().all()


def test_k3_by_hand():
    # d = ln 2: 2 - ln 2 - 1; d = 0: 0; d = -ln 2: 1/2 + ln 2 - 1
    got = k3(torch.tensor([0.0, 0.0, math.log(2)]), torch.tensor([math.log(2), 0.0, 0.0]))
    want = torch.tensor([1 - math.log(2), 0.0, math.log(2) - 0.5])
    torch.testing.assert_close(got, want)


@given(st.floats(-30, 0, width=32), st.floats(-30, 0, width=32))
def test_k3_is_never_negative(logprob, reference):
    assert k3(torch.tensor([logprob]), torch.tensor([reference])).item() >= 0.0


@pytest.mark.parametrize("scale", [1e-9, 1e-8, 1e-7, 1e-6, 1e-4])
def test_k3_is_not_negative_by_rounding(scale):
    d = torch.linspace(-1, 1, 2001) * scale
    assert (k3(torch.zeros_like(d), d) >= 0).all()


def test_total_weighs_policy_by_importance_and_kl_not():
    config = UpdateConfig(kl_weight=0.5)
    got = total(
        torch.tensor([1.0, -2.0]),
        torch.tensor([4.0, 0.0]),
        torch.tensor([0.25, 0.75]),
        torch.tensor([2.0, 1.0]),
        config,
    )
    assert got.item() == pytest.approx(0.25 * (2.0 + 2.0) + 0.75 * -2.0)
