import pytest

from rail.tools.sql_text import collate, fold, like, number_of, text_of


@pytest.mark.parametrize(
    ("text", "key"),
    [("Montréal", "montreal"), ("ABC  ", "abc"), ("  a", "  a"), ("Straße", "strasse"), ("", "")],
)
def test_folding_drops_case_accents_and_trailing_spaces(text: str, key: str) -> None:
    assert fold(text) == key


def test_collation_orders() -> None:
    assert collate("a", "B") == -1
    assert collate("É", "e") == 0
    assert collate("b", "A") == 1


@pytest.mark.parametrize(
    ("text", "number"),
    [("49,285", 49), (" 12abc", 12), ("-.5", -0.5), ("1e3", 1000), ("?", 0), ("", 0), (7, 7)],
)
def test_a_text_counts_by_its_leading_number(text: str | int, number: float) -> None:
    assert number_of(text) == number


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("%b%", "aBc", 1),
        ("a%c", "abcbc", 1),
        ("a%c", "abcb", 0),
        ("_", "ab", 0),
        ("%", "", 1),
        ("a.c", "abc", 0),
        ("%a%a", "ba", 0),
        (None, "a", None),
    ],
)
def test_like(pattern: str | None, value: str, found: int | None) -> None:
    assert like(pattern, value) == found


def test_like_takes_another_escape() -> None:
    assert like("5!%", "5%", "!") == 1
    assert like("5!%", "55", "!") == 0


def test_an_integral_double_prints_as_an_integer() -> None:
    assert [text_of(v) for v in (3.0, 3.5, "x", 10)] == ["3", "3.5", "x", "10"]
