"""Headroom on page 1: without it "no effect" says nothing."""

from dataclasses import dataclass

from rail.report.sheets import Links, Source, estimate, number, read_csv

KEY = ("boundaries_per_trajectory", "recoverable_failed", "recoverable_failed_all_fail",
       "variance_over_noise")  # fmt: skip
"""Measures that decide whether the premise holds, named first."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One measure over all warm starts.

    Attributes:
        values: One per warm start, with interval where measured.
        inside: How many lie where the protocol wants them; None where it asks nothing.
        mean: Over warm starts.
    """

    section: str
    measure: str
    label: str
    required: str
    values: tuple[str, ...]
    mean: str
    inside: int | None


@dataclass(frozen=True, slots=True)
class Headroom:
    """Difficulty and headroom of one benchmark; no readings when not run."""

    benchmark: str
    source: Source
    warm_starts: tuple[str, ...]
    readings: tuple[Reading, ...]

    @property
    def key(self) -> list[Reading]:
        """Return the measures that decide whether the premise holds."""
        return [reading for name in KEY for reading in self.readings if reading.measure == name]

    @property
    def sentence(self) -> str:
        """Return what page 1 says."""
        if not self.readings:
            return "Headroom was not measured: without it, no effect would say nothing."
        many = len(self.warm_starts)
        asked = [r for r in self.readings if r.inside is not None]
        missed = [r for r in asked if r.inside != many]
        if not missed:
            held = f"All {len(asked)} requirements of difficulty and headroom hold"
            return f"{held} on all {many} warm starts."
        named = "; ".join(f"{r.label} ({r.inside} of {many})" for r in missed)
        weak = [r for r in missed if r.measure in KEY]
        premise = " The premise is weak here: no effect would say little." if weak else ""
        return (
            f"{len(asked) - len(missed)} of {len(asked)} requirements of difficulty and headroom "
            f"hold on all {many} warm starts; the others: {named}.{premise}"
        )


def read_headroom(links: Links, benchmark: str) -> Headroom:
    """Read `tables/headroom.csv`."""
    path = links.results / "tables" / "headroom.csv"
    source = links.source(path)
    rows = read_csv(path) if path.is_file() else []
    warm = tuple(sorted({row["warm"] for row in rows}, key=int))
    keys = dict.fromkeys((row["section"], row["measure"]) for row in rows)
    readings = [
        _reading([row for row in rows if (row["section"], row["measure"]) == key], warm)
        for key in keys
    ]
    return Headroom(benchmark, source, warm, tuple(readings))


def _reading(rows: list[dict[str, str]], warm: tuple[str, ...]) -> Reading:
    first = rows[0]
    by_warm = {row["warm"]: row for row in rows}
    said = [inside for row in rows if (inside := row["inside"])]
    known = [float(row["estimate"]) for row in rows if row["estimate"]]
    return Reading(
        first["section"],
        first["measure"],
        first["label"],
        _required(first["at_least"], first["at_most"]),
        tuple(_value(by_warm.get(name)) for name in warm),
        number(sum(known) / len(known) if known else None),
        said.count("yes") if said else None,
    )


def _value(row: dict[str, str] | None) -> str:
    if row is None:
        return "not run"
    return estimate(row["estimate"], row["low"], row["high"])


def _required(at_least: str, at_most: str) -> str:
    if at_least and at_most:
        return f"{float(at_least):g} to {float(at_most):g}"
    if at_least:
        return f"at least {float(at_least):g}"
    return f"at most {float(at_most):g}" if at_most else ""
