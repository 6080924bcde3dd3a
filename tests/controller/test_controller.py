import io
from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from rail.controller.controller import Controller, Decision
from rail.controller.replay import Trace
from rail.controller.settings import ControllerSettings
from rail.interventions import InterventionSpace

World = Callable[[int, int], list[Trace]]
PROBE = np.random.default_rng(1).normal(size=(6, 4))


def controller(space: InterventionSpace, seed: int = 0, **changes: Any) -> Controller:
    settings = ControllerSettings(**{"width": 16, **changes})
    return Controller(space, settings, seed, state_size=4)


def advance(made: Controller, world: World, steps: range, count: int = 20) -> None:
    for step in steps:
        made.observe(world(step, count))
        made.close_step(step)


def saved(made: Controller) -> dict[str, Any]:
    """A state as a checkpoint file gives it back, tensors and plain values only."""
    buffer = io.BytesIO()
    torch.save(made.state_dict(), buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def decide(made: Controller, step: int, remaining: int = 40) -> list[Decision]:
    return made.decide(PROBE, remaining=remaining, limits=[24] * len(PROBE), stream=(step, 0))


def test_silent_until_there_is_evidence(space: InterventionSpace):
    made = controller(space, explore_start=0.0, explore_floor=0.0)
    mean, spread = made.predict(PROBE)
    assert mean.shape == spread.shape == (6, 9)
    assert not mean.any()
    assert all(decision.service.cell == -1 for decision in decide(made, 0))


def test_learns_which_regime_pays_where(space: InterventionSpace, world: World):
    made = controller(space)
    advance(made, world, range(20))
    states = np.zeros((2, 4))
    states[:, 0] = [1.0, -1.0]  # .15 tanh(1) = .114
    mean, _ = made.predict(states)
    assert mean[0, :3].min() > 0.05 > -0.05 > mean[0, 3:].max()
    assert mean[1, 3:].min() > 0.05 > -0.05 > mean[1, :3].max()


def test_labels_are_scored_before_they_are_learned(space: InterventionSpace, world: World):
    made = controller(space)
    advance(made, world, range(3))
    traces = world(3, 20)
    expected = made.predict(np.array([t.state for t in traces]))[0]
    mean, spread = made.observe(traces)
    cells = [t.cell for t in traces]
    np.testing.assert_allclose(mean, expected[np.arange(20), cells], atol=1e-6)
    assert (spread > 0).all()
    made.close_step(3)
    assert not np.allclose(
        made.predict(np.array([t.state for t in traces]))[0], expected, atol=1e-4
    )


def test_the_first_labels_are_scored_as_zero(space: InterventionSpace, world: World):
    made = controller(space)
    mean, _ = made.observe(world(0, 20))
    assert not mean.any()
    figures = made.close_step(0)
    assert isnan(figures["controller_r"])
    assert figures["controller_labels"] == 20


def test_only_the_last_label_of_a_sweep_counts_for_promotion(space: InterventionSpace):
    made = controller(space)
    nested = [Trace(np.zeros(4), cell, 0.1, 0, cell == 2) for cell in range(3)]
    made.observe(nested)
    assert len(made.replay) == 3
    assert made.deployment.figures().count == 1


def test_an_earned_promotion(space: InterventionSpace, world: World):
    made = controller(space)
    advance(made, world, range(16))
    assert made.live
    assert made.deployment.promoted_by == "criterion"
    assert 5 <= made.deployment.promoted_step < 16


def test_noise_is_refused_and_then_forced(space: InterventionSpace):
    made = controller(space)
    random = np.random.default_rng(3)
    for step in range(16):
        assert not made.live
        gains = 0.1 * random.normal(size=20)
        traces = [Trace(random.normal(size=4), i % 9, float(y), step) for i, y in enumerate(gains)]
        made.observe(traces)
        figures = made.close_step(step)
        assert figures["controller_promoted"] == (step == 15)
    assert (made.deployment.promoted_by, made.deployment.promoted_step) == ("forced", 16)


@pytest.mark.parametrize("stop", [0, 1, 3, 9])
def test_a_resumed_controller_goes_on_bit_for_bit(
    space: InterventionSpace, world: World, stop: int
):
    whole = controller(space)
    advance(whole, world, range(stop))
    if stop:
        decide(whole, stop - 1)
    whole.history.record("a", [1.0, 0.0])
    whole.observe(world(50, 4))  # not yet learned when the state is taken
    resumed = controller(space)
    resumed.load_state_dict(saved(whole))
    again = controller(space)
    again.load_state_dict(saved(resumed))  # a resume of a resume
    for step in range(stop, stop + 3):
        for made in (whole, resumed, again):
            advance(made, world, range(step, step + 1))
        expected, choices = whole.predict(PROBE), decide(whole, step)
        for made in (resumed, again):
            assert made.predict(PROBE)[0].tobytes() == expected[0].tobytes()
            assert made.predict(PROBE)[1].tobytes() == expected[1].tobytes()
            for found, choice in zip(decide(made, step), choices, strict=True):
                assert found.rate == choice.rate
                assert found.service.cell == choice.service.cell
                assert found.service.propensity == choice.service.propensity
    assert again.history["a"] == 0.5
    assert again.deployment.state_dict() == whole.deployment.state_dict()


def test_a_saved_state_does_not_change_while_training_goes_on(
    space: InterventionSpace, world: World
):
    made = controller(space)
    advance(made, world, range(3))
    state, before = made.state_dict(), made.predict(PROBE)[0]
    advance(made, world, range(3, 6))
    restored = controller(space)
    restored.load_state_dict(state)
    assert restored.predict(PROBE)[0].tobytes() == before.tobytes()
    advance(restored, world, range(3, 6))
    assert restored.predict(PROBE)[0].tobytes() == made.predict(PROBE)[0].tobytes()


def test_frozen_stops_learning_at_promotion_but_not_scoring(space: InterventionSpace, world: World):
    made = controller(space, frozen=True, shadow_min=3, shadow_max=3)
    advance(made, world, range(3))
    assert made.live
    before = made.predict(PROBE)[0]
    assert before.any()
    made.observe(world(3, 20))
    figures = made.close_step(3)
    assert isnan(figures["controller_loss"])
    assert figures["controller_labels"] == 60
    assert made.predict(PROBE)[0].tobytes() == before.tobytes()


def test_decisions_lower_the_exploration_rate(space: InterventionSpace):
    made = controller(space)
    rates = [decision.rate for step in range(20) for decision in decide(made, step)]
    assert made.decisions == 120
    assert rates[35] == pytest.approx(0.15)
    assert rates[0] == 0.2
    assert rates[-1] == pytest.approx(0.1)


def test_decisions_stay_inside_the_budget(space: InterventionSpace, world: World):
    made = controller(space)
    advance(made, world, range(8))
    decisions = decide(made, 8, remaining=20)
    cells = [decision.service.cell for decision in decisions]
    assert sum(space[cell].branches for cell in cells if cell >= 0) <= 20
    for decision in decisions:
        assert decision.predictions.shape == decision.spreads.shape == (9,)


def test_regimes_are_swept_least_used_first(space: InterventionSpace):
    made = controller(space)
    assert made.regime_order() == [0, 1, 2]
    made.observe([Trace(np.zeros(4), cell, 0.0, 0) for cell in (0, 1, 6)])
    assert made.regime_order() == [1, 2, 0]


def test_other_seeds_give_other_controllers(space: InterventionSpace, world: World):
    first, second = controller(space, seed=0), controller(space, seed=1)
    for made in (first, second):
        advance(made, world, range(3))
    assert not np.array_equal(first.predict(PROBE)[0], second.predict(PROBE)[0])


def test_nothing_to_predict_or_learn(space: InterventionSpace):
    made = controller(space)
    assert made.predict(np.zeros((0, 4)))[0].shape == (0, 9)
    assert len(made.observe([])[0]) == 0
    assert isnan(made.refit(0))
    assert made.decide(np.zeros((0, 4)), remaining=8, limits=[], stream=(0, 0)) == []


@pytest.mark.parametrize(
    "bad",
    [Trace(np.zeros(5), 0, 0.1, 2), Trace(np.zeros(4), 9, 0.1, 2), Trace(np.zeros(4), -1, 0.1, 2)],
)
def test_a_trace_that_does_not_fit_is_refused(space: InterventionSpace, bad: Trace):
    made = controller(space)
    with pytest.raises(ValueError, match=r"trace of step 2: .* expected \(4,\) and 0\.\.8"):
        made.observe([bad])
    assert len(made.replay) == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shadow_min": 9, "shadow_max": 4}, "shadow_min 9 exceeds shadow_max 4"),
        ({"explore_start": 0.05}, "explore_floor 0.1 exceeds explore_start 0.05"),
        ({"half_live": 8}, "Extra inputs are not permitted"),
        ({"half_life": 0}, "greater than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str):
    with pytest.raises(ValidationError, match=message):
        ControllerSettings(**changes)
