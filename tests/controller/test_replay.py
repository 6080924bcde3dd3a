import numpy as np
import pytest

from rail.controller.replay import Replay, Trace, recency_weights


def trace(value: float, cell: int = 0, step: int = 0, gain: float = 0.1) -> Trace:
    return Trace(np.array([value, -value]), cell, gain, step)


def test_weights_halve_every_half_life():
    steps = np.array([10, 2, -6, 9])
    expected = [1.0, 0.5, 0.25, 2 ** (-1 / 8)]
    np.testing.assert_allclose(recency_weights(steps, now=10, half_life=8.0), expected)


def test_the_oldest_traces_fall_out():
    replay = Replay(3)
    replay.extend([trace(i, cell=i, step=i) for i in range(2)])
    replay.extend([trace(i, cell=i, step=i) for i in range(2, 5)])
    assert len(replay) == 3
    assert replay.states().tolist() == [[2, -2], [3, -3], [4, -4]]
    assert replay.cells().tolist() == replay.steps().tolist() == [2, 3, 4]
    assert replay.seen == 5
    assert list(replay.numbers) == [2, 3, 4]


def test_newest_states():
    replay = Replay(3)
    replay.extend([trace(i) for i in range(4)])
    assert replay.newest(2).tolist() == [[2, -2], [3, -3]]
    assert replay.newest(10).tolist() == [[1, -1], [2, -2], [3, -3]]
    assert len(replay.newest(0)) == 0


def test_counts_cover_every_cell():
    replay = Replay(10)
    assert replay.counts(4).tolist() == [0, 0, 0, 0]
    replay.extend([trace(0, cell=c) for c in (2, 0, 2)])
    assert replay.counts(4).tolist() == [1, 0, 2, 0]


@pytest.mark.parametrize("bad", [trace(np.nan), trace(0.0, gain=np.nan), trace(0.0, gain=np.inf)])
def test_a_label_that_is_no_number_is_refused_whole(bad: Trace):
    replay = Replay(4)
    with pytest.raises(ValueError, match="finite"):
        replay.extend([trace(1.0), bad])
    assert len(replay) == replay.seen == 0


def test_state_round_trip():
    replay = Replay(3)
    replay.extend([Trace(np.array([i / 3]), i, i / 7, i, i % 2 == 0) for i in range(5)])
    restored = Replay(3)
    restored.load_state_dict(replay.state_dict())
    assert restored.states().tobytes() == replay.states().tobytes()
    assert restored.gains().tobytes() == replay.gains().tobytes()
    assert restored.cells().tolist() == [2, 3, 4]
    assert restored.state_dict()["last_of_sweep"] == [True, False, True]
    assert restored.numbers == replay.numbers


def test_state_round_trip_of_an_empty_buffer():
    restored = Replay(3)
    restored.load_state_dict(Replay(3).state_dict())
    assert (len(restored), restored.seen) == (0, 0)
