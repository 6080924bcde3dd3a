"""Functions that sqlite lacks or defines otherwise than MySQL, and their registration."""

import hashlib
import math
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

from rail.tools import sql_dates
from rail.tools.sql_names import FIXED_NOW
from rail.tools.sql_text import (
    Value,
    collate,
    fold,
    like,
    marks_off,
    number_of,
    regexp,
    regexp_replace,
    regexp_substr,
    text_of,
)

_MAX_TEXT = 100_000  # characters that a padding function may make (our choice)


def _strict(function: Callable[..., Value]) -> Callable[..., Value]:
    """NULL if any argument is NULL."""

    def guarded(*args: Value) -> Value:
        return None if None in args else function(*args)

    return guarded


def _concat_ws(separator: Value, *values: Value) -> str | None:
    if separator is None:
        return None
    return text_of(separator).join(text_of(v) for v in values if v is not None)


def _pad(text: str, length: int, fill: str, left: bool) -> str | None:
    if length < 0 or length > _MAX_TEXT or (length > len(text) and not fill):
        return None
    missing = length - len(text)
    if missing <= 0:
        return text[:length]
    padding = (fill * missing)[:missing]
    return padding + text if left else text + padding


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _repeat(text: str, count: int) -> str | None:
    if len(text) * max(count, 0) > _MAX_TEXT:
        return None  # as MySQL does above max_allowed_packet
    return text * max(count, 0)


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or not count:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:count] if count > 0 else parts[count:])


def _find(needle: str, text: str, start: int = 1) -> int:
    return marks_off(text).find(marks_off(needle), start - 1) + 1 if start > 0 else 0


def _field(value: Value, *options: Value) -> int:
    texts = [None if o is None else fold(text_of(o)) for o in options]
    wanted = None if value is None else fold(text_of(value))
    return texts.index(wanted) + 1 if wanted is not None and wanted in texts else 0


def _round_half_away(value: float, places: int) -> float | int:
    scaled = abs(value) * 10**places
    rounded = math.copysign(math.floor(scaled + 0.5 + 1e-9), value) / 10**places
    return int(rounded) if places <= 0 else rounded


def _mod(a: Value, b: Value) -> float | int | None:
    x, y = number_of(a), number_of(b)
    if y == 0:
        return None
    rest = math.fmod(x, y)
    return int(rest) if isinstance(x, int) and isinstance(y, int) else rest


def _extreme(pick: Callable[..., Any]) -> Callable[..., Value]:
    def choose(*args: Value) -> Value:
        if all(isinstance(a, int | float) for a in args):
            return pick(args)
        return pick(args, key=lambda a: fold(text_of(a)))

    return _strict(choose)


def _truncate(value: Value, places: Value) -> float:
    scale = 10 ** int(number_of(places))
    return math.trunc(number_of(value) * scale) / scale


def _number_function(function: Callable[[float], float]) -> Callable[..., Value]:
    def apply(value: Value) -> float | int | None:
        try:
            return function(number_of(value))
        except (ValueError, OverflowError):
            return None  # MySQL: NULL outside the domain

    return _strict(apply)


class _GroupConcat:
    """group_concat(x, separator, sort key, distinct, ordered, descending)."""

    def __init__(self) -> None:
        self.items: list[tuple[Value, str]] = []
        self.options: tuple[str, Value, Value, Value] = (",", 0, 0, 0)

    def step(
        self,
        value: Value,
        separator: Value,
        key: Value,
        distinct: Value,
        ordered: Value,
        down: Value,
    ) -> None:
        self.options = (text_of(separator), distinct, ordered, down)
        if value is not None:
            self.items.append((key, text_of(value)))

    def finalize(self) -> str | None:
        separator, distinct, ordered, down = self.options
        if not self.items:
            return None
        items = self.items
        if ordered:
            items = sorted(items, key=lambda item: _sort_key(item[0]), reverse=bool(down))
        texts = [text for _, text in items]
        if distinct:
            firsts: dict[str, str] = {}
            for text in texts:
                firsts.setdefault(fold(text), text)
            texts = list(firsts.values())
        return separator.join(texts)


def _sort_key(value: Value) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    return (1, value) if isinstance(value, int | float) else (2, fold(text_of(value)))


