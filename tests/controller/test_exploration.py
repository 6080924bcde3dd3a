from dataclasses import replace

import numpy as np
import pytest

from rail.controller.exploration import (
    SKIP,
    Chance,
    Round,
    bits,
    coverage,
    exploration_rates,
    least_used_first,
    serve,
    toss,
)

COSTS = np.array([4, 8, 12] * 3)
NONE = np.zeros(0, dtype=np.int64)


def chance(coins: list[bool], places: list[float] | None = None, uniform: float = 0.0) -> Chance:
    order = list(range(len(coins))) if places is None else places
    return Chance(np.array(coins), np.array(order, dtype=float), np.full(len(coins), uniform))


def problem(
    predictions: list[list[float]], costs: list[int], remaining: int, **changes: object
) -> Round:
    values: dict[str, object] = {
        "predictions": np.array(predictions),
        "costs": np.array(costs),
        "remaining": remaining,
        "limits": np.full(len(predictions), 99),
        "counts": np.zeros(len(costs), dtype=np.int64),
        "gate": 0.02,
    }
    return Round(**{**values, **changes})  # pyright: ignore[reportArgumentType]


def random_problem(seed: int) -> tuple[Round, np.ndarray]:
    random = np.random.default_rng(seed)
    anchors = 5
    made = Round(
        predictions=random.normal(0.03, 0.05, size=(anchors, 9)),
        costs=COSTS,
        remaining=int(random.integers(10, 50)),
        limits=random.choice([0, 6, 24], size=anchors),
        counts=random.integers(0, 30, size=9),
        gate=0.02,
    )
    return made, random.uniform(0.1, 0.6, size=anchors)


def test_rates_decay_to_the_floor():
    rates = exploration_rates(0, 200, 9, start=0.2, scale=0.3, floor=0.1)
    # .3 sqrt(9 / t): above .2 until t = 20, .15 at t = 36, .1 at t = 81
    assert rates[[0, 19]].tolist() == [0.2, 0.2]
    assert rates[35] == pytest.approx(0.15)
    assert rates[80:].tolist() == pytest.approx([0.1] * 120)
    later = exploration_rates(35, 1, 9, start=0.2, scale=0.3, floor=0.1)
    assert later.tolist() == pytest.approx([0.15])


def test_coins_land_at_their_rates():
    rates = np.repeat([0.1, 0.4], 5000)
    coins = toss(rates, np.random.default_rng(0)).coins
    assert coins[:5000].mean() == pytest.approx(0.1, abs=0.017)  # 4 sd
    assert coins[5000:].mean() == pytest.approx(0.4, abs=0.028)


def test_coverage_by_hand():
    counts = np.array([0, 3, 8, 0])
    eligible = np.array([True, True, True, False])
    # 1, 1/2, 1/3 of 11/6
    np.testing.assert_allclose(coverage(counts, eligible), [6 / 11, 3 / 11, 2 / 11, 0.0])
    assert not coverage(counts, np.zeros(4, dtype=bool)).any()


def test_greedy_takes_the_best_cell_above_the_gate():
    made = problem([[0.03, 0.05], [0.02, 0.01]], [4, 8], remaining=99)
    found = serve(made, np.array([0.1, 0.1]), chance([False, False]))
    assert [service.cell for service in found] == [1, SKIP]  # .02 does not exceed the gate
    assert [service.draw for service in found] == ["greedy", "greedy"]


def test_the_largest_prediction_is_served_first_and_the_rest_take_what_fits():
    predictions = [[0.05, 0.06], [0.03, 0.50], [0.01, 0.40]]
    made = problem(predictions, [4, 8], remaining=12)
    found = serve(made, np.full(3, 0.1), chance([False] * 3))
    # anchor 1 takes 8; 4 are left: anchor 2's cell of 4 is below the gate; anchor 0 takes 4
    assert [service.cell for service in found] == [0, 1, SKIP]
    assert [service.eligible for service in found] == [0b01, 0b11, 0b01]


def test_explorers_are_served_first_in_the_order_of_their_places():
    predictions = [[0.9, 0.9], [-1.0, -1.0], [-1.0, -1.0]]
    made = problem(predictions, [4, 8], remaining=12)
    tossed = chance([False, True, True], places=[0.0, 0.9, 0.1], uniform=0.99)
    found = serve(made, np.full(3, 0.1), tossed)
    # anchor 2 draws the last of two cells (8), anchor 1 the only one left (4), the greedy starves
    assert [service.cell for service in found] == [SKIP, 0, 1]
    assert [service.draw for service in found] == ["greedy", "explore", "explore"]
    assert [service.eligible for service in found] == [0b00, 0b01, 0b11]


