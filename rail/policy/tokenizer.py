"""The embedded policy's tokenizer: a byte-level BPE, chat markers and tool calls one token each.

Design (`our choice`, measured on prototypes): text is split before merging so that a value is cut
the same way wherever it appears. Copying a name or number from an observation into the next query
then means repeating token ids, which a small model can learn. Numbers become groups of one or two
digits from the left; a date is year, `-MM`, `-DD`; letters with their leading space are one word.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rail.errors import ConfigError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

USER, ASSISTANT, TOOL, END, PAD = "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "<|pad|>"
MARKERS = (PAD, USER, ASSISTANT, TOOL, END)
"""Special tokens in id order; padding is 0."""

SPLIT = (
    r"(?<!\d)\d{4}(?=-\d\d(?!\d))"  # year of a date
    r"|(?<=\d)-\d\d(?!\d)"  # its month and day; only after a digit, so that -45 is cut like 45
    r"|(?<=\d)\.\d"  # first decimal
    r"|\d{1,2}"
    r"| ?[\p{L}\p{M}_]+"
    r"| ?[^\s\p{L}\p{M}\d_]+"
    r"|\s"
)

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
    """Train the tokenizer; equal texts give equal bytes of its files.

    Args:
        texts: Message texts; a piece inside them is never merged with its neighbours.
        pieces: Strings that become one token each (tool-call prefix and suffix).
        vocabulary: Upper limit of the number of tokens, markers and pieces included.

    Raises:
        ConfigError: If `vocabulary` has no room for the 256 bytes, the markers and the pieces, or
            if two of the strings are equal.
    """
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    fixed = [*MARKERS, *pieces]
    if len(set(fixed)) != len(fixed):
        raise ConfigError(f"tokenizer pieces must differ from each other and from markers: {fixed}")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    if vocabulary < len(fixed) + len(alphabet):
        raise ConfigError(
            f"policy.vocabulary is {vocabulary}, but {len(alphabet)} bytes and {len(fixed)}"
            f" markers and pieces need {len(fixed) + len(alphabet)}; raise it"
        )
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(pieces),
        min_frequency=2,
        show_progress=False,
        special_tokens=list(MARKERS),
        initial_alphabet=alphabet,
    )
    backend.train_from_iterator(_without(pieces, texts), trainer)
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


def _without(pieces: Sequence[str], texts: Iterable[str]) -> Iterator[str]:
    """Yield what lies between the pieces: added tokens are cut out before merging, in use too."""
    cut = re.compile("|".join(map(re.escape, sorted(pieces, key=len, reverse=True))) or r"(?!)")
    for text in texts:
        yield from filter(None, cut.split(text))
