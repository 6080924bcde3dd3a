"""The ledger: what the tables say about each claim, and from which files."""

import csv
import hashlib
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from rail import atomic
from rail.claims.entries import Claim
from rail.seeding import generator
from rail.stats.comparisons import ENDPOINTS, KINDS, Question, Sample, rise
from rail.stats.evidence import Evidence, NotRun
from rail.stats.multiplicity import benjamini_hochberg, holm
from rail.stats.paired import sign_flip_test, t_test
from rail.stats.registration import registration
from rail.stats.summary import Summary, summarise
from rail.stats.verdict import Verdict, initial_policy, non_inferiority, superiority

ALPHA = 0.05
"""Confirmatory family: level of Holm's procedure (protocol section 5)."""
FALSE_DISCOVERY = 0.10
"""Secondary claims: rate of Benjamini-Hochberg (protocol section 5)."""
REFERENCE = "grpo_16"
"""Margins are also shown as a share of what this method gained over its warm start."""

Row = dict[str, Any]


def compute(
    claims: Sequence[Claim],
    results: Path,
    seeds: Sequence[int] | None = None,
    panel: str = "a",
    lock: Path | None = None,
) -> list[Row]:
    """Return one row of the ledger per claim, in order.

    A claim whose runs are missing gets the verdict "not run" and the reason.

    Args:
        claims: What to judge.
        results: Result folder.
        seeds: Seeds that count; None: all that are there.
        panel: Test panel of the evaluations, `a` (development) or `b`.
        lock: config/claims.lock, written by the freeze.

    Raises:
        TraceError: If a table is damaged.
        DataError: If arms were judged on different tasks, or sampled by different backends.
    """
    evidence = Evidence(results, seeds)
    rows = [_judge(claim, evidence, panel, lock) for claim in claims]
    _adjust(rows, "confirmatory", "holm", ALPHA)
    _adjust(rows, "secondary", "benjamini-hochberg", FALSE_DISCOVERY)
    return rows


def write_ledger(rows: Sequence[Row], results: Path) -> None:
    """Write `<results>/claims.json` (everything) and `<results>/tables/claims.csv` (to look at)."""
    atomic.write_json(results / "claims.json", list(rows))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = [name for name in _FLAT if name not in ("ci95", "ci90")]
    writer.writerow([*columns, "ci95_low", "ci95_high", "ci90_low", "ci90_high", "artifacts"])
    for row in rows:
        ends = [end for name in ("ci95", "ci90") for end in row[name] or (None, None)]
        plain = ["; ".join(v) if isinstance(v, list) else v for v in (row[n] for n in columns)]
        writer.writerow([*plain, *ends, len(row["artifacts"])])
    atomic.write_text(results / "tables" / "claims.csv", text.getvalue())


_FLAT = (
    "id", "statement", "source", "family", "statistic", "estimate", "ci95", "ci90", "margin", "n",
    "p", "p_adjusted", "verdict", "qualifiers", "registered", "registered_reason",
)  # fmt: skip


def _judge(claim: Claim, evidence: Evidence, panel: str, lock: Path | None) -> Row:
    evidence.forget()
    kind = KINDS[claim.kind]
    try:
        samples = {
            benchmark: kind.compare(
                Question(benchmark, claim.arms, claim.endpoint, claim.yoked, claim.draws), evidence
            )
            for benchmark in claim.benchmarks
        }
    except NotRun as reason:
        return _row(claim, evidence, Verdict("not run", (str(reason),)), None, {}, panel, lock)
    summary = summarise(samples, claim.id)
    if summary is None:
        void = any(sample.void for sample in samples.values())
        why = Verdict("void" if void else "not run", tuple(_notes(samples, None)))
        return _row(claim, evidence, why, None, samples, panel, lock)
    verdict = _verdict(claim, evidence, summary, samples)
    return _row(claim, evidence, verdict, summary, samples, panel, lock)


def _verdict(
    claim: Claim, evidence: Evidence, summary: Summary, samples: dict[str, Sample]
) -> Verdict:
    estimate = summary.estimate
    if KINDS[claim.kind].rule == "non_inferiority":
        ratios = [sample.budget_ratio for sample in samples.values()]
        found = non_inferiority(estimate.ci95, claim.margin, sum(ratios) / len(ratios))
    else:
        found = superiority(estimate.mean, estimate.ci95, estimate.ci90, claim.margin)
    said = list(found.qualifiers)
    said += ["one seed: no interval"] if estimate.n < 2 else []
    said += initial_policy(estimate, _strata(claim, evidence, summary))
    said += _notes(samples, summary)
    return Verdict("descriptive" if claim.descriptive else found.word, tuple(said))


def _strata(claim: Claim, evidence: Evidence, summary: Summary) -> dict[int, list[float]]:
    """Return the values by the warm start that the first arm's run started from."""
    found: dict[int, list[float]] = {}
    for seed, value in summary.values.items():
        warm = evidence.warm_start(claim.benchmarks[0], claim.arms[0], seed)
        found.setdefault(warm, []).append(value)
    return found