def test_exploring_ignores_the_gate_but_not_the_limits():
    made = problem([[-1.0, -1.0]], [4, 8], remaining=99, limits=np.array([7]))
    found = serve(made, np.array([0.25]), chance([True], uniform=0.99))[0]
    assert (found.cell, found.eligible) == (0, 0b01)
    assert found.probabilities.tolist() == [0.25, 0.0, 0.75]


def test_propensities_by_hand_include_the_cap():
    # Budget 8. Whoever explores is served first.
    made = problem([[0.1, 0.3], [0.2, 0.1]], [4, 8], remaining=8)
    rates = np.array([0.2, 0.4])
    found = serve(made, rates, chance([False, True], uniform=0.0))
    # Anchor 1 explores and draws cell 0 (4 left). Anchor 0 greedy: cell 0, the only one that fits.
    assert [service.cell for service in found] == [0, 0]
    # Anchor 0, had it explored: place 0, before anchor 1, both cells at 1/2.
    np.testing.assert_allclose(found[0].probabilities, [0.8 + 0.2 / 2, 0.2 / 2, 0.0])
    # Anchor 1, had it been greedy: anchor 0 ranks first and takes 8, nothing is left: skip.
    np.testing.assert_allclose(found[1].probabilities, [0.4 / 2, 0.4 / 2, 0.6])
    assert [service.propensity for service in found] == pytest.approx([0.9, 0.2])


@pytest.mark.parametrize("seed", range(4))
def test_propensities_match_brute_force_over_the_anchors_own_coin_and_draw(seed: int):
    made, rates = random_problem(seed)
    random = np.random.default_rng(100 + seed)
    tossed = toss(rates, random)
    draws = 2000
    for anchor, service in enumerate(serve(made, rates, tossed)):
        if anchor % 2:
            continue
        counts = np.zeros(10)
        for own in random.random((draws, 2)):
            coins, uniforms = tossed.coins.copy(), tossed.uniforms.copy()
            coins[anchor], uniforms[anchor] = own[0] < rates[anchor], own[1]
            counts[made.play(Chance(coins, tossed.places, uniforms))[0][anchor]] += 1
        p = service.probabilities
        tolerance = 4.5 * np.sqrt(p * (1 - p) / draws) + 1e-12
        assert (np.abs(counts / draws - p) <= tolerance).all(), (anchor, counts / draws, p)


def test_inverse_propensities_are_unbiased_over_whole_rounds():
    # sum over rounds of 1[b chosen] - P(b) has mean 0 when everyone's chance is drawn anew.
    made, rates = random_problem(11)
    random = np.random.default_rng(0)
    rounds = 800
    residuals = np.zeros((rounds, 5, 10))
    for r in range(rounds):
        for anchor, service in enumerate(serve(made, rates, toss(rates, random))):
            residuals[r, anchor] = -service.probabilities
            residuals[r, anchor, service.cell] += 1
    error = residuals.std(axis=0) / np.sqrt(rounds)
    assert (np.abs(residuals.mean(axis=0)) <= 4.5 * error + 1e-12).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_budget_holds_and_probabilities_add_up(seed: int):
    made, rates = random_problem(seed)
    found = serve(made, rates, toss(rates, np.random.default_rng(seed)))
    spent = [COSTS[s.cell] if s.cell != SKIP else 0 for s in found]
    assert sum(spent) <= made.remaining
    assert all(m <= limit for m, limit in zip(spent, made.limits, strict=True))
    for service in found:
        assert service.probabilities.sum() == pytest.approx(1.0)
        assert service.propensity == service.probabilities[service.cell] > 0
        assert service.cell == SKIP or service.eligible >> service.cell & 1


def test_serving_is_a_function_of_its_arguments():
    made, rates = random_problem(3)
    first, second = (serve(made, rates, toss(rates, np.random.default_rng(1))) for _ in range(2))
    assert [s.cell for s in first] == [s.cell for s in second]


def test_no_anchors_no_service():
    made = replace(problem([[0.0, 0.0]], [4, 8], 8), predictions=np.zeros((0, 2)), limits=NONE)
    assert serve(made, np.zeros(0), chance([])) == []


def test_shapes_that_disagree_are_refused():
    made = problem([[0.1, 0.2]], [4], remaining=8)
    with pytest.raises(ValueError, match="1 anchors x 2 cells"):
        serve(made, np.array([0.1]), chance([False]))


def test_bits():
    assert bits([True, False, False, True]) == 0b1001


def test_the_least_used_regime_comes_first():
    assert least_used_first(np.array([3, 0, 0, 1, 0, 0, 2, 0, 0]), 3) == [1, 2, 0]
    assert least_used_first(np.zeros(9, dtype=np.int64), 3) == [0, 1, 2]
