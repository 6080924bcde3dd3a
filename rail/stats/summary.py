"""From the samples of a comparison to its statistics: the part that all kinds share."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rail.seeding import generator
from rail.stats.bootstrap import studentised_bootstrap
from rail.stats.comparisons import Sample
from rail.stats.heterogeneity import i_squared
from rail.stats.intervals import Interval
from rail.stats.paired import Estimate, paired

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Summary:
    """Statistics of one comparison.

    Attributes:
        values: Per-seed values, benchmarks averaged inside each seed.
        estimate: Over seeds.
        bootstrap95: Hierarchical studentised bootstrap; None where the value is no mean over tasks.
        by_benchmark: The same estimate on each benchmark alone.
        i_squared: Share of the variation between benchmarks beyond chance; NaN for one benchmark.
        incomplete: Seeds that some benchmark lacks; left out.
    """

    values: dict[int, float]
    estimate: Estimate
    bootstrap95: Interval | None
    by_benchmark: dict[str, Estimate]
    i_squared: float
    incomplete: list[int]


def summarise(samples: Mapping[str, Sample], name: str) -> Summary | None:
    """Return the statistics over the seeds that every benchmark has; None if there is none.

    Args:
        samples: One per benchmark; benchmarks weigh the same.
        name: Names the random stream of tests and bootstrap: equal names, equal numbers.
    """
    sets = [set(sample.values) for sample in samples.values()]
    seeds = sorted(set.intersection(*sets))
    if not seeds:
        return None
    values = {seed: float(np.mean([s.values[seed] for s in samples.values()])) for seed in seeds}
    by_benchmark = {
        benchmark: paired(
            [sample.values[seed] for seed in sorted(sample.values)],
            generator(0, "claims", name, "sign_flip", benchmark),
        )
        for benchmark, sample in samples.items()
    }
    return Summary(
        values=values,
        estimate=paired(list(values.values()), generator(0, "claims", name, "sign_flip")),
        bootstrap95=_bootstrap(samples, seeds, name),
        by_benchmark=by_benchmark,
        i_squared=i_squared(
            [e.mean for e in by_benchmark.values()], [e.error for e in by_benchmark.values()]
        ),
        incomplete=sorted(set.union(*sets) - set(seeds)),
    )


def _bootstrap(samples: Mapping[str, Sample], seeds: list[int], name: str) -> Interval | None:
    differences: dict[str, Floats] = {}
    weights: dict[str, float] = {}
    for benchmark, sample in samples.items():
        if not all(seed in sample.tasks for seed in seeds):
            return None
        kinds = sample.tasks[seeds[0]]
        for kind in kinds:
            key = f"{benchmark}/{kind}"
            differences[key] = np.stack([sample.tasks[seed][kind] for seed in seeds])
            weights[key] = 1 / len(kinds) / len(samples)
    return studentised_bootstrap(differences, generator(0, "claims", name, "bootstrap"), weights)
