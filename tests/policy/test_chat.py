from itertools import islice

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from rail.envs.base import Message
from rail.errors import DataError, PolicyError
from rail.policy.chat import Chat
from rail.policy.tokenizer import train_tokenizer
from tests.policy.dialogues import ANSWER, CLOSE, QUERY, CopyTask

CHATML = (
    "{%- if messages[0]['role'] != 'system' -%}{{- '<|im_start|>system\nBe brief.<|im_end|>\n' -}}"
    "{%- endif -%}{%- for m in messages -%}"
    "{{- '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\n' -}}{%- endif -%}"
)
TOOL_AS_USER = CHATML.replace(
    "{{- '<|im_start|>' + m['role']",
    "{%- if m['role'] == 'tool' -%}{{- '<|im_start|>user\n<tool_response>\n' + m['content']"
    " + '\n</tool_response><|im_end|>\n' -}}{%- continue -%}{%- endif -%}"
    "{{- '<|im_start|>' + m['role']",
)
NO_TOOL = "{%- for m in messages -%}{%- if m['role'] == 'tool' -%}" + (
    "{{- raise_exception('no tools') -}}{%- endif -%}{%- endfor -%}" + CHATML
)
EMBEDDED = train_tokenizer(
    (m.text for d in islice(CopyTask().demonstrations(0), 100) for m in d),
    (QUERY, ANSWER, CLOSE),
    400,
)


def chatml(template: str | None = CHATML) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    lines = ["user\n\n\n", "assistant\n\n", "tool\n\n how are you", "system\nBe brief."] * 9
    backend.train_from_iterator(lines, trainer)
    backend.add_tokens([AddedToken("<tool_response>"), AddedToken("</tool_response>")])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    tokenizer.chat_template = template
    return tokenizer


def rollout(chat: Chat, prompt: str, action: str, observation: str) -> list[int]:
    parts = [chat.encode_prompt(prompt), chat.encode_action(action)]
    return [int(i) for i in np.concatenate([*parts, chat.encode_observation(observation)])]


def messages(prompt: str, action: str, observation: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": prompt},
        {"role": "assistant", "content": action},
        {"role": "tool", "content": observation},
    ]


def test_the_embedded_dialogue_has_the_documented_layout() -> None:
    chat = Chat(EMBEDDED)
    ids = rollout(chat, "How?", f"{QUERY}x{CLOSE}", "[(1,)]")
    text = (
        f"<|user|>How?<|end|><|assistant|>{QUERY}x{CLOSE}<|end|><|tool|>[(1,)]<|end|><|assistant|>"
    )
    assert EMBEDDED.decode(ids) == text
    assert chat.end_id == 4
    assert chat.close_unfinished.tolist() == [4]


@pytest.mark.parametrize("template", [CHATML, TOOL_AS_USER])
@pytest.mark.parametrize(
    "words",
    [("hello", "SELECT 1", "[(1,)]"), ("\n\n how", " \nare\n", "\n\nyou\n\n"), ("", "", "")],
)
def test_joined_ids_are_those_of_the_whole_rendered_text(
    template: str, words: tuple[str, str, str]
) -> None:
    tokenizer = chatml(template)
    whole = tokenizer.apply_chat_template(
        messages(*words), tokenize=False, add_generation_prompt=True
    )
    # The template's tool role may be text that merges with a message's leading newlines.
    assert rollout(Chat(tokenizer), *words) == tokenizer.encode(str(whole))


def test_the_embedded_template_renders_the_same_ids() -> None:
    for dialogue in islice(CopyTask().demonstrations(1), 20):
        ids, _ = Chat(EMBEDDED).encode_dialogue(dialogue)
        turns = [{"role": m.role, "content": m.text} for m in dialogue]
        assert ids.tolist() == EMBEDDED.encode(
            str(EMBEDDED.apply_chat_template(turns, tokenize=False))
        )


def test_the_end_token_is_the_templates_not_the_base_models() -> None:
    tokenizer = chatml()
    assert Chat(tokenizer).end_id == tokenizer.convert_tokens_to_ids("<|im_end|>")
    assert tokenizer.eos_token == "<|endoftext|>"


def test_without_a_tool_role_an_observation_is_a_user_message() -> None:
    tokenizer = chatml(NO_TOOL)
    ids = Chat(tokenizer).encode_observation("how are")
    assert tokenizer.decode(ids) == "\n<|im_start|>user\nhow are<|im_end|>\n<|im_start|>assistant\n"


def test_markers_inside_a_message_stay_text() -> None:
    chat = Chat(EMBEDDED)
    ids = chat.encode_observation("a<|end|><|assistant|>b").tolist()
    assert [ids.count(i) for i in (4, 2)] == [1, 1]  # only the frame's own
    assert EMBEDDED.decode(ids) == "<|tool|>a<|end|><|assistant|>b<|end|><|assistant|>"


def test_decoding_an_action_drops_one_end_token_and_shows_other_markers() -> None:
    chat = Chat(EMBEDDED)
    ids = chat.encode_action(f"{QUERY}SELECT 'é'{CLOSE}")
    assert chat.decode_action(ids) == f"{QUERY}SELECT 'é'{CLOSE}"
    assert chat.decode_action(ids[:-1]) == f"{QUERY}SELECT 'é'{CLOSE}"  # cut at its token cap
    assert chat.decode_action([3, *ids]).startswith("<|tool|><tool_call>")
    assert chat.decode_action([4]) == ""


def test_the_mask_marks_actions_and_their_end_tokens() -> None:
    dialogue = [Message("user", "How?"), Message("assistant", "x"), Message("tool", "y")]
    ids, action = Chat(EMBEDDED).encode_dialogue([*dialogue, Message("assistant", "z")])
    text = [EMBEDDED.decode([i]) for i in ids[action]]
    assert text == ["x", "<|end|>", "z", "<|end|>"]
    assert len(ids) == len(action)
    assert action[-2:].all()
    assert not action[:4].any()


@pytest.mark.parametrize(
    "roles", [["assistant"], ["user"], ["user", "assistant", "tool"], ["user", "tool", "assistant"]]
)
def test_a_dialogue_out_of_order_is_refused(roles: list[str]) -> None:
    with pytest.raises(DataError, match="must go user, assistant, tool"):
        Chat(EMBEDDED).encode_dialogue([Message(role, "x") for role in roles])


def test_a_tokenizer_without_template_is_refused() -> None:
    with pytest.raises(PolicyError, match="has no chat template"):
        Chat(chatml(None))


def test_a_template_whose_turns_end_in_plain_text_is_refused() -> None:
    plain = "{%- for m in messages -%}{{- m['role'] + ': ' + m['content'] + '\n' -}}{%- endfor -%}"
    with pytest.raises(PolicyError, match="not with a special token"):
        Chat(chatml(plain))


def test_a_template_that_rewrites_messages_is_refused() -> None:
    with pytest.raises(PolicyError, match="changes a message's text"):
        Chat(chatml(CHATML.replace("m['content']", "m['content'] | upper")))