def _notes(samples: dict[str, Sample], summary: Summary | None) -> list[str]:
    several = len(samples) > 1
    notes = []
    for benchmark, sample in samples.items():
        mine = list(sample.notes)
        if sample.void:
            named = ", ".join(map(str, sample.void))
            mine.append(f"void pairs (billed totals differ by more than 1 %): seeds {named}")
        notes += [f"{benchmark}: {note}" if several else note for note in mine]
    if summary and summary.incomplete:
        named = ", ".join(map(str, summary.incomplete))
        notes.append(f"seeds that some benchmark lacks left out: {named}")
    return notes


def _row(
    claim: Claim,
    evidence: Evidence,
    verdict: Verdict,
    summary: Summary | None,
    samples: dict[str, Sample],
    panel: str,
    lock: Path | None,
) -> Row:
    kind = KINDS[claim.kind]
    share = _margin_share(claim, evidence) if summary else None
    used = sorted(evidence.used)
    registered, why = registration(list(summary.values) if summary else [], panel, lock)
    row: Row = {
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "family": claim.family,
        "kind": claim.kind,
        "arms": list(claim.arms),
        "benchmarks": list(claim.benchmarks),
        "endpoint": claim.endpoint,
        "statistic": f"{kind.statistic}: {claim.endpoint}, {' - '.join(claim.arms)}",
        "margin": claim.margin,
        "margin_share_of_reference_gain": share,
        "estimate": None,
        "sd": None,
        "n": 0,
        "ci95": None,
        "ci90": None,
        "ci95_bootstrap": None,
        "p": None,
        "p_sign_flip": None,
        "p_adjusted": None,
        "adjustment": None,
        "by_benchmark": {},
        "i_squared": None,
        "values": {name: _by_seed(sample.values) for name, sample in samples.items()},
        "verdict": verdict.word,
        "qualifiers": list(verdict.qualifiers),
        "registered": registered,
        "registered_reason": why,
        "artifacts": [
            {"path": str(p.relative_to(evidence.results)), "sha256": _digest(p)} for p in used
        ],
    }
    return row | (_statistics(claim, kind.rule, summary) if summary else {})


def _statistics(claim: Claim, rule: str, summary: Summary) -> Row:
    e, boot = summary.estimate, summary.bootstrap95
    p, p_sign_flip = e.p, e.p_sign_flip
    if rule == "non_inferiority":
        values = np.array(list(summary.values.values()))
        p = t_test(values, null=-claim.margin, upper=True)
        rng = generator(0, "claims", claim.id, "sign_flip")
        p_sign_flip = sign_flip_test(values + claim.margin, rng)
    return {
        "estimate": e.mean,
        "sd": _number(e.sd),
        "n": e.n,
        "ci95": _ends(e.ci95.low, e.ci95.high),
        "ci90": _ends(e.ci90.low, e.ci90.high),
        "ci95_bootstrap": _ends(boot.low, boot.high) if boot else None,
        "p": _number(p),
        "p_sign_flip": _number(p_sign_flip),
        "by_benchmark": {
            name: {"estimate": b.mean, "n": b.n, "ci95": _ends(b.ci95.low, b.ci95.high)}
            for name, b in summary.by_benchmark.items()
        },
        "i_squared": _number(summary.i_squared),
    }


def _margin_share(claim: Claim, evidence: Evidence) -> float | None:
    """Return the margin over the mean rise of `REFERENCE`; None where that is not known."""
    if claim.endpoint not in ENDPOINTS:
        return None
    gains = []
    for benchmark in claim.benchmarks:
        try:
            sample = rise(Question(benchmark, (REFERENCE,), claim.endpoint), evidence)
        except NotRun:
            return None
        gains += sample.values.values()
    mean = sum(gains) / len(gains)
    return claim.margin / mean if mean > 0 else None


def _adjust(rows: Sequence[Row], family: str, name: str, level: float) -> None:
    """Fill in `p_adjusted` of a family; a supported claim that it does not bear says so."""
    mine = [row for row in rows if row["family"] == family]
    raw = [math.nan if row["p"] is None else cast(float, row["p"]) for row in mine]
    adjusted = holm(raw) if name == "holm" else benjamini_hochberg(raw)
    for row, p in zip(mine, adjusted, strict=True):
        row["p_adjusted"], row["adjustment"] = _number(p), name
        if row["verdict"] in ("supported", "contradicted") and p > level:
            row["qualifiers"].append(f"adjusted p ({name}) above {level:.2f}")


def _by_seed(values: dict[int, float]) -> dict[str, float]:
    return {str(seed): values[seed] for seed in sorted(values)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _ends(low: float, high: float) -> list[float | None] | None:
    return None if math.isnan(low) else [_number(low), _number(high)]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
