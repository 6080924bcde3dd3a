from math import isnan

import numpy as np
import pytest

from rail.controller.deployment import Criterion, Deployment

CRITERION = Criterion(window=60, correlation=0.15, agreement=0.55, half_life=8.0)
GAINS = np.tile([0.1, -0.1], 30)


def deployment(shadow_min: int = 5, shadow_max: int = 16) -> Deployment:
    return Deployment(CRITERION, shadow_min=shadow_min, shadow_max=shadow_max)


def filled(predicted: np.ndarray, gained: np.ndarray = GAINS) -> Deployment:
    made = deployment()
    for f, y in zip(predicted, gained, strict=True):
        made.record(float(f), float(y), step=4)
    return made


def test_an_earned_promotion():
    made = filled(GAINS / 2)  # r = 1, MAE .05 against .1, all signs right
    assert made.phase == "shadow"
    assert made.close_step(4)
    assert (made.phase, made.promoted_by, made.promoted_step) == ("live", "criterion", 5)
    assert not made.close_step(5)


def test_no_promotion_before_the_shortest_shadow_phase():
    made = filled(GAINS / 2)
    assert not made.close_step(3)
    assert made.close_step(4)


def test_no_promotion_before_the_window_is_full():
    made = filled(GAINS[:59] / 2, GAINS[:59])
    assert not made.close_step(10)
    made.record(0.05, 0.1, step=10)
    assert made.close_step(11)


right = np.r_[np.full(34, 1.0), np.full(26, -1.0)]


@pytest.mark.parametrize(
    ("predicted", "holds"),
    [
        # 34 of 60 signs right at size .01: r = (34 - 26) / 60 = .133, MAE .0987, agreement .567
        pytest.param(0.01 * np.sign(GAINS) * right, ("error", "agreement"), id="correlation"),
        pytest.param(3 * GAINS, ("correlation", "agreement"), id="error"),  # MAE .2
        # f is .11 or .01: always "gain", MAE .06, r = 1, half the signs right
        pytest.param(GAINS / 2 + 0.06, ("correlation", "error"), id="agreement"),
        pytest.param(np.zeros(60), (), id="silent"),
    ],
)
def test_a_refused_promotion(predicted: np.ndarray, holds: tuple[str, ...]):
    made = filled(predicted)
    figures = made.figures()
    met = {
        "correlation": figures.correlation > 0.15,
        "error": figures.error < figures.constant_error,
        "agreement": figures.agreement > 0.55,
    }
    assert tuple(name for name, value in met.items() if value) == holds
    assert not made.close_step(14)
    assert (made.phase, made.promoted_by, made.promoted_step) == ("shadow", "", -1)


def test_a_forced_promotion():
    made = filled(np.zeros(60))
    assert not made.close_step(14)
    assert made.close_step(15)
    assert (made.phase, made.promoted_by, made.promoted_step) == ("live", "forced", 16)


def test_an_empty_window_is_forced_too():
    assert deployment(shadow_min=0, shadow_max=2).close_step(1)


def test_a_shadow_phase_of_no_steps_starts_live():
    made = deployment(shadow_min=0, shadow_max=0)
    assert (made.phase, made.promoted_by, made.promoted_step) == ("live", "forced", 0)


def test_the_window_keeps_the_last_labels():
    made = filled(np.zeros(60), np.full(60, 9.0))
    for f, y in zip(GAINS / 2, GAINS, strict=True):
        made.record(f, y, step=5)
    assert made.figures().count == 60
    assert made.figures().error == pytest.approx(0.05)


def test_the_constant_to_beat_is_the_recency_weighted_mean():
    made = deployment()
    made.record(0.0, 0.0, step=0)
    made.record(0.0, 0.3, step=16)
    # weights 1/4 and 1: mean .24; (.24 + .06) / 2
    assert made.figures().constant_error == pytest.approx(0.15)
    made.record(0.0, 0.3, step=16)
    # mean .6 / 2.25 = .2667; (.2667 + 2 * .0333) / 3
    assert made.figures().constant_error == pytest.approx(1 / 9)


def test_figures_of_an_empty_window():
    figures = deployment().figures()
    assert figures.count == 0
    assert isnan(figures.error)


def test_state_round_trip():
    made = filled(GAINS / 2)
    restored = deployment()
    restored.load_state_dict(made.state_dict())
    assert restored.figures() == made.figures()
    made.close_step(6)
    again = deployment()
    again.load_state_dict(made.state_dict())
    assert (again.phase, again.promoted_by, again.promoted_step) == ("live", "criterion", 7)
    assert restored.phase == "shadow"
