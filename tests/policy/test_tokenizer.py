from itertools import islice
from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from rail.errors import ConfigError
from rail.policy.tokenizer import MARKERS, train_tokenizer
from tests.policy.dialogues import ANSWER, CLOSE, QUERY, CopyTask

PIECES = (QUERY, ANSWER, CLOSE)


def texts(count: int = 2000) -> list[str]:
    source = islice(CopyTask().demonstrations(0), count)
    return [message.text for dialogue in source for message in dialogue]


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return train_tokenizer(texts(), PIECES, 450)


def cut(tokenizer: PreTrainedTokenizerFast, text: str) -> list[str]:
    return [str(tokenizer.decode([i])) for i in tokenizer.encode(text, add_special_tokens=False)]


def test_markers_come_first_and_pieces_are_one_token_each(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert tokenizer.convert_tokens_to_ids(list(MARKERS)) == [0, 1, 2, 3, 4]
    assert [len(tokenizer.encode(piece)) for piece in PIECES] == [1, 1, 1]
    assert (tokenizer.pad_token_id, tokenizer.eos_token_id) == (0, 4)


def test_a_value_is_cut_the_same_way_wherever_it_stands(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    assert cut(tokenizer, "[(7897,)]") == ["[(", "78", "97", ",)]"]
    assert cut(tokenizer, "'river'") == ["'", "river", "'"]
    assert cut(tokenizer, "x=-45") == ["x", "=", "-", "45"]
    number = [cut(tokenizer, text) for text in ("= -789", "('-789')", "-789")]
    assert [[t for t in tokens if t.isdigit()] for tokens in number] == [["78", "9"]] * 3


def test_a_column_has_no_leading_space_after_a_keyword_or_a_comma() -> None:
    seen = train_tokenizer(["SELECT cost, size FROM t", "[('cost', 'size')]"] * 40, (), 400)
    query = cut(seen, "SELECT cost, size FROM t")
    assert query == ["SELECT ", "cost", ", ", "size", " FROM ", "t"]
    assert cut(seen, "[('cost', 'size')]") == ["[('", "cost", "', '", "size", "')]"]


def test_a_rare_word_is_spelled_in_syllables_and_a_frequent_one_is_not() -> None:
    met = ["'Kogu'"] * 3 + ["'Zemo'"] * 2 + ["'Vura'"] * 2
    seen = train_tokenizer([*met, *["x"] * 1793], (), 500)  # of 1800 texts: frequent from 3 on
    assert cut(seen, "'Kogu'") == ["'", "Kogu", "'"]
    assert cut(seen, "'Zemo'") == ["'", "Ze", "mo", "'"]
    assert cut(seen, "'Zera'") == ["'", "Ze", "ra", "'"]  # never met as a word


def test_dates_and_decimals_are_cut_into_their_parts() -> None:
    seen = train_tokenizer(["2024-03-15", "12.50"] * 5, (), 400)
    assert cut(seen, "2024-03-15") == ["2024", "-03", "-15"]
    assert cut(seen, "12.50") == ["12", ".5", "0"]
    assert cut(seen, "202403") == ["20", "24", "03"]  # no year without the hyphen


@pytest.mark.parametrize("text", ["é日本 🙂\n\t two  spaces", "`a``b`\\'\"", " <|end|>", ""])
def test_any_text_survives(tokenizer: PreTrainedTokenizerFast, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_vocabulary_limit_counts_markers_and_pieces() -> None:
    many = [f"{chr(97 + i % 26)}{chr(97 + i // 26)}x" for i in range(300)] * 2
    assert len(train_tokenizer(many, PIECES, 400)) == 400


def test_a_vocabulary_without_room_for_the_bytes_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"policy.vocabulary is 363, .* need 364"):
        train_tokenizer(texts(2), PIECES, 363)  # 256 bytes, 100 pairs, 5 markers, 3 pieces


def test_equal_pieces_are_refused() -> None:
    with pytest.raises(ConfigError, match="must differ"):
        train_tokenizer(texts(2), (QUERY, QUERY), 400)


def test_equal_texts_give_equal_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        train_tokenizer(texts(), PIECES, 450).save_pretrained(tmp_path / name)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert "tokenizer.json" in files
    assert "chat_template.jinja" in files
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_saved_and_loaded_it_encodes_the_same(
    tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    for text in texts(20):
        assert loaded.encode(text) == tokenizer.encode(text)
    assert loaded.chat_template == tokenizer.chat_template


def test_the_template_refuses_an_unknown_role(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(Exception, match="unknown role system; known: user, assistant, tool"):
        tokenizer.apply_chat_template([{"role": "system", "content": "x"}], tokenize=False)
