import pytest

from rail.tools.sql_tokens import SqlError, decode, identifier, literal, tokenize


def _kinds(sql: str) -> list[tuple[str, str]]:
    return [(token.kind, token.value) for token in tokenize(sql)]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (r"x\ny", "x\ny"),
        (r"a\\b", "a\\b"),
        (r"Don\'t", "Don't"),
        ("Don''t", "Don't"),
        (r"5\%", r"5\%"),  # LIKE sees the backslash
        (r"\q", "q"),
    ],
)
def test_escapes_in_a_literal_are_mysqls(body: str, text: str) -> None:
    assert decode(body, "'") == text


def test_a_doubled_quote_of_the_other_kind_stays() -> None:
    assert decode("a''b", '"') == "a''b"


@pytest.mark.parametrize(
    ("sql", "tokens"),
    [
        ("1952_GP", [("name", "1952_GP")]),
        ("1952", [("number", "1952")]),
        ("1e5", [("number", "1e5")]),
        (".5", [("number", ".5")]),
        ("`a``b`", [("name", "a`b")]),
        ("[two words]", [("name", "two words")]),
        ('"x"', [("double", "x")]),
        ("Größe", [("word", "GRÖSSE")]),
        ("a -- comment\n", [("word", "A")]),
        ("a # comment", [("word", "A")]),
        ("5--3", [("number", "5"), ("op", "-"), ("op", "-"), ("number", "3")]),
        ("a;;", [("word", "A")]),
    ],
)
def test_lexical_rules(sql: str, tokens: list[tuple[str, str]]) -> None:
    assert _kinds(sql) == tokens


def test_an_open_quote_is_named() -> None:
    with pytest.raises(SqlError, match="quote ' is not closed"):
        tokenize("SELECT 'x")


def test_a_second_statement_is_refused() -> None:
    with pytest.raises(SqlError, match="one statement per call"):
        tokenize("SELECT 1; DROP TABLE t")


def test_a_semicolon_in_a_literal_ends_nothing() -> None:
    assert _kinds("'a;b'") == [("string", "a;b")]


def test_rendering_doubles_quotes() -> None:
    assert literal("Men's") == "'Men''s'"
    assert identifier("a`b") == "`a``b`"
    assert literal("a\0b") == "CAST(x'610062' AS TEXT)"
