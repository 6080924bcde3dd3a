"""MySQL's text rules: collation, LIKE, regular expressions, numbers in texts."""

import unicodedata
from functools import lru_cache

import regex

REGEX_TIMEOUT_S = 0.5  # our choice; a pattern that runs longer is an error of the statement

Value = str | int | float | bytes | None


@lru_cache(maxsize=1 << 16)
def fold(text: str) -> str:
    """Return the key that MySQL's collation compares: no case, accents or trailing spaces."""
    return marks_off(text).rstrip(" ")


def marks_off(text: str) -> str:
    """Return the text without case and accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c))


def collate(a: str, b: str) -> int:
    """Order two texts as the collation `mysql`: negative, 0 or positive."""
    if a == b:
        return 0
    x, y = fold(a), fold(b)
    return (x > y) - (x < y)


def text_of(value: Value) -> str:
    """Return a value as MySQL would print it; an integral double prints without a fraction."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def number_of(value: Value) -> float | int:
    """Return the leading number of a text, else 0."""
    if isinstance(value, int | float):
        return value
    match = regex.match(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", text_of(value))
    return float(match.group()) if match else 0


@lru_cache(maxsize=4096)
def _like_pattern(pattern: str, escape: str) -> "regex.Pattern[str]":
    # Each piece between two % is taken at its first place (an atomic group): no blow-up.
    pieces: list[list[str]] = [[]]
    index = 0
    while index < len(pattern):
        char = pattern[index]
        if char == escape and index + 1 < len(pattern):
            index += 1
            pieces[-1].append(regex.escape(pattern[index]))
        elif char == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if char == "_" else regex.escape(char))
        index += 1
    texts = ["".join(piece) for piece in pieces]
    if len(texts) == 1:
        source = texts[0]
    else:
        middle = "".join(f"(?>.*?{text})" for text in texts[1:-1] if text)
        source = f"{texts[0]}{middle}.*{texts[-1]}"
    return regex.compile(source, regex.DOTALL)


def like(pattern: Value, value: Value, escape: Value = "\\") -> int | None:
    """Return `value LIKE pattern` without regard to case and accents."""
    if pattern is None or value is None:
        return None
    compiled = _like_pattern(marks_off(text_of(pattern)), text_of(escape))
    return int(compiled.fullmatch(marks_off(text_of(value))) is not None)


def regexp(pattern: Value, value: Value) -> int | None:
    """Return `value REGEXP pattern`, without regard to case."""
    if pattern is None or value is None:
        return None
    found = regex.search(
        text_of(pattern), text_of(value), regex.IGNORECASE, timeout=REGEX_TIMEOUT_S
    )
    return int(found is not None)


def regexp_replace(value: Value, pattern: Value, new: Value) -> str | None:
    """Return REGEXP_REPLACE(value, pattern, new)."""
    if value is None or pattern is None or new is None:
        return None
    # MySQL writes a group as $1, regex as \1.
    replacement = regex.sub(r"\$(\d)", r"\\\1", text_of(new).replace("\\", "\\\\"))
    return regex.sub(
        text_of(pattern),
        replacement,
        text_of(value),
        flags=regex.IGNORECASE,
        timeout=REGEX_TIMEOUT_S,
    )


def regexp_substr(value: Value, pattern: Value) -> str | None:
    """Return the first match of the pattern, NULL if there is none."""
    if value is None or pattern is None:
        return None
    found = regex.search(
        text_of(pattern), text_of(value), regex.IGNORECASE, timeout=REGEX_TIMEOUT_S
    )
    return found.group() if found else None
