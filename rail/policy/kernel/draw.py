"""Drawing tokens in the compiled kernel; `rail.policy.draw` is its plain twin."""

import torch
from torch import Tensor

from rail.policy.draw import Draw
from rail.policy.kernel.build import at, compiled


def draw(
    logits: Tensor, vocabulary: int, uniforms: Tensor, temperature: Tensor, top_p: Tensor
) -> Draw:
    """Draw one token per row.

    Args:
        logits: Shape (N, W), contiguous, W a multiple of 16; from `vocabulary` on no tokens, and
            overwritten.
        vocabulary: Number of tokens.
        uniforms: As in `rail.policy.draw.draw`, and so are the rest, each of shape (N,).
        temperature: Per row.
        top_p: Per row.
    """
    count, width = logits.shape
    # Held until the call returns: an address keeps nothing alive.
    given = [uniforms.double().contiguous(), temperature.float().contiguous()]
    given.append(top_p.float().contiguous())
    tokens, figures = torch.empty(count, dtype=torch.long), torch.empty(3, count)
    work = torch.empty(compiled().draw_workspace(width))
    compiled().draw(
        count, vocabulary, width, at(logits), *map(at, given), at(work), at(tokens),
        *map(at, figures),
    )  # fmt: skip
    return Draw(tokens, *figures)
