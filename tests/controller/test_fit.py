import numpy as np
import pytest
import torch

from rail.controller.fit import Fitter, gather, half_samples, weighted_huber
from rail.controller.network import HeadEnsemble


def fitter(network: HeadEnsemble) -> Fitter:
    return Fitter(network, learning_rate=1e-2, weight_decay=0.0, delta=0.1)


def test_weighted_huber_by_hand():
    # errors .05 and -.3: .05^2 / 2 = .00125; .1 (.3 - .05) = .025
    loss = weighted_huber(
        torch.tensor([[0.05, -0.3]]), torch.zeros(1, 2), torch.tensor([[1.0, 0.5]]), delta=0.1
    )
    assert loss.item() == pytest.approx((0.00125 + 0.5 * 0.025) / 1.5)


def test_weighted_huber_adds_heads_each_by_its_own_weight():
    predictions, targets = torch.full((2, 1), 0.1), torch.zeros(2, 1)
    loss = weighted_huber(predictions, targets, torch.tensor([[1e-3], [5.0]]), delta=0.1)
    assert loss.item() == pytest.approx(2 * 0.005)


def test_half_samples_are_fair_and_kept_for_good():
    coins = half_samples(range(4000), 3, seed=5)
    assert coins.shape == (3, 4000)
    # sd of a share of 4,000 fair coins is .008
    assert np.abs(coins.mean(axis=1) - 0.5).max() < 0.032
    assert np.abs((coins[0] ^ coins[1]).mean() - 0.5) < 0.032
    np.testing.assert_array_equal(half_samples(range(1000, 1100), 3, seed=5), coins[:, 1000:1100])
    assert not np.array_equal(half_samples(range(4000), 3, seed=6), coins)


def test_gather_pads_to_the_longest_head():
    chosen = np.array([[True, False, True], [False, True, False]])
    rows, mask = gather(chosen)
    assert rows[0].tolist() == [0, 2]
    assert rows[1, 0] == 1
    assert mask.tolist() == [[1, 1], [1, 0]]


def test_gather_gives_everything_to_a_head_that_drew_nothing():
    rows, mask = gather(np.array([[False, False], [True, False]]))
    assert rows[0].tolist() == [0, 1]
    assert mask.tolist() == [[1, 1], [1, 0]]


INPUTS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
EVERYTHING = np.ones((2, 3), dtype=bool)


def test_fit_finds_the_gains():
    network = HeadEnsemble(3, 8, 2, seed=0)
    gains = np.array([0.2, -0.1, 0.05])
    loss = fitter(network).fit(INPUTS, gains, np.ones(3), EVERYTHING, steps=200)
    np.testing.assert_allclose(network.predict(INPUTS)[0], gains, atol=0.01)
    assert loss < 1e-4


def test_the_loss_is_the_one_before_the_last_step():
    network = HeadEnsemble(3, 8, 2, seed=0)
    loss = fitter(network).fit(INPUTS, np.array([0.2, 0.0, 0.0]), np.ones(3), EVERYTHING, steps=1)
    assert loss == pytest.approx(0.1 * (0.2 - 0.05) / 3)  # zero predictions


def test_recent_labels_win_over_old_ones():
    network = HeadEnsemble(3, 8, 2, seed=0)
    inputs, gains = np.repeat(INPUTS[:1], 3, axis=0), np.array([-0.3, -0.3, 0.2])
    fitter(network).fit(inputs, gains, np.array([0.05, 0.05, 1.0]), EVERYTHING, steps=300)
    # weighted Huber minimum: 1 * (.2 - f) = .1 * .1, so f = .19
    np.testing.assert_allclose(network.predict(INPUTS[:1])[0], 0.19, atol=0.01)


def test_heads_learn_from_their_own_traces():
    network = HeadEnsemble(3, 8, 2, seed=0)
    chosen = np.array([[True, False, False], [False, True, True]])
    inputs, gains = np.repeat(INPUTS[:1], 3, axis=0), np.array([0.2, -0.2, -0.2])
    fitter(network).fit(inputs, gains, np.ones(3), chosen, steps=300)
    mean, spread = network.predict(INPUTS[:1])
    assert mean[0] == pytest.approx(0.0, abs=0.02)
    assert spread[0] == pytest.approx(0.2, abs=0.02)


def test_a_refit_starts_from_the_present_weights():
    gains = np.array([0.2, -0.1, 0.05])
    once, twice = HeadEnsemble(3, 8, 2, seed=0), HeadEnsemble(3, 8, 2, seed=0)
    fitter(once).fit(INPUTS, gains, np.ones(3), EVERYTHING, steps=20)
    fit = fitter(twice)
    for _ in range(2):
        fit.fit(INPUTS, gains, np.ones(3), EVERYTHING, steps=10)
    assert all(map(torch.equal, once.parameters(), twice.parameters()))
