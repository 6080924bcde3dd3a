import pytest

from rail.envs.agentbench_db.listing import cells


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("[]", []),
        ("[1, 2.5, -3e2]", [["1"], ["2.5"], ["-3e2"]]),
        ("['a', \"b's\"]", [["a"], ["b's"]]),
        ("[(1, 'x'), (2, 'y'),]", [["1", "x"], ["2", "y"]]),
        ('["a\\u00e9\\n\\"q\\""]', [['aé\n"q"']]),
        ("[None, null, True]", [["none"], ["none"], ["True"]]),
        ("['x, y']", [["x, y"]]),
        (" [1] ", [["1"]]),
    ],
)
def test_lists_are_read(text: str, rows: list[list[str]]) -> None:
    assert cells(text, constructors=True) == rows


@pytest.mark.parametrize(
    "text",
    ["", "a", "[a]", "[1", "1]", "[1]]", "[1] [2]", "[f(1)]", "[1 for x in y]", "[(1]", "(1,)"],
)
def test_other_texts_are_no_lists(text: str) -> None:
    assert cells(text, constructors=True) is None


def test_constructors_are_read_on_demand() -> None:
    assert cells("[Decimal('1.5')]", constructors=True) == [["1.5"]]
    assert cells("[decimal.Decimal('1.5')]", constructors=True) == [["1.5"]]
    assert cells("[Decimal('1.5')]", constructors=False) is None
    assert cells("[date(2020, 13, 1)]", constructors=True) is None
