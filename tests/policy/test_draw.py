import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from rail.policy.draw import draw

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))


def one(uniform: float, temperature: float = 1.0, top_p: float = 1.0) -> tuple[int, float, float]:
    found = draw(
        LOGITS, torch.tensor([uniform]), torch.tensor([temperature]), torch.tensor([top_p])
    )
    return int(found.tokens), float(found.logprob), float(found.logprob_sampled)


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.79, 1), (0.94, 2), (0.9999, 3)]
)
def test_a_uniform_picks_by_the_cumulative_distribution(uniform: float, token: int) -> None:
    assert one(uniform)[0] == token


def test_both_logprobs_are_kept() -> None:
    # T = 0.5 squares the probabilities: .25 .09 .0225 .0025, sum .365.
    token, plain, sampled = one(0.1, temperature=0.5)
    assert token == 0
    assert plain == pytest.approx(np.log(0.5), abs=1e-6)
    assert sampled == pytest.approx(np.log(0.25 / 0.365), abs=1e-6)


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass() -> None:
    # .5 + .3 reaches .8 exactly after two tokens; .81 needs the third.
    assert one(0.999, top_p=0.79)[0] == 1
    assert one(0.999, top_p=0.81)[0] == 2
    assert one(0.0, top_p=0.79)[2] == pytest.approx(np.log(0.5 / 0.8), abs=1e-6)


def test_temperature_zero_takes_the_most_likely_token() -> None:
    assert one(0.999, temperature=0.0) == (0, pytest.approx(np.log(0.5), abs=1e-6), 0.0)


def test_entropy_is_that_of_the_plain_policy_at_any_temperature() -> None:
    expected = -sum(p * np.log(p) for p in (0.5, 0.3, 0.15, 0.05))
    for temperature in (0.7, 1.0, 1.25):
        found = draw(LOGITS, torch.tensor([0.3]), torch.tensor([temperature]), torch.ones(1))
        assert float(found.entropy) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (1.25, 1.0), (3.0, 0.9)])
def test_draws_follow_the_distribution(temperature: float, top_p: float) -> None:
    rng = np.random.default_rng(5)
    logits = torch.tensor(rng.normal(0.0, 2.0, 50), dtype=torch.float32)
    count = 40_000
    found = draw(
        logits.expand(count, -1),
        torch.tensor(rng.random(count), dtype=torch.float32),
        torch.full((count,), temperature),
        torch.full((count,), top_p),
    )
    mass = torch.softmax(logits.double() / temperature, -1).numpy()
    order = np.argsort(-mass)
    kept = order[: int(np.searchsorted(np.cumsum(mass[order]), top_p) + 1)] if top_p < 1 else order
    expected = mass[kept] / mass[kept].sum() * count
    counts = np.bincount(found.tokens.numpy(), minlength=50)
    assert counts.sum() == counts[kept].sum()
    assert chisquare(counts[kept], expected).pvalue > 1e-4
