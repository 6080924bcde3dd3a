"""Right values of the answer rules; `upstream` stands where the published rule gives another."""

from pathlib import Path

import pytest

from rail.envs.agentbench_db.answers import Answer, score, score_upstream


@pytest.mark.parametrize(
    ("answer", "label", "right", "upstream"),
    [
        # G1, G3: numbers within 0.01
        ("0", ["0.0"], 1, 1),
        ("12", ["12.0"], 1, 1),
        ("-0", ["0"], 1, 1),
        ("12.004", ["12.01"], 1, 1),
        ("12.0", ["12.01"], 1, 1),
        ("12.0", ["12.02"], 0, 0),
        # G4: per cent
        ("45%", ["45"], 1, 1),
        ("45%", ["0.45"], 0, 0),
        # G5, G6: thousands, and commas in a text
        ("1,234", ["1234"], 1, 1),
        ("3,729.7", ["3729.7"], 1, 1),
        ("12,34", ["1234"], 0, 1),
        ("Paris, France", ["Paris France"], 0, 1),
        ("Paris, France", ["Paris, France"], 1, 1),
        # G7, F4: nothing
        ([], ["none"], 1, 0),
        ("none", ["none"], 1, 1),
        (None, ["none"], 1, 1),
        ("null", ["none"], 1, 1),
        ("", ["none"], 1, 1),
        ("undefined", ["0"], 0, 1),
        ("none", ["0"], 0, 1),
        ([], ["0"], 0, 0),
        ("0", ["none"], 0, 1),
        # G10: mixed lists
        (["5", "x"], ["5.0", "x"], 1, 0),
        (["x", "5"], ["5", "x"], 1, 1),
        # G11: a list as one text
        ("[(1,),(2,)]", ["2", "1"], 1, 1),
        ('["a", "b"]', ["b", "a"], 1, 1),
        (["[1, 2]"], ["2", "1"], 1, 1),
        ([1, 2], ["2", "1"], 1, 1),
        # G13: what a driver prints
        ("[(Decimal('12'),)]", ["12"], 1, 0),
        ("[(datetime.date(2020, 1, 2),)]", ["2020-01-02"], 1, 0),
        # G15: exact texts
        (" 'Chelsea' ", ["Chelsea"], 1, 1),
        ("chelsea", ["Chelsea"], 0, 0),
        ("63–85", ["63-85"], 0, 0),  # noqa: RUF001 - the dash is the point
        # lengths and repeats
        ([1, 1], ["1"], 0, 0),
        ([1, 2], ["1", "2", "2"], 0, 0),
        (["a", "a"], ["a"], 1, 1),
        (["a", "b"], ["a"], 0, 0),
        (["a"], ["a", "b"], 0, 0),
        # several columns
        ("[(1, 'a')]", ["1", "a"], 1, 0),
        # not numbers
        ("nan", ["nan"], 1, 1),
        ("1e999", ["inf"], 0, 0),
        (True, ["True"], 1, 1),
        (12, ["12.0"], 1, 1),
    ],
)
def test_answers(answer: Answer, label: list[str], right: int, upstream: int) -> None:
    assert score(answer, label) == right
    assert score_upstream(answer, label) == upstream


@pytest.mark.parametrize("answer", [[], "none", "null", "", None, "[]", "[(None,)]"])
@pytest.mark.parametrize("label", ["none", "0", "0.0"])
def test_an_empty_answer_is_right_where_nothing_is_found(answer: Answer, label: str) -> None:  # G7
    assert score(answer, [label], nothing=True) == 1.0


def test_where_nothing_is_found_the_label_itself_is_right_too() -> None:
    assert score("0", ["0.0"], nothing=True) == 1.0
    assert score("7", ["0.0"], nothing=True) == 0.0


@pytest.mark.parametrize("wrap", ["{}", "[{}]", "[({},)]", "['a', {}]"])
def test_no_answer_is_evaluated(tmp_path: Path, wrap: str) -> None:  # F3
    path = tmp_path / "x"
    answer = wrap.format(f"__import__('os').system('touch {path}')")
    assert score(answer, ["0"]) == 0.0
    assert score_upstream(answer, ["0"]) == 0.0
    assert not path.exists()


@pytest.mark.parametrize(
    "answer",
    ["[" * 10_000, "[" * 10_000 + "]" * 10_000, "[" + "9" * 10_000 + "]", "['" + "\\" * 999 + "']",
     "[(", "[1,,2]", "[1 2]", "]", "[date(1)]", "[Decimal()]", "\ud800", [[["a"]], {"b": 1}]],
)  # fmt: skip
def test_strange_answers_are_wrong_and_raise_nothing(answer: Answer) -> None:
    assert score(answer, ["gold"]) == 0.0
    assert score_upstream(answer, ["gold"]) == 0.0
