"""What the sampler asks of a backend: cached decoding of many rows, and the draw of their tokens.

One call, `step`, advances any mix of rows: rows that decode a single token and rows that read a
whole chunk (a prompt or an observation). Keys and values of a prefix can be lifted out of a row and
laid into another, so a branch computes no prefix token again.

Backends: `rail.policy.kernel.decoder` (native), `rail.policy.torch_decoder` (torch) and
`rail.policy.hf_decoder` (hf: the unmodified module, the oracle of the other two).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rail.errors import PolicyError
from rail.policy.draw import Draw, draw

Indices = NDArray[np.int64]
TOLERANCE = 1e-4
"""Largest accepted gap to the module's own log-probabilities, nats."""


@dataclass(frozen=True, slots=True)
class Entries:
    """Tokens that m different rows read in one call, a run of at least one token each.

    Attributes:
        rows: Row of each run, shape (m,).
        starts: Position of each run's first token, shape (m,).
        lengths: Tokens in each run, shape (m,).
        tokens: The runs one after the other, shape (n,) with n the sum of `lengths`.
    """

    rows: Indices
    starts: Indices
    lengths: Indices
    tokens: Indices

    @classmethod
    def of(cls, runs: Sequence[tuple[int, int, Sequence[int] | Indices]]) -> "Entries":
        """Gather runs given as (row, start, tokens)."""
        tokens = [np.asarray(run[2], dtype=np.int64) for run in runs]
        return cls(
            rows=np.array([run[0] for run in runs], dtype=np.int64),
            starts=np.array([run[1] for run in runs], dtype=np.int64),
            lengths=np.array([len(run) for run in tokens], dtype=np.int64),
            tokens=np.concatenate(tokens),
        )

    def flat_rows(self) -> Indices:
        """Return the row of each token, shape (n,)."""
        return np.repeat(self.rows, self.lengths)

    def flat_positions(self) -> Indices:
        """Return the position of each token, shape (n,)."""
        first = np.cumsum(self.lengths) - self.lengths
        return np.arange(len(self.tokens)) + np.repeat(self.starts - first, self.lengths)

    def last(self) -> Indices:
        """Return the index of each run's last token, shape (m,)."""
        return np.cumsum(self.lengths) - 1


class Decoder(ABC):
    """Rows of cached keys and values over one model.

    Attributes:
        rows: Number of rows.
        length: Positions per row.
        width: Size D of a hidden state.
        tokens_computed: Tokens that went through the layers so far (prefix reuse shows here).
    """

    def __init__(self, model: Any, rows: int, length: int) -> None:
        """Make room for `rows` rows of `length` positions."""
        self._model = model
        self.rows, self.length = rows, length
        self.width: int = model.config.hidden_size
        self.tokens_computed = 0

    @abstractmethod
    def load_weights(self) -> None:
        """Take over the module's present weights."""

    @abstractmethod
    def step(self, entries: Entries) -> Tensor:
        """Run all entries; return the final-norm states at the end of each run, shape (m, D)."""

    @abstractmethod
    def logits(self, states: Tensor) -> Tensor:
        """Return logits (N, V) of final-norm states (N, D)."""

    @abstractmethod
    def lift(self, row: int, length: int) -> Tensor:
        """Return a copy of a row's first positions, at least `length`; for `lay` only."""

    @abstractmethod
    def lay(self, row: int, prefix: Tensor, length: int) -> None:
        """Copy the first `length` positions of `prefix` (see `lift`) into a row."""

    def draw(self, states: Tensor, uniforms: Tensor, temperature: Tensor, top_p: Tensor) -> Draw:
        """Draw the token that follows each state (N, D); see `rail.policy.draw.draw`."""
        return draw(self.logits(states), uniforms, temperature, top_p)

    @torch.no_grad()
    def check(self, tokens: Sequence[int]) -> float:
        """Return the largest gap to the module's forward pass on `tokens`, nats.

        The first half goes as one chunk, the rest token by token, in row 0. Log-probabilities of
        all tokens, and log-probability and entropy of a draw, are compared.

        Raises:
            PolicyError: If the gap passes `TOLERANCE`.
        """
        split = max(1, len(tokens) // 2)
        states = [self.step(Entries.of([(0, 0, tokens[:split])]))]
        states += [
            self.step(Entries.of([(0, place, tokens[place : place + 1])]))
            for place in range(split, len(tokens))
        ]
        ours = torch.cat(states)
        theirs = self._model(torch.tensor([list(tokens)])).logits[0].float().log_softmax(-1)
        theirs = theirs[split - 1 :]
        gap = float((self.logits(ours).log_softmax(-1) - theirs).abs().max())
        drawn = self.draw(ours, torch.full((len(ours),), 0.5), *torch.ones(2, len(ours)))
        logprob = theirs.gather(-1, drawn.tokens[:, None])[:, 0]
        entropy = -(theirs.exp() * theirs).sum(-1)
        gap = max(gap, *((drawn.logprob - logprob).abs().tolist()))
        gap = max(gap, *((drawn.entropy - entropy).abs().tolist()))
        if not gap < TOLERANCE:
            raise PolicyError(
                f"{type(self).__name__}: log-probabilities differ from the model's own by "
                f"{gap:.1e} nats, more than {TOLERANCE:.0e}: the architecture has a part that this "
                "backend does not know, or its kernel is damaged"
            )
        return gap
