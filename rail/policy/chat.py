"""Text to token ids and back, for any tokenizer whose chat template follows the ChatML pattern.

A dialogue is never rendered again once a token has been sampled: the ids of a rollout are prompt,
action, observation, action, ... joined end to end, and those are the ids that training sees. The
texts between messages are found by rendering a template once with sentinels in place of the
messages, so the embedded policy and a pretrained one take the same path.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jinja2 import TemplateError
from numpy.typing import NDArray

from rail.envs.base import Message
from rail.errors import DataError, PolicyError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

# Quotes and a line break inside: a template that escapes or rewrites a message loses its sentinel.
_USER, _ACTION, _TOOL = (f"rail \"{letter}'\n{letter} rail" for letter in "UAT")


@dataclass(frozen=True, slots=True)
class _Frame:
    """Where a message's text goes: ids, then `left` + text + `right` encoded together, then ids."""

    head: tuple[int, ...]
    left: str
    right: str
    tail: tuple[int, ...]


class Chat:
    """What the rollout engine needs of a tokenizer.

    Special tokens inside a message's text (a query that prints `<|end|>`, say) are encoded as plain
    text, so that neither policy nor environment can forge a message boundary.

    Attributes:
        tokenizer: The Hugging Face tokenizer this was made from.
        end_id: Id of the token that ends an action.
        close_unfinished: Ids to append to an action that reached its token cap, shape (1,).
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        """Derive the frames.

        Raises:
            PolicyError: If there is no fast tokenizer, no chat template, or a template in which a
                turn does not end with a special token.
        """
        from tokenizers import Tokenizer

        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise PolicyError(
                f"{tokenizer.name_or_path}: no fast tokenizer; convert it so that the folder holds"
                " tokenizer.json"
            )
        self.tokenizer = tokenizer
        self._backend = Tokenizer.from_str(backend.to_str())
        self._backend.no_padding()
        self._backend.no_truncation()
        self._backend.encode_special_tokens = True
        added = self._backend.get_added_tokens_decoder()
        self._special = {token.content: index for index, token in added.items() if token.special}
        around = _surroundings(tokenizer)
        end, *rest = self._cut(around.before_observation) or [""]
        if isinstance(end, str):
            raise PolicyError(
                f"{tokenizer.name_or_path}: its chat template ends an assistant turn with"
                f" {around.before_observation[:40]!r}, not with a special token; use a template of"
                " the ChatML kind"
            )
        self.end_id: int = end
        self.close_unfinished: Ints = np.array([end], dtype=np.int64)
        self._prompt = self._frame(self._cut(around.before_prompt), self._cut(around.after_prompt))
        self._observation = self._frame(rest, self._cut(around.after_observation))

    def encode_prompt(self, text: str) -> Ints:
        """Return the ids of the user message up to where the first action starts, shape (P,)."""
        return self._fill(self._prompt, text)

    def encode_observation(self, text: str) -> Ints:
        """Return the ids between an action's end token and the next action, shape (O,)."""
        return self._fill(self._observation, text)

    def encode_action(self, text: str) -> Ints:
        """Return the ids of an action with its end token, shape (A,); for demonstrations only."""
        return np.array([*self._encode(text), self.end_id], dtype=np.int64)

    def decode_action(self, ids: Ints | Sequence[int]) -> str:
        """Return an action's text without its end token; other special tokens stay visible."""
        tokens = [int(i) for i in ids]
        if tokens and tokens[-1] == self.end_id:
            tokens.pop()
        return self._backend.decode(tokens, skip_special_tokens=False)

    def encode_dialogue(self, messages: Sequence[Message]) -> tuple[Ints, Bools]:
        """Lay a finished dialogue out as a rollout would be.

        Returns:
            Ids, shape (T,), and a mask of the same shape that is True on actions and their end
            tokens. The last message ends the ids: nothing follows the final action.

        Raises:
            DataError: If roles are not user, assistant, tool, assistant, ..., assistant.
        """
        roles = [message.role for message in messages]
        expected = ["user", *(["assistant", "tool"] * len(roles))[: len(roles) - 1]]
        if roles != expected or roles[-1:] != ["assistant"]:
            raise DataError(
                f"a dialogue must go user, assistant, tool, assistant, ..., assistant; got {roles}"
            )
        encode = {
            "user": self.encode_prompt,
            "assistant": self.encode_action,
            "tool": self.encode_observation,
        }
        parts = [encode[message.role](message.text) for message in messages]
        mask = [np.full(len(p), role == "assistant") for p, role in zip(parts, roles, strict=True)]
        return np.concatenate(parts), np.concatenate(mask)

    def _encode(self, text: str) -> list[int]:
        return self._backend.encode(text, add_special_tokens=False).ids if text else []

    def _fill(self, frame: _Frame, text: str) -> Ints:
        inner = self._encode(frame.left + text + frame.right)
        return np.array([*frame.head, *inner, *frame.tail], dtype=np.int64)

    def _cut(self, text: str) -> list[int | str]:
        """Split a template's text into ids of special tokens and the texts between them."""
        names = sorted(self._special, key=len, reverse=True)
        parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text) if names else [text]
        return [self._special.get(part, part) for part in parts if part]

    def _frame(self, before: list[int | str], after: list[int | str]) -> _Frame:
        # Text next to the message stays text: it is encoded together with the message, because a
        # tokenizer may merge across the seam (a newline with leading white space of the message).
        left = right = ""
        if before and isinstance(before[-1], str):
            *before, left = before
        if after and isinstance(after[0], str):
            right, *after = after
        return _Frame(self._ids(before), str(left), str(right), self._ids(after))

    def _ids(self, parts: list[int | str]) -> tuple[int, ...]:
        ids: list[int] = []
        for part in parts:
            ids += self._encode(part) if isinstance(part, str) else [part]
        return tuple(ids)


@dataclass(frozen=True, slots=True)
class _Surroundings:
    """A chat template's own text around the messages."""

    before_prompt: str
    after_prompt: str
    before_observation: str
    after_observation: str


def _surroundings(tokenizer: "PreTrainedTokenizerBase") -> _Surroundings:
    """Render the template with sentinels; an observation is a `tool` message, else a `user` one."""
    name = tokenizer.name_or_path
    if not tokenizer.chat_template:
        raise PolicyError(
            f"{name}: the tokenizer has no chat template; use an instruction-tuned model, or add"
            " chat_template.jinja to the folder"
        )
    user = {"role": "user", "content": _USER}
    assistant = {"role": "assistant", "content": _ACTION}
    before_prompt, after_prompt = _split(_render(tokenizer, [user]), _USER, name)
    text = ""
    for role in ("tool", "user"):
        try:
            text = _render(tokenizer, [user, assistant, {"role": role, "content": _TOOL}])
        except TemplateError:  # such templates refuse a role or require that roles alternate
            continue
        if _TOOL in text:
            break
    _, rest = _split(text, _ACTION, name)
    before_observation, after_observation = _split(rest, _TOOL, name)
    return _Surroundings(before_prompt, after_prompt, before_observation, after_observation)


def _render(tokenizer: "PreTrainedTokenizerBase", messages: list[dict[str, str]]) -> str:
    text = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return str(text)


def _split(text: str, sentinel: str, name: str) -> tuple[str, str]:
    before, found, after = text.partition(sentinel)
    if not found:
        raise PolicyError(
            f"{name}: its chat template changes a message's text ({sentinel!r} became part of"
            f" {text[:80]!r}); use a template that inserts messages as they are"
        )
    return before, after
