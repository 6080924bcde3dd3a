"""What can be scored without looking at a table: constant answers and answers from the question.

A mutation is judged by the table's state, so no answer alone can solve one.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rail.envs.agentbench_db.answers import score

Row = Mapping[str, Any]


def guess_baselines(train: Sequence[Row], test: Sequence[Row]) -> dict[str, float]:
    """Return strict scores on `test` of agents that never query, mean over all its tasks.

    Args:
        train: Rows that the agents may learn from.
        test: Rows that they are scored on.

    Returns:
        `constant`: the one answer that is best on `test` itself (an upper limit);
        `kind`: the commonest answer of the same kind and concept in `train`, else of the kind;
        `nearest`: the answer of the `train` question with the most similar words;
        `echo`: the row named in the question.

    Raises:
        ValueError: If a panel is empty.
    """
    if not train or not test:
        raise ValueError(
            f"baselines need tasks, got {len(train)} to learn and {len(test)} to score"
        )
    labels = Counter(_answer(row) for row in test if not _mutates(row))
    best = max(sum(_scores([answer] * len(test), test)) for answer in labels or ["none"])
    return {
        "constant": best / len(test),
        "kind": float(np.mean(_scores(_commonest(train, test), test))),
        "nearest": float(np.mean(_scores(_nearest(train, test), test))),
        "echo": float(np.mean(_scores([row["fields"].get("x", "none") for row in test], test))),
    }


def _mutates(row: Row) -> bool:
    return bool(row.get("answer_md5"))


def _answer(row: Row) -> str:
    return "done" if _mutates(row) else str(row["label"][0])


def _scores(answers: Sequence[str], rows: Sequence[Row]) -> list[float]:
    return [
        0.0 if _mutates(row) else score(answer, row["label"])
        for answer, row in zip(answers, rows, strict=True)
    ]


def _commonest(train: Sequence[Row], test: Sequence[Row]) -> list[str]:
    """The commonest answer of (kind, concept), else of the kind, else of all."""
    known: dict[tuple[str, ...], Counter[str]] = {}
    for row in train:
        for key in _keys(row):
            known.setdefault(key, Counter())[_answer(row)] += 1
    found = (next(known[key] for key in _keys(row) if key in known) for row in test)
    return [counts.most_common(1)[0][0] for counts in found]


def _keys(row: Row) -> list[tuple[str, ...]]:
    return [(row["type"][0], row["concept"]), (row["type"][0],), ()]


def _nearest(train: Sequence[Row], test: Sequence[Row]) -> list[str]:
    """The answer of the question with the highest cosine of word counts, the first of equals."""
    index: dict[str, int] = {}
    for row in train:
        for word in row["description"].split():
            index.setdefault(word, len(index))
    similar = _bags(test, index) @ _bags(train, index).T
    return [_answer(train[int(best)]) for best in similar.argmax(axis=1)]


def _bags(rows: Sequence[Row], index: Mapping[str, int]) -> NDArray[np.float64]:
    bags = np.zeros((len(rows), len(index)))
    for place, row in enumerate(rows):
        for word in row["description"].split():
            if word in index:
                bags[place, index[word]] += 1.0
    return bags / np.maximum(np.linalg.norm(bags, axis=1, keepdims=True), 1e-12)
