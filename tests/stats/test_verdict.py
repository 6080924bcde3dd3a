"""The verdict rule, in its order."""

import pytest

from rail.seeding import generator
from rail.stats.intervals import Interval, t_interval
from rail.stats.paired import paired
from rail.stats.verdict import initial_policy, is_void, non_inferiority, superiority

NAN = float("nan")


@pytest.mark.parametrize(
    ("estimate", "ci95", "ci90", "word", "qualifiers"),
    [
        (0.040, (0.010, 0.070), (0.015, 0.065), "supported", ()),
        (0.030, (0.001, 0.059), (0.005, 0.055), "supported", ()),  # exactly delta is enough
        (0.040, (0.000, 0.080), (0.006, 0.074), "undecided", ()),  # bound at 0 is not above
        (-0.04, (-0.07, -0.01), (-0.065, -0.015), "contradicted", ()),
        # certainly negative wins over equivalent, though the 90 % interval lies within delta
        (-0.01, (-0.019, -0.001), (-0.017, -0.003), "contradicted", ()),
        (0.000, (-0.029, 0.029), (-0.024, 0.024), "equivalent", ()),
        (0.010, (0.001, 0.019), (0.003, 0.017), "equivalent", ("detectable, below delta",)),
        (0.010, (-0.001, 0.021), (0.001, 0.019), "equivalent", ("detectable, below delta",)),
        (-0.01, (-0.021, 0.001), (-0.019, -0.001), "equivalent", ("detectable, below delta",)),
        (0.000, (-0.036, 0.036), (-0.030, 0.030), "equivalent", ()),  # "within" includes delta
        (0.000, (-0.040, 0.040), (-0.031, 0.031), "undecided", ()),
        (0.029, (0.010, 0.048), (0.013, 0.045), "undecided", ()),  # above 0, below delta
        (0.500, (NAN, NAN), (NAN, NAN), "undecided", ()),
    ],
)
def test_superiority(
    estimate: float,
    ci95: tuple[float, float],
    ci90: tuple[float, float],
    word: str,
    qualifiers: tuple[str, ...],
) -> None:
    found = superiority(estimate, Interval(*ci95, 0.95), Interval(*ci90, 0.90), 0.03)
    assert (found.word, found.qualifiers) == (word, qualifiers)


@pytest.mark.parametrize(
    ("low", "high", "ratio", "word"),
    [
        (-0.02, 0.05, 0.80, "supported"),
        (-0.02, 0.05, 0.90, "supported"),
        (-0.02, 0.05, 0.91, "contradicted"),
        (-0.03, 0.05, 0.80, "undecided"),
        (-0.09, -0.031, 0.80, "contradicted"),
        (NAN, NAN, 0.80, "undecided"),
    ],
)
def test_non_inferiority_needs_both(low: float, high: float, ratio: float, word: str) -> None:
    found = non_inferiority(Interval(low, high, 0.95), 0.03, ratio)
    assert found.word == word
    assert found.qualifiers[0].startswith(f"billed rollouts {ratio:.3f} of the reference")


@pytest.mark.parametrize(
    ("means", "said"),
    [
        ((0.1, 0.2, 0.1, 0.1), ()),
        ((0.5, 0.1, 0.1, -0.1), ()),  # three of four agree
        ((0.9, 0.1, -0.1, -0.1), ("depends on the initial policy",)),
        ((0.9, 0.1, 0.0, -0.1), ("depends on the initial policy",)),  # no sign is no agreement
        ((0.1, 0.1), ("2 of 4 initial policies sampled",)),
    ],
)
def test_initial_policy(means: tuple[float, ...], said: tuple[str, ...]) -> None:
    estimate = paired(means, generator(0, "t"))
    assert initial_policy(estimate, {i: [m, m] for i, m in enumerate(means)}) == said


def test_yoked_pair_is_void_beyond_one_percent() -> None:
    assert not is_void(1010, 1000)
    assert not is_void(990, 1000)
    assert is_void(1011, 1000)
    assert is_void(989, 1000)


@pytest.mark.parametrize(
    ("effect", "word", "share"),
    [
        (0.0, "equivalent", 0.94),  # the pilot's planning figures: 16 pairs, sd .033, delta .03
        (0.03, "supported", 0.50),
        (0.05, "supported", 0.99),
    ],
)
def test_rule_has_the_planned_power(effect: float, word: str, share: float) -> None:
    rng = generator(0, "power", word)
    words = []
    for _ in range(400):
        values = rng.normal(effect, 0.033, 16)
        ci95, ci90 = t_interval(values, 0.95), t_interval(values, 0.90)
        words.append(superiority(float(values.mean()), ci95, ci90, 0.03).word)
    assert words.count(word) / 400 == pytest.approx(share, abs=0.06)
    if effect == 0.0:
        assert (words.count("supported") + words.count("contradicted")) / 400 <= 0.064
