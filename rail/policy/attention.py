"""Another attention in an unmodified Hugging Face model, for the length of a block."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from rail.errors import PolicyError


@contextmanager
def replaced_attention(
    model: nn.Module, name: str, attend: Callable[..., tuple[Tensor, None]], advice: str
) -> Iterator[None]:
    """Let `model` use `attend` within the block.

    Args:
        model: A Hugging Face model.
        name: Name under which `attend` is registered.
        attend: An attention function as `transformers.AttentionInterface` has them.
        advice: What to do where that cannot be; ends the message.

    Raises:
        PolicyError: The model does not take its attention from `transformers.AttentionInterface`.
    """
    from transformers import AttentionInterface, PreTrainedModel  # takes about a second

    AttentionInterface.register(name, attend)
    if not isinstance(model, PreTrainedModel):
        raise PolicyError(
            f"got a {type(model).__name__}, expected a transformers.PreTrainedModel, whose "
            f"attention can be replaced; {advice}"
        )
    before = model.config._attn_implementation or "eager"
    model.set_attn_implementation(name)
    if model.config._attn_implementation != name:
        raise PolicyError(
            f"{type(model).__name__} has an attention of its own that cannot be replaced; {advice}"
        )
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def plain_causal(
    layer: nn.Module, mask: Tensor | None, length: int, options: Mapping[str, Any], advice: str
) -> None:
    """Refuse a layer that asks for something that is not plain causal attention.

    Args:
        layer: The layer, for the message.
        mask: The mask that it was given.
        length: Longest sequence.
        options: The layer's keyword arguments; `sliding_window` and `softcap` are looked at.
        advice: What to do then; ends the message.

    Raises:
        PolicyError: A mask, a soft cap, or a window shorter than `length`.
    """
    window = options.get("sliding_window") or 0
    if mask is not None or options.get("softcap") is not None or 0 < window < length:
        raise PolicyError(
            f"{type(layer).__name__} wants a mask, a soft cap or a window shorter than {length} "
            f"tokens; {advice}"
        )
