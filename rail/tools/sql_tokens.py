"""Tokens of a MySQL statement, with string literals decoded.

Only the lexical rules differ from sqlite's here: backslash escapes, `"` strings, backticks, names
that start with a digit, `#` comments, and `--` that opens a comment only before white space.
"""

import re
from typing import NamedTuple


class SqlError(ValueError):
    """A statement that cannot be run; its text is what the policy is told."""


class Token(NamedTuple):
    """One token.

    Attributes:
        kind: word | name (quoted) | string ('...') | double ("...") | number | op.
        text: Source text; operators and words as written.
        value: Upper case of a word, content of a name or string, else `text`.
    """

    kind: str
    text: str
    value: str


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--(?=\s|\Z)[^\n]*|\#[^\n]*|/\*.*?\*/)
  | (?P<word>(?!\d)[\w$@]+)
  | (?P<number>0[xX][0-9a-fA-F]+(?![\w$])|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))
  | (?P<digits>[\w$]+)
  | (?P<string>'[^'\\]*(?:(?:\\.|'')[^'\\]*)*')
  | (?P<double>"[^"\\]*(?:(?:\\.|"")[^"\\]*)*")
  | (?P<name>`[^`]*(?:``[^`]*)*`|\[[^\]\n]*\])
  | (?P<op><=>|<>|!=|<=|>=|==|\|\||&&|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_CONTROL = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a"}


def decode(body: str, quote: str) -> str:
    r"""Return what a literal's `body` stands for: `\n` is a newline, `\%` stays."""
    if "\\" not in body and quote not in body:
        return body

    def one(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if escaped is None:
            return quote if match.group(0) == quote * 2 else match.group(0)
        if escaped in "%_":
            return "\\" + escaped
        return _CONTROL.get(escaped, escaped)

    return _ESCAPE.sub(one, body)


def tokenize(sql: str) -> list[Token]:
    """Return the tokens of one statement, without comments and the closing semicolons.

    Raises:
        SqlError: If a quote is not closed, or a second statement follows.
    """
    tokens: list[Token] = []
    ended = False
    for match in _TOKEN.finditer(sql):
        kind = match.lastgroup
        if kind == "space":
            continue
        text = match.group()
        if text == ";":
            ended = bool(tokens)
            continue
        if ended:
            raise SqlError("one statement per call; remove what follows the semicolon")
        if kind == "word":
            tokens.append(Token("word", text, text.upper()))
        else:
            tokens.append(_token(str(kind), text))
    return tokens


def _token(kind: str, text: str) -> Token:
    if kind == "digits":
        return Token("name", text, text)
    if kind in ("string", "double"):
        return Token(kind, text, decode(text[1:-1], text[0]))
    if kind == "name":
        return Token("name", text, text[1:-1].replace("``", "`"))
    if kind == "op" and text in "'\"`[":
        raise SqlError(f"the quote {text} is not closed")
    return Token(kind, text, text)


def literal(text: str) -> str:
    """Return a sqlite string literal of `text`."""
    if "\0" in text:
        return f"CAST(x'{text.encode().hex()}' AS TEXT)"
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a sqlite identifier of `name` that is never taken for a string."""
    return "`" + name.replace("`", "``") + "`"


def lenient(name: str) -> str:
    """Return `name` in double quotes, for sqlite a name or, if there is none, a string."""
    return '"' + name.replace('"', '""') + '"'
