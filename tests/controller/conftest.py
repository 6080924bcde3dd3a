from collections.abc import Callable

import numpy as np
import pytest

from rail.controller.replay import Trace
from rail.interventions import Decoding, InterventionSpace


@pytest.fixture
def space() -> InterventionSpace:
    regimes = {"EXPLOIT": Decoding(0.7), "MILD": Decoding(1.0), "AGGRESSIVE": Decoding(1.25)}
    return InterventionSpace.build([4, 8, 12], regimes, cost_weight=0.005)


@pytest.fixture
def world() -> Callable[[int, int], list[Trace]]:
    """Traces whose gain is .15 tanh(z0) in regime 0, the opposite elsewhere, noise of sd .02."""

    def draw(step: int, count: int) -> list[Trace]:
        random = np.random.default_rng([7, step])
        traces = []
        for _ in range(count):
            state = random.normal(size=4)
            cell = int(random.integers(9))
            sign = 1.0 if cell < 3 else -1.0
            gain = 0.15 * sign * np.tanh(state[0]) + 0.02 * random.normal()
            traces.append(Trace(state, cell, float(gain), step))
        return traces

    return draw
