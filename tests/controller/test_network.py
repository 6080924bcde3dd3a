import numpy as np
import pytest
import torch
from torch import nn

from rail.controller.network import HeadEnsemble, Standardiser, normalise


def scrambled(inputs: int, width: int, heads: int) -> HeadEnsemble:
    network = HeadEnsemble(inputs, width, heads, seed=1)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return network


def test_an_untrained_ensemble_predicts_exactly_zero():
    mean, spread = HeadEnsemble(57, 64, 3, seed=0).predict(
        np.random.default_rng(0).normal(size=(20, 57))
    )
    assert not mean.any()
    assert not spread.any()


def test_weights_per_head():
    count = sum(p.numel() for p in HeadEnsemble(57, 64, 3, seed=0).parameters())
    # LayerNorm 2 * 57, then 57 * 64 + 64, 64 * 64 + 64, 64 + 1
    assert count == 3 * (114 + 3712 + 4160 + 65) == 3 * 8051


def test_batched_heads_equal_plain_layers():
    network = scrambled(5, 4, 3)
    inputs = np.random.default_rng(0).normal(size=(7, 5))
    expected = []
    for head in range(3):
        norm, one, two, out = nn.LayerNorm(5), nn.Linear(5, 4), nn.Linear(4, 4), nn.Linear(4, 1)
        with torch.no_grad():
            norm.weight.copy_(network.scale[head, :, 0])
            norm.bias.copy_(network.shift[head, 0])
            layers = ((one, network.weight1, network.bias1), (two, network.weight2, network.bias2))
            for layer, weight, bias in (*layers, (out, network.weight3, network.bias3)):
                layer.weight.copy_(weight[head].T)
                layer.bias.copy_(bias[head, 0])
            plain = nn.Sequential(norm, one, nn.Tanh(), two, nn.Tanh(), out)
            expected.append(plain(torch.from_numpy(inputs).float())[:, 0].numpy())
    mean, spread = network.predict(inputs)
    np.testing.assert_allclose(mean, np.mean(expected, axis=0), atol=1e-5)
    np.testing.assert_allclose(spread, np.std(expected, axis=0), atol=1e-5)


def test_weights_come_from_the_seed_and_leave_the_global_stream_alone():
    before = torch.get_rng_state()
    first, same, other = (HeadEnsemble(5, 4, 2, seed=s).weight1 for s in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    assert not torch.equal(first[0], first[1])
    assert first.abs().max() <= 5**-0.5


def test_normalise_by_hand():
    # mean 2, variance 2/3
    expected = np.array([-1, 0, 1]) / np.sqrt(2 / 3)
    np.testing.assert_allclose(normalise(np.array([[1.0, 2.0, 3.0]]))[0], expected, atol=1e-4)


def test_standardiser_by_hand():
    standardiser = Standardiser(3, sd_floor=0.1, clip=5.0)
    standardiser.update(np.array([[1.0, 0.5, 0.00], [3.0, 0.5, 0.02]]))
    rows = standardiser(np.array([[3.0, 0.7, 0.11], [100.0, -9.0, 0.01]]))
    # mean 2, .5, .01; sd 1, 0 -> .1, .01 -> .1
    np.testing.assert_allclose(rows, [[1.0, 2.0, 1.0], [5.0, -5.0, 0.0]])


def test_standardiser_merges_batches_as_if_seen_at_once():
    random = np.random.default_rng(0)
    rows = random.normal(3.0, 2.0, size=(50, 4))
    pieces = Standardiser(4, sd_floor=0.1, clip=5.0)
    for part in (rows[:1], rows[1:1], rows[1:20], rows[20:]):
        pieces.update(part)
    expected = np.clip((rows - rows.mean(axis=0)) / rows.std(axis=0), -5, 5)
    np.testing.assert_allclose(pieces(rows), expected, atol=1e-12)


def test_standardiser_before_any_data_only_clips():
    assert Standardiser(2, 0.1, 5.0)(np.array([[0.3, -7.0]])).tolist() == [[0.3, -5.0]]


def test_standardiser_state_is_a_copy():
    standardiser = Standardiser(1, 0.1, 5.0)
    standardiser.update(np.array([[1.0], [3.0]]))
    saved = standardiser.state_dict()
    standardiser.update(np.array([[50.0]]))
    restored = Standardiser(1, 0.1, 5.0)
    restored.load_state_dict(saved)
    assert restored(np.array([[3.0]])) == pytest.approx(1.0)
