"""Where the time of a training step goes, from the clock tables of finished runs.

    python benchmarks/step_time.py results

Controller decisions should stay under 1 % and refits under 10 % of a step.
"""

import argparse
from pathlib import Path

import pandas as pd

from rail.traces.schema import CLOCK
from rail.traces.store import read_table

PARTS = ("sampling", "environment", "update", "decide", "fit")


def main() -> None:
    """Print one line per method: CPU seconds of a run, shares of the step's wall time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    folder = parser.parse_args().results / "runs"
    rows = []
    for path in sorted(folder.glob("*/*/seed*/clock.parquet")):
        clock = read_table(path, CLOCK)
        benchmark, method = path.parts[-4:-2]
        total = clock["total"].sum()
        rows.append(
            {
                "benchmark": benchmark,
                "method": method,
                "runs": 1,
                "cpu_s": clock["cpu"].sum(),
                "step_s": clock["total"].mean(),
                **{part: clock[part].sum() / total for part in PARTS},
                "rss_mib": clock["rss"].max(),
            }
        )
    frame = pd.DataFrame(rows).groupby(["benchmark", "method"], as_index=False)
    means = frame.agg(
        {"runs": "sum", **dict.fromkeys(("cpu_s", "step_s", *PARTS, "rss_mib"), "mean")}
    )
    means["other"] = 1.0 - means[list(PARTS)].sum(axis=1)
    print(means.round(3).to_string(index=False))


if __name__ == "__main__":
    main()
