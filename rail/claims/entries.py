"""`config/claims.yaml`: what is claimed."""

from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, ValidationError

from rail.config import Strict
from rail.errors import ConfigError
from rail.stats.comparisons import KINDS
from rail.stats.controller import Draws


class Claim(Strict):
    """One entry of config/claims.yaml.

    Attributes:
        id: Short unique name.
        statement: The sentence that is judged.
        source: Where it comes from: a section of the paper, the protocol, or our own prediction.
        kind: Comparison, a key of `rail.stats.comparisons.KINDS`.
        arms: Methods, the one the claim is about first.
        endpoint: What is compared; each kind lists its own.
        margin: delta, the smallest difference that matters, in units of the statistic.
        family: Decides how p is adjusted.
        benchmarks: The claim is about their mean.
        yoked: The arms must have spent the same number of rollouts.
        draws: Controller claims: which interventions count.
        descriptive: Too few seeds by design (the paper's four); no verdict is given.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9_]+$")
    statement: str
    source: str
    kind: str
    arms: tuple[str, ...]
    endpoint: str
    margin: float = Field(gt=0)
    family: Literal["confirmatory", "secondary", "exploratory"]
    benchmarks: tuple[str, ...] = Field(min_length=1)
    yoked: bool = False
    draws: Draws = "explore"
    descriptive: bool = False


def load_claims(
    path: Path, methods: Collection[str] | None = None, benchmarks: Collection[str] | None = None
) -> list[Claim]:
    """Read and check the claims.

    Args:
        path: claims.yaml.
        methods: Known arms; None: the files of `methods/` beside `path`.
        benchmarks: Known benchmarks; None: the files of `benchmarks/` beside `path`.

    Raises:
        ConfigError: One line on an unknown key, kind, arm, endpoint or benchmark, listing what
            exists.
    """
    try:
        content = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    entries = content.get("claims") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(f"{path}: expected a mapping with one key `claims`, a list of entries")
    known_methods = _names(path.parent / "methods") if methods is None else methods
    known_benchmarks = _names(path.parent / "benchmarks") if benchmarks is None else benchmarks
    claims: list[Claim] = []
    for number, entry in enumerate(entries, start=1):
        name = (
            entry.get("id", f"number {number}") if isinstance(entry, dict) else f"number {number}"
        )
        where = f"{path}: claim {name}"
        claim = _parse(entry, where)
        _check(claim, where, known_methods, known_benchmarks)
        if claim.id in {other.id for other in claims}:
            raise ConfigError(f"{where}: the id is used twice")
        claims.append(claim)
    return claims


def _names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _parse(entry: Any, where: str) -> Claim:
    try:
        return Claim.model_validate(entry)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"])) or "entry"
        text = f"key {key!r}: {problem['msg']}"
        if problem["type"] == "extra_forbidden":
            text = f"unknown key {key!r}; known: {', '.join(Claim.model_fields)}"
        raise ConfigError(f"{where}: {text}") from error


def _check(claim: Claim, where: str, methods: Collection[str], benchmarks: Collection[str]) -> None:
    def known(what: str, name: str, names: Collection[str]) -> None:
        if name not in names:
            raise ConfigError(f"{where}: no {what} {name!r}; known: {', '.join(names) or 'none'}")

    known("kind", claim.kind, KINDS)
    kind = KINDS[claim.kind]
    fewest, most = kind.arms
    if not fewest <= len(claim.arms) <= most:
        span = f"{fewest}" if fewest == most else f"{fewest} to {most}"
        raise ConfigError(f"{where}: kind {claim.kind} takes {span} arms, got {len(claim.arms)}")
    known(f"endpoint of kind {claim.kind}", claim.endpoint, kind.endpoints)
    for arm in claim.arms:
        known("arm", arm, methods)
    for benchmark in claim.benchmarks:
        known("benchmark", benchmark, benchmarks)
    if claim.yoked and claim.kind != "difference":
        raise ConfigError(f"{where}: `yoked` belongs to kind difference, not {claim.kind}")
