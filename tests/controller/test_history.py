import pytest

from rail.controller.history import SuccessHistory


def test_running_success_by_hand():
    history = SuccessHistory(decay=0.9)
    assert history["a"] == 0.5
    history.record("a", [1.0, 0.0, 0.0, 0.0])
    assert history["a"] == 0.25
    assert history["stranger"] == 0.25
    history.record("a", [1.0, 1.0])
    assert history["a"] == pytest.approx(0.9 * 0.25 + 0.1)
    history.record("b", [0.0])
    assert history["b"] == 0.0
    assert history["stranger"] == pytest.approx(0.9 * (0.9 * 0.25 + 0.1))


def test_a_group_without_verdicts_is_no_visit():
    history = SuccessHistory(decay=0.9)
    history.record("a", [])
    assert history["a"] == 0.5


def test_state_round_trip_is_a_copy():
    history = SuccessHistory(decay=0.5)
    history.record("a", [1.0])
    saved = history.state_dict()
    history.record("a", [0.0])
    restored = SuccessHistory(decay=0.5)
    restored.load_state_dict(saved)
    assert (restored["a"], restored["b"], history["a"]) == (1.0, 1.0, 0.5)
