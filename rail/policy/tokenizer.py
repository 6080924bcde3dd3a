"""The embedded policy's tokenizer: whole words where frequent, else syllables, else bytes.

Design (`our choice`): a policy of half a million weights copies a name or a number from an
observation into its next query only where both are cut into the same tokens. Merges learned by
byte-pair encoding cut `'Foni'` and `'Kogu'` differently, and give a word two tokens, with and
without leading space. So text is split by rule before the model sees it:

- numbers in groups of two digits from the left; a date into year, `-MM` and `-DD`;
- punctuation and upper-case words (SQL's keywords) take the spaces around them, which leaves column
  names and quoted values without any;
- a word that is not frequent is spelled in syllables, so that a name never met has familiar parts.

The model is a byte-level BPE without merges: a split that is in the vocabulary is a token, any
other is its bytes, and every text survives the round trip.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rail.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers.pre_tokenizers import PreTokenizer
    from transformers import PreTrainedTokenizerFast

USER, ASSISTANT, TOOL, END, PAD = "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "<|pad|>"
MARKERS = (PAD, USER, ASSISTANT, TOOL, END)
"""Special tokens in id order; padding is 0."""

FREQUENT = 600
"""A word is frequent if it occurs at least once in so many texts: far above any name of a table or
person, of which there are thousands, and below the words of a kind of task; `our choice`."""

_UNITS = (
    r"(?<!\d)\d{4}(?=-\d\d(?!\d))"  # year of a date
    r"|(?<=\d)-\d\d(?!\d)"  # its month and day; only after a digit, so that -45 is cut like 45
    r"|(?<=\d)\.\d"  # first decimal
    r"|\d{1,2}"
    r"| ?\p{Lu}[\p{Lu}_]+(?![\p{Ll}]) ?"
    r"| ?[\p{L}\p{M}_]+"
    r"| ?[^\s\p{L}\p{M}\d_]+(?: [^\s\p{L}\p{M}\d_]+)*(?: (?!\p{Lu}[\p{Lu}_]))?"
    r"|\s"
)
_WORD = re.compile(r" ?[^\W\d]+ ?")
_SYLLABLES = r"[b-df-hj-np-tv-zB-DF-HJ-NP-TV-Z]?[aeiouAEIOU]|."

CHAT_TEMPLATE = (
    "{%- for message in messages -%}"
    "{%- if message['role'] not in ['user', 'assistant', 'tool'] -%}"
    "{{- raise_exception('unknown role ' + message['role'] + '; known: user, assistant, tool') -}}"
    "{%- endif -%}"
    "{{- '<|' + message['role'] + '|>' + message['content'] + '<|end|>' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|assistant|>' -}}{%- endif -%}"
)


def train_tokenizer(
    texts: Iterable[str], pieces: Sequence[str], vocabulary: int
) -> "PreTrainedTokenizerFast":
    """Choose the vocabulary; equal texts give equal bytes of the tokenizer's files.

    Args:
        texts: Message texts; a piece inside them is never part of another token.
        pieces: Strings that become one token each (tool-call prefix and suffix).
        vocabulary: Upper limit of the number of tokens, markers and pieces included.

    Raises:
        ConfigError: If `vocabulary` has no room for the 256 bytes, the markers, the pieces and the
            100 pairs of digits, or if two of the strings are equal.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    fixed = [*MARKERS, *pieces]
    if len(set(fixed)) != len(fixed):
        raise ConfigError(f"tokenizer pieces must differ from each other and from markers: {fixed}")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    pairs = [f"{number:02}" for number in range(100)]
    room = vocabulary - len(fixed) - len(alphabet) - len(pairs)
    if room < 0:
        raise ConfigError(
            f"policy.vocabulary is {vocabulary}, but {len(alphabet)} bytes, {len(pairs)} pairs of"
            f" digits and {len(fixed)} markers and pieces need {vocabulary - room}; raise it"
        )
    between = list(_without(pieces, texts))
    units = _count(_splitter(), between)
    words = [u for u, n in units.items() if _WORD.fullmatch(u) and n * FREQUENT >= len(between)]
    splitter = _splitter(words)
    splits = _count(splitter, between)
    longer = {s for s, n in splits.items() if n > 1 and len(s.encode()) > 1} - set(pairs)
    chosen = sorted(longer, key=lambda s: (-splits[s], s))[:room]
    tokens = [*MARKERS, *alphabet, *(_as_bytes(split) for split in [*pairs, *chosen])]
    backend = Tokenizer(
        models.BPE({token: index for index, token in enumerate(tokens)}, [], ignore_merges=True)
    )
    backend.pre_tokenizer = splitter
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(m, special=True, normalized=False) for m in MARKERS])
    # Pieces are text of an action, so they are not special: content is encoded with special tokens
    # switched off (see rail.policy.chat), and decoding must keep them.
    backend.add_tokens([AddedToken(piece, special=False, normalized=False) for piece in pieces])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        eos_token=END,
        pad_token=PAD,
        extra_special_tokens=[USER, ASSISTANT, TOOL],
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def _splitter(words: Sequence[str] | None = None) -> "PreTokenizer":
    """Return the rule that splits text into units; given frequent words, it spells the others."""
    from tokenizers import Regex, pre_tokenizers

    steps: list[PreTokenizer] = [pre_tokenizers.Split(Regex(_UNITS), "isolated")]
    if words is not None:
        kept = "|".join([*map(re.escape, sorted(words)), r"[\d.\-]+", r"[^\p{L}\p{M}\d_]+"])
        spelled = Regex(rf"(?m:\A(?:{kept})\z|{_SYLLABLES})")
        steps.append(pre_tokenizers.Split(spelled, "isolated"))
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False))
    return pre_tokenizers.Sequence(steps)


def _without(pieces: Sequence[str], texts: Iterable[str]) -> Iterator[str]:
    """Yield what lies between the pieces: added tokens are cut out before the rules apply."""
    cut = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))) or r"(?!)")
    for text in texts:
        yield from filter(None, cut.split(text))


def _count(splitter: "PreTokenizer", texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        # Offsets point into the text, so units come back as text and not as byte symbols.
        counts.update(text[a:b] for _, (a, b) in splitter.pre_tokenize_str(text))
    return counts


def _as_bytes(text: str) -> str:
    """Return the byte-level symbols that stand for a text."""
    from tokenizers.pre_tokenizers import ByteLevel

    splits = ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)
    return "".join(symbols for symbols, _ in splits)
