from math import isnan

import numpy as np
import pytest

from rail.controller.measures import correlation, measure


def test_every_figure_by_hand():
    predicted = [0.10, 0.00, 0.03, -0.05]
    gained = [0.20, 0.10, -0.10, -0.20]
    figures = measure(predicted, gained, threshold=0.02)
    assert figures.count == 4
    assert figures.error == pytest.approx((0.10 + 0.10 + 0.13 + 0.15) / 4)
    assert figures.constant_error == pytest.approx(0.15)  # the mean gain is 0
    assert figures.agreement == 0.5  # act, skip, act, skip against worth, worth, not, not
    assert figures.worth == 0.5
    assert figures.base_rate == 0.5
    # centred f: .08 -.02 .01 -.07; y has mean 0: sum = .016 - .002 - .001 + .014 = .027
    assert figures.correlation == pytest.approx(0.027 / np.sqrt(0.0118 * 0.1))


def test_base_rate_is_the_better_constant_decision():
    assert measure([0] * 4, [1, -1, -1, -1], 0.0).base_rate == 0.75
    assert measure([0] * 4, [1, 1, 1, -1], 0.0).base_rate == 0.75


def test_the_threshold_itself_is_not_worth_acting():
    figures = measure([0.02], [0.02], threshold=0.02)
    assert (figures.worth, figures.agreement) == (0.0, 1.0)


def test_weights_move_the_constant_only():
    figures = measure([0.0, 0.0], [0.0, 0.3], 0.0, weights=np.array([0.5, 1.0]))
    assert figures.constant_error == pytest.approx(0.15)  # mean .2: (.2 + .1) / 2
    assert figures.error == pytest.approx(0.15)
    plain = measure([0.0, 0.0], [0.0, 0.3], 0.0)
    assert plain.constant_error == pytest.approx(0.15)  # mean .15
    skewed = measure([0.0] * 3, [0.0, 0.0, 0.3], 0.0, weights=np.array([0.0, 0.0, 1.0]))
    assert skewed.constant_error == pytest.approx(0.2)


def test_undefined_figures_are_nan():
    assert isnan(correlation(np.zeros(3), np.arange(3.0)))
    empty = measure([], [], 0.0)
    assert empty.count == 0
    assert isnan(empty.correlation)
    assert isnan(empty.agreement)