def _functions() -> list[tuple[str, int, Callable[..., Value]]]:
    strict: dict[str, tuple[int, Callable[..., Value]]] = {
        "concat": (-1, lambda *a: "".join(map(text_of, a))),
        "mysql_left": (2, lambda t, n: text_of(t)[: max(int(number_of(n)), 0)]),
        "mysql_right": (2, lambda t, n: _right(text_of(t), int(number_of(n)))),
        "lower": (1, lambda t: text_of(t).lower()),
        "upper": (1, lambda t: text_of(t).upper()),
        "length": (1, lambda t: len(t) if isinstance(t, bytes) else len(text_of(t).encode())),
        "char_length": (1, lambda t: len(text_of(t))),
        "reverse": (1, lambda t: text_of(t)[::-1]),
        "repeat": (2, lambda t, n: _repeat(text_of(t), int(number_of(n)))),
        "space": (1, lambda n: _repeat(" ", int(number_of(n)))),
        "lpad": (3, lambda t, n, f: _pad(text_of(t), int(number_of(n)), text_of(f), True)),
        "rpad": (3, lambda t, n, f: _pad(text_of(t), int(number_of(n)), text_of(f), False)),
        "substring_index": (
            3, lambda t, d, n: _substring_index(text_of(t), text_of(d), int(number_of(n)))
        ),
        "instr": (2, lambda t, n: _find(text_of(n), text_of(t))),
        "mysql_locate": (-1, lambda n, t, s=1: _find(text_of(n), text_of(t), int(number_of(s)))),
        "find_in_set": (2, lambda v, s: _field(v, *text_of(s).split(","))),
        "strcmp": (2, lambda a, b: collate(text_of(a), text_of(b))),
        "md5": (1, lambda t: hashlib.md5(text_of(t).encode(), usedforsecurity=False).hexdigest()),
        "format": (2, lambda x, d: f"{number_of(x):,.{max(int(number_of(d)), 0)}f}"),
        "truncate": (2, _truncate),
        "decimal_cast": (2, lambda x, d: _round_half_away(number_of(x), int(number_of(d)))),
        "mod": (2, _mod),
        "year": (1, sql_dates.part(0)),
        "month": (1, sql_dates.part(1)),
        "day": (1, sql_dates.part(2)),
        "datediff": (2, lambda a, b: sql_dates.difference(text_of(a), text_of(b))),
        "str_to_date": (2, lambda t, f: sql_dates.parse(text_of(t), text_of(f))),
        "date_format": (2, lambda t, f: sql_dates.render(text_of(t), text_of(f))),
        "pow": (2, lambda x, y: math.pow(number_of(x), number_of(y))),
    }  # fmt: skip
    numbers: dict[str, Callable[[float], float]] = {
        "ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt, "ln": math.log, "exp": math.exp,
        "log2": math.log2, "log10": math.log10, "sign": lambda x: (x > 0) - (x < 0),
    }  # fmt: skip
    plain: list[tuple[str, int, Callable[..., Value]]] = [
        ("like", 2, like),
        ("like", 3, like),
        ("regexp", 2, regexp),
        ("regexp_like", 2, lambda value, pattern: regexp(pattern, value)),
        ("regexp_replace", 3, regexp_replace),
        ("regexp_substr", 2, regexp_substr),
        ("concat_ws", -1, _concat_ws),
        ("field", -1, _field),
        ("isnull", 1, lambda value: int(value is None)),
        ("greatest", -1, _extreme(max)),
        ("least", -1, _extreme(min)),
        ("database", 0, lambda: "main"),
        ("version", 0, lambda: "8.0"),
        ("now", 0, lambda: FIXED_NOW),
        ("curdate", 0, lambda: FIXED_NOW[:10]),
        ("curtime", 0, lambda: FIXED_NOW[11:]),
    ]
    return [
        *plain,
        *((name, count, _strict(function)) for name, (count, function) in strict.items()),
        *((name, 1, _number_function(function)) for name, function in numbers.items()),
    ]


FUNCTIONS: Sequence[tuple[str, int, Callable[..., Value]]] = _functions()


class _Dice:
    """The n-th call gives the same number in every statement and fork."""

    def __init__(self) -> None:
        self.count = 0

    def uniform(self, *_: Value) -> float:
        self.count += 1
        digest = hashlib.blake2b(str(self.count).encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") / 2.0**64

    def integer(self) -> int:
        return int(self.uniform() * 2**62)


def register(connection: sqlite3.Connection) -> Callable[[], None]:
    """Add collation and functions to a connection.

    Returns:
        A call that restarts the fixed sequence behind RAND(); make it before each statement.
    """
    connection.create_collation("mysql", collate)
    for name, count, function in FUNCTIONS:
        connection.create_function(name, count, function, deterministic=True)
    connection.create_aggregate(
        "mysql_group_concat",
        6,
        _GroupConcat,  # type: ignore[arg-type] - the stub allows one argument and a number only
    )
    dice = _Dice()
    connection.create_function("rand", -1, dice.uniform)
    connection.create_function("random", 0, dice.integer)

    def restart() -> None:
        dice.count = 0

    return restart
