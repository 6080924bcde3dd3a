"""Words of the generated tables: column vocabulary, and names split between panels by a digest.

A question names a *concept* ("price"); the table calls it by one of two column names ("cost" or
"fee"), so the schema has to be looked up. Names of tables and of entities are two syllables, so
that a name never met is spelled from pieces that were. All word lists are `our choice`.
"""

import hashlib
from functools import cache
from typing import Literal

from rail.envs.agentbench_db.draws import Draws
from rail.errors import ConfigError

NUMBERS: dict[str, tuple[str, str]] = {
    "price": ("cost", "fee"),
    "weight": ("mass", "load"),
    "speed": ("pace", "rate"),
    "height": ("size", "rise"),
    "age": ("years", "days"),
    "score": ("marks", "goals"),
    "wage": ("pay", "gain"),
    "debt": ("loan", "dues"),
    "power": ("watts", "volts"),
    "volume": ("bulk", "fill"),
    "stock": ("units", "items"),
    "range": ("miles", "yards"),
}
"""Concept of a numeric column -> its two column names."""

REFERENCES: dict[str, tuple[str, str]] = {"boss": ("chief", "head"), "friend": ("mate", "pal")}
"""Concept of a column that holds another row's name -> its two column names."""

GROUPS: dict[str, tuple[str, str]] = {"team": ("crew", "side"), "town": ("city", "area")}
"""Concept of a column that several rows share -> its two column names."""

Partition = Literal["demonstrations", "train", "validation", "test_a", "test_b"]

_SHARES: dict[Partition, int] = {
    "demonstrations": 8,
    "train": 2,
    "validation": 2,
    "test_a": 2,
    "test_b": 2,
}
_FIRST = [c + v for c in "bdfgjklmnrvz" for v in "aeiou"]
# No final e: it would spell SQL words (date, name, like) and column names (rate, size).
_SECOND = [c + v for c in "bdfgjklmnrvz" for v in "aiou"]


def partition_of(name: str) -> Partition:
    """Return which panels may use `name`; upper and lower case belong together."""
    digest = hashlib.blake2b(name.lower().encode(), digest_size=4).digest()
    bucket = int.from_bytes(digest, "big") % sum(_SHARES.values())
    for partition, share in _SHARES.items():
        bucket -= share
        if bucket < 0:
            return partition
    raise AssertionError("unreachable: the bucket is below the sum of shares")


@cache
def names(partition: Partition) -> tuple[str, ...]:
    """Return all lower-case names of a partition.

    Raises:
        ConfigError: If there is no such partition.
    """
    if partition not in _SHARES:
        raise ConfigError(f"no name partition '{partition}'; there are {', '.join(_SHARES)}")
    words = (first + second for first in _FIRST for second in _SECOND if first != second)
    return tuple(word for word in words if partition_of(word) == partition)


def draw_names(draws: Draws, partition: Partition, count: int) -> list[str]:
    """Return `count` names that share neither their first nor their second syllable.

    A shared syllable makes the next one depend on more than the one before, which a policy of half
    a million parameters learns late; telling names apart is not what the benchmark is about.
    """
    pool = names(partition)
    chosen: list[str] = []
    used: set[str] = set()
    while len(chosen) < count:
        name = draws.choice(pool)
        first, second = name[:2].upper(), name[2:]
        if first in used or second in used:
            continue
        used |= {first, second}
        chosen.append(name)
    return chosen
