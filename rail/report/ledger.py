"""The claims ledger and the paragraph that sums it up."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from rail.errors import DataError
from rail.report.sheets import Links, Source, interval, number

ORDER = (
    "supported", "contradicted", "equivalent", "undecided", "void", "descriptive", "not run",
)  # fmt: skip
FAMILIES = ("confirmatory", "secondary", "exploratory")


@dataclass(frozen=True, slots=True)
class Entry:
    """One claim, ready to be read."""

    id: str
    statement: str
    origin: str
    family: str
    statistic: str
    verdict: str
    qualifiers: tuple[str, ...]
    estimate: str
    interval: str
    margin: str
    n: int
    p: str
    registered: str
    registered_reason: str
    artifacts: tuple[Source, ...]

    @property
    def sentence(self) -> str:
        """Return the claim, its verdict and its numbers in one sentence."""
        if self.verdict == "not run":
            return f"{self.id} was not run."
        return (
            f"{self.id} ({self.statement.rstrip('.')}): {self.verdict}, {self.estimate} "
            f"{self.interval or '(no interval)'}, {self.n} seeds."
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """All claims; none when the ledger was not computed."""

    source: Source
    entries: tuple[Entry, ...]

    @property
    def registered(self) -> bool:
        """Return whether every verdict rests on runs that were registered before."""
        judged = [entry for entry in self.entries if entry.verdict != "not run"]
        return bool(judged) and all(entry.registered == "yes" for entry in judged)

    @property
    def families(self) -> list[tuple[str, list[Entry]]]:
        """Return the entries by family, the confirmatory one first."""
        named = [(f, [e for e in self.entries if e.family == f]) for f in FAMILIES]
        return [(family, entries) for family, entries in named if entries]

    @property
    def counts(self) -> str:
        """Return how many claims got which verdict, in words."""
        counted = Counter(entry.verdict for entry in self.entries)
        said = [f"{counted[word]} {word}" for word in ORDER if counted[word]]
        return f"{len(self.entries)} claims: {', '.join(said)}"

    @property
    def primary(self) -> list[str]:
        """Return one sentence per claim of the confirmatory family."""
        return [entry.sentence for entry in self.entries if entry.family == "confirmatory"]


def read_ledger(links: Links) -> Ledger:
    """Read `claims.json`.

    Raises:
        DataError: If it is no list of claims.
    """
    path = links.results / "claims.json"
    source = links.source(path)
    if not path.is_file():
        return Ledger(source, ())
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
        return Ledger(source, tuple(_entry(row, links) for row in rows))
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not a ledger ({error!r}); run `snakemake claims`") from error


def _entry(row: dict[str, Any], links: Links) -> Entry:
    low, high = row["ci95"] or (None, None)
    adjusted = row["p_adjusted"] if row["p_adjusted"] is not None else row["p"]
    return Entry(
        id=row["id"],
        statement=row["statement"],
        origin=row["source"],
        family=row["family"],
        statistic=row["statistic"],
        verdict=row["verdict"],
        qualifiers=tuple(row["qualifiers"]),
        estimate=number(row["estimate"], sign=True),
        interval=interval(low, high, sign=True),
        margin=number(row["margin"]),
        n=row["n"],
        p=number(adjusted),
        registered=row["registered"],
        registered_reason=row["registered_reason"],
        artifacts=tuple(links.source(links.results / a["path"]) for a in row["artifacts"]),
    )
