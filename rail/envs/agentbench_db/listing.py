"""The text of a list, as JSON or as Python prints it, read without evaluating anything."""

import re
from collections.abc import Iterator
from datetime import date

_MAX_DEPTH = 8
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w]))
    | (?P<call>(?:decimal\.)?Decimal|(?:datetime\.)?date(?![\w.]))
    | (?P<word>None|null|True|False|true|false|nan|NaN)(?!\w)
    | (?P<mark>[\[\](),])
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_CONTROL = {"n": "\n", "t": "\t", "r": "\r"}

Row = list[str]


class _NotAListError(Exception):
    """The text is no list in our grammar."""


def cells(text: str, *, constructors: bool) -> list[Row] | None:
    """Return the rows of a list's text, a bare item being a row of one cell; None if it is no list.

    Args:
        text: E.g. `[1, 2]`, `["a", "b"]`, `[(1, 'a'), (2, 'b')]`.
        constructors: Also read `Decimal('12')` as 12 and `datetime.date(2020, 1, 2)` as 2020-01-02.
    """
    stripped = text.strip()
    if not (stripped.startswith("[") and stripped.endswith("]")):
        return None
    try:
        reader = _Reader(stripped, constructors)
        items = reader.sequence("]", 0)
        reader.end()
    except _NotAListError:
        return None
    return [item if isinstance(item, list) else [item] for item in items]


class _Reader:
    """A recursive reader over the tokens."""

    def __init__(self, text: str, constructors: bool) -> None:
        self._tokens = list(_scan(text))
        self._index = 1  # after the opening bracket
        self._constructors = constructors

    def _take(self) -> tuple[str, str]:
        if self._index >= len(self._tokens):
            raise _NotAListError
        self._index += 1
        return self._tokens[self._index - 1]

    def end(self) -> None:
        if self._index != len(self._tokens):
            raise _NotAListError

    def sequence(self, close: str, depth: int) -> list[str | Row]:
        if depth > _MAX_DEPTH:
            raise _NotAListError
        items: list[str | Row] = []
        while True:
            kind, text = self._take()
            if (kind, text) == ("mark", close):
                return items
            items.append(self._item(kind, text, depth))
            kind, text = self._take()
            if (kind, text) == ("mark", close):
                return items
            if (kind, text) != ("mark", ","):
                raise _NotAListError

    def _item(self, kind: str, text: str, depth: int) -> str | Row:
        if kind == "mark" and text in "([":
            inner = self.sequence(")" if text == "(" else "]", depth + 1)
            return [c for item in inner for c in (item if isinstance(item, list) else [item])]
        if kind == "call" and self._constructors:
            return self._constructed(text, depth)
        if kind in ("mark", "call"):
            raise _NotAListError
        return "none" if kind == "word" and text in ("None", "null") else text

    def _constructed(self, name: str, depth: int) -> str:
        if self._take() != ("mark", "("):
            raise _NotAListError
        arguments = self.sequence(")", depth + 1)
        if not all(isinstance(a, str) for a in arguments):
            raise _NotAListError
        texts = [str(a) for a in arguments]
        if name.endswith("Decimal") and len(texts) == 1:
            return texts[0]
        try:
            year, month, day = map(int, texts)
            return date(year, month, day).isoformat()
        except ValueError:
            raise _NotAListError from None


def _scan(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _NotAListError
        kind = match.lastgroup
        value = match.group(kind)
        yield kind, _unescape(value[1:-1]) if kind == "text" else value
        at = match.end()


def _unescape(body: str) -> str:
    def one(match: re.Match[str]) -> str:
        code = match.group(1)
        return chr(int(code[1:], 16)) if len(code) > 1 else _CONTROL.get(code, code)

    return _ESCAPE.sub(one, body) if "\\" in body else body
