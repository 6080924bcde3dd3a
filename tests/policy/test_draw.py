from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.nn import functional

from rail.policy import draw as reference
from rail.policy.draw import Draw
from rail.policy.kernel.draw import draw as native
from tests.policy.models import needs_kernel

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))
Drawing = Callable[[Tensor, Tensor, Tensor, Tensor], Draw]


@pytest.fixture(params=["torch", pytest.param("native", marks=needs_kernel)])
def draw(request: pytest.FixtureRequest) -> Drawing:
    """The two implementations; the kernel's wants rows of a multiple of 16."""
    if request.param == "torch":
        return reference.draw

    def padded(logits: Tensor, *rest: Tensor) -> Draw:
        wide = functional.pad(logits, (0, -logits.shape[1] % 16), value=50.0).contiguous()
        return native(wide, logits.shape[1], *rest)

    return padded


@pytest.fixture
def one(draw: Drawing) -> Callable[..., tuple[int, float, float]]:
    """Draw from LOGITS once; token and both log-probabilities."""

    def run(
        uniform: float, temperature: float = 1.0, top_p: float = 1.0
    ) -> tuple[int, float, float]:
        given = (torch.tensor([x]) for x in (uniform, temperature, top_p))
        found = draw(LOGITS, *given)
        return int(found.tokens), float(found.logprob), float(found.logprob_sampled)

    return run


@pytest.mark.parametrize(
    ("uniform", "token"), [(0.0, 0), (0.49, 0), (0.51, 1), (0.79, 1), (0.94, 2), (0.9999, 3)]
)
def test_a_uniform_picks_by_the_cumulative_distribution(
    one: Callable[..., tuple[int, float, float]], uniform: float, token: int
) -> None:
    assert one(uniform)[0] == token


def test_both_logprobs_are_kept(one: Callable[..., tuple[int, float, float]]) -> None:
    # T = 0.5 squares the probabilities: .25 .09 .0225 .0025, sum .365.
    token, plain, sampled = one(0.1, temperature=0.5)
    assert token == 0
    assert plain == pytest.approx(np.log(0.5), abs=1e-6)
    assert sampled == pytest.approx(np.log(0.25 / 0.365), abs=1e-6)


def test_top_p_keeps_the_smallest_set_that_reaches_the_mass(
    one: Callable[..., tuple[int, float, float]],
) -> None:
    # .5 + .3 reaches .8 exactly after two tokens; .81 needs the third.
    assert one(0.999, top_p=0.79)[0] == 1
    assert one(0.999, top_p=0.81)[0] == 2
    assert one(0.0, top_p=0.79)[2] == pytest.approx(np.log(0.5 / 0.8), abs=1e-6)


def test_temperature_zero_takes_the_most_likely_token(
    one: Callable[..., tuple[int, float, float]],
) -> None:
    assert one(0.999, temperature=0.0) == (0, pytest.approx(np.log(0.5), abs=1e-6), 0.0)


def test_entropy_is_that_of_the_plain_policy_at_any_temperature(draw: Drawing) -> None:
    expected = -sum(p * np.log(p) for p in (0.5, 0.3, 0.15, 0.05))
    for temperature in (0.7, 1.0, 1.25):
        found = draw(LOGITS, torch.tensor([0.3]), torch.tensor([temperature]), torch.ones(1))
        assert float(found.entropy) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (1.25, 1.0), (3.0, 0.9)])
def test_draws_follow_the_distribution(draw: Drawing, temperature: float, top_p: float) -> None:
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


@needs_kernel
@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.6, 0.95), (1.25, 1.0), (3, 0.9)])
def test_the_kernel_draws_what_torch_draws(temperature: float, top_p: float) -> None:
    rng = np.random.default_rng(6)
    count, vocabulary = 2000, 611
    logits = torch.tensor(rng.normal(0.0, 3.0, (count, vocabulary)), dtype=torch.float32)
    rest = (
        torch.tensor(rng.random(count)),
        torch.full((count,), temperature),
        torch.full((count,), top_p),
    )
    expected = reference.draw(logits, *rest)
    found = native(functional.pad(logits, (0, 13)).contiguous(), vocabulary, *rest)
    same = expected.tokens == found.tokens
    assert same.float().mean() > 0.999  # a uniform within rounding of a boundary may go either way
    for name in ("logprob", "logprob_sampled", "entropy"):
        mine, theirs = getattr(found, name)[same], getattr(expected, name)[same]
        torch.testing.assert_close(mine, theirs, atol=2e-5, rtol=0)
