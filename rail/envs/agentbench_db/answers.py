"""Is an answer right? Two rules, and no answer is ever evaluated as code.

`strict` gives the right value; `upstream` is AgentBench's published rule, re-implemented from its
description, for comparison with the literature. Where they differ, upstream lets null-like answers
equal 0, deletes commas inside text, drops multi-column rows, rejects an empty list where nothing
was found, and compares mixed lists as text.
"""

import math
import re
from collections.abc import Callable, Sequence

from rail.envs.agentbench_db.listing import cells

TOLERANCE = 0.01  # absolute, both rules
_SLACK = 1e-9  # 12.01 - 12.00 is 0.00999...9 or 0.0100...01 in binary
_NOTHING = frozenset(("none", "null", ""))
_UPSTREAM_ZERO = frozenset(
    ("none", "null", "undefined", "nan", "inf", "infinity", "-infinity", "-inf", "")
)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

Answer = str | int | float | bool | None | Sequence[object]


def score(answer: Answer, label: Sequence[str], *, nothing: bool = False) -> float:
    """Return 1.0 if the answer is right, else 0.0.

    Numbers match within 0.01 (a closing % is dropped, thousands commas are read), texts exactly.
    Order does not matter. Repeats matter among numbers only, since a text column answers the same
    question with or without them.

    Args:
        answer: The answer as given: a text, which may be the text of a list, or a list.
        label: The gold cells.
        nothing: The gold statement finds nothing, so that an empty answer is right as well.
    """
    given = [_clean(c) for c in _strict_cells(answer)]
    gold = [_clean(c) for c in label]
    empty = all(c.lower() in _NOTHING for c in given)
    if empty and (nothing or all(c.lower() in _NOTHING for c in gold)):
        return 1.0
    numbers, wanted = [_number(c) for c in given], [_number(c) for c in gold]
    if None not in numbers and None not in wanted:
        return float(
            _one_to_one([x for x in numbers if x is not None], [x for x in wanted if x is not None])
        )
    return float(_mutual(given, gold, _same))


def may_mean_nothing(label: Sequence[str]) -> bool:
    """Return whether a label is what an empty result is labelled with: none, 0 or 0.0."""
    return all(c.lower() in _NOTHING or _number(c) == 0.0 for c in map(_clean, label))


def score_upstream(answer: Answer, label: Sequence[str]) -> float:
    """Return 1.0 or 0.0 under the published rule."""
    given = [_upstream_clean(c) for c in _upstream_cells(answer)]
    gold = [_upstream_clean(c) for c in label]
    numbers, wanted = _floats(given), _floats(gold)
    if len(given) == 1 and len(gold) == 1:
        if numbers is not None and wanted is not None:
            return float(_near(numbers[0], wanted[0]))
        return float(given == gold)
    if numbers is not None and wanted is not None:
        return float(_one_to_one(numbers, wanted))
    return float(set(given) == set(gold))


def _strict_cells(answer: Answer) -> list[str]:
    if isinstance(answer, str):
        rows = cells(answer, constructors=True)
        return [answer] if rows is None else [c for row in rows for c in row]
    if isinstance(answer, Sequence):
        if len(answer) == 1 and isinstance(answer[0], str):
            return _strict_cells(answer[0])
        return [c for item in answer for c in _flat(item)]
    return [_text(answer)]


def _flat(item: object) -> list[str]:
    if isinstance(item, Sequence) and not isinstance(item, str):
        return [c for part in item for c in _flat(part)]
    return [_text(item)]


def _upstream_cells(answer: Answer) -> list[str]:
    if isinstance(answer, str):
        rows = cells(answer, constructors=False)
        return [answer] if rows is None else [row[0] for row in rows if len(row) == 1]
    if isinstance(answer, Sequence):
        if len(answer) == 1 and isinstance(answer[0], str):
            return _upstream_cells(answer[0])
        return [_text(item) for item in answer]
    return [_text(answer)]


def _text(value: object) -> str:
    return "none" if value is None else str(value)


def _clean(cell: str) -> str:
    stripped = str(cell).strip()
    if len(stripped) >= 2 and stripped[0] == stripped[-1] and stripped[0] in "'\"":
        stripped = stripped[1:-1].strip()
    return stripped


def _number(cell: str) -> float | None:
    text = cell[:-1].rstrip() if cell.endswith("%") else cell
    if _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


def _same(given: str, gold: str) -> bool:
    a, b = _number(given), _number(gold)
    if a is not None and b is not None:
        return _near(a, b)
    if given.lower() in _NOTHING and gold.lower() in _NOTHING:
        return True
    return given == gold


def _near(a: float, b: float) -> bool:
    return abs(a - b) <= TOLERANCE + _SLACK


def _one_to_one(given: Sequence[float], gold: Sequence[float]) -> bool:
    # On a line, matching in sorted order finds a pairing within a tolerance whenever one exists.
    return len(given) == len(gold) and all(map(_near, sorted(given), sorted(gold)))


def _mutual(given: Sequence[str], gold: Sequence[str], same: Callable[[str, str], bool]) -> bool:
    return all(any(same(a, b) for b in gold) for a in given) and all(
        any(same(a, b) for a in given) for b in gold
    )


def _upstream_clean(cell: str) -> str:
    text = str(cell).strip().strip("'\"").strip()
    if text.lower() in _UPSTREAM_ZERO:
        return "0"
    if text.endswith("%"):
        return text[:-1]
    return text.replace(",", "")


def _floats(texts: Sequence[str]) -> list[float] | None:
    if not all(_NUMBER.fullmatch(text) for text in texts):
        return None
    return [float(text) for text in texts]
