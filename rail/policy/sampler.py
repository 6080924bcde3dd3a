"""Many episodes decoded together: rows are refilled as they finish, no prefix is computed twice.

The sampler knows tokens, not environments: it decodes turns and asks each episode what follows.
Every episode brings its own uniforms, so that what it samples does not depend on its neighbours or
their order (beyond float rounding of batched matrix products, below 1e-5 nats here).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rail.interventions import Decoding
from rail.policy.decoder import Chunk, Decoder
from rail.policy.draw import draw

Ints = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Prefix:
    """A computed prefix: keys and values of `length` tokens and the hidden state after the last.

    `cache` may reach further than `length`; `state` has shape (D,).
    """

    length: int
    cache: Tensor
    state: Tensor


@dataclass(frozen=True, slots=True)
class SampledTurn:
    """One decoded action; arrays have shape (A,), hidden states (D,).

    Attributes:
        tokens: Token ids, the end token included unless `cut`.
        cut: The action hit its token limit.
        hidden: Mean hidden state over the positions that predict the action.
        state: Hidden state at the boundary before the action.
    """

    tokens: Ints
    logprob: Floats
    logprob_sampled: Floats
    entropy: Floats
    hidden: Floats
    state: Floats
    cut: bool


class Episode(Protocol):
    """What the sampler drives.

    Attributes:
        prefix: Where it starts.
        decoding: How its tokens are drawn.
        uniforms: Numbers in [0, 1), one per generated token, at least as many as it may generate.
        keep_cache: Hand the row's keys and values to `finish`.
    """

    prefix: Prefix
    decoding: Decoding
    uniforms: NDArray[np.float64]
    keep_cache: bool

    def act(self, turn: SampledTurn) -> Ints | None:
        """Take one decoded turn; return the token ids that follow, None at the episode's end."""
        ...

    def truncate(self) -> None:
        """Take note that the next turn would not fit into the token limit."""
        ...

    def finish(self, cache: Tensor | None) -> None:
        """Take note of the end; `cache` as in `Prefix`, if `keep_cache`."""
        ...


@dataclass(slots=True)
class _Row:
    """One episode in flight; `pending` are tokens sampled or observed but not yet computed."""

    episode: Episode
    position: int
    pending: list[int] = field(default_factory=list)
    drawn: int = 0
    tokens: list[int] = field(default_factory=list)
    logprob: list[float] = field(default_factory=list)
    logprob_sampled: list[float] = field(default_factory=list)
    entropy: list[float] = field(default_factory=list)


class Sampler:
    """Decodes episodes with one policy.

    Attributes:
        decoder: The cached forward pass.
        end_id: Token that ends an action.
    """

    def __init__(self, decoder: Decoder, end_id: int, max_turn_tokens: int) -> None:
        """Wrap a decoder; actions are cut at `max_turn_tokens`."""
        self.decoder = decoder
        self.end_id = end_id
        self.max_turn_tokens = max_turn_tokens

    def prefill(self, prompts: Sequence[Ints]) -> list[Prefix]:
        """Compute prompts, each once."""
        found: list[Prefix] = []
        for start in range(0, len(prompts), self.decoder.rows):
            part = prompts[start : start + self.decoder.rows]
            chunks = [Chunk(row, 0, tokens.tolist()) for row, tokens in enumerate(part)]
            states = self.decoder.step([], [], [], chunks)
            found += [
                Prefix(len(tokens), self.decoder.lift(row, len(tokens)), states[row].clone())
                for row, tokens in enumerate(part)
            ]
        return found

    def run(self, episodes: Iterable[Episode]) -> None:
        """Decode all episodes to their ends."""
        _Run(self, deque(episodes)).go()


class _Run:
    """One call of `Sampler.run`: the rows in flight are 0..len(rows)-1, without holes."""

    def __init__(self, sampler: Sampler, waiting: deque[Episode]) -> None:
        self._decoder, self._end = sampler.decoder, sampler.end_id
        self._turn_limit = sampler.max_turn_tokens
        self._waiting = waiting
        self._rows: list[_Row] = []
        count = sampler.decoder.rows
        width = waiting[0].prefix.state.shape[0] if waiting else 0
        # Per row: hidden state that predicts the next token, sum over the turn, state at its
        # boundary.
        self._hidden = torch.zeros(count, width)
        self._sum = torch.zeros(count, width)
        self._boundary = torch.zeros(count, width)
        self._temperature = torch.ones(count)
        self._top_p = torch.ones(count)

    def go(self) -> None:
        while self._waiting or self._rows:
            while self._waiting and len(self._rows) < self._decoder.rows:
                self._start(self._waiting.popleft())
            self._draw()
            if self._rows:
                self._advance()

    def _start(self, episode: Episode) -> None:
        row = len(self._rows)
        prefix = episode.prefix
        self._decoder.lay(row, prefix.cache, prefix.length)
        self._rows.append(_Row(episode, prefix.length))
        self._temperature[row] = episode.decoding.temperature
        self._top_p[row] = episode.decoding.top_p
        self._begin_turn(row, prefix.state)

    def _begin_turn(self, row: int, state: Tensor) -> None:
        self._hidden[row] = self._boundary[row] = state
        self._sum[row] = 0.0

    def _draw(self) -> None:
        count = len(self._rows)
        hidden = self._hidden[:count]
        self._sum[:count] += hidden
        uniforms = torch.tensor([float(r.episode.uniforms[r.drawn]) for r in self._rows])
        drawn = draw(
            self._decoder.logits(hidden), uniforms, self._temperature[:count], self._top_p[:count]
        )
        columns = (drawn.tokens, drawn.logprob, drawn.logprob_sampled, drawn.entropy)
        finished: list[int] = []
        for index, (token, logprob, sampled, entropy) in enumerate(
            zip(*(column.tolist() for column in columns), strict=True)
        ):
            row = self._rows[index]
            row.drawn += 1
            row.tokens.append(token)
            row.logprob.append(logprob)
            row.logprob_sampled.append(sampled)
            row.entropy.append(entropy)
            row.pending.append(token)
            ended = token == self._end
            if (ended or len(row.tokens) == self._turn_limit) and not self._end_turn(index, ended):
                finished.append(index)
        for index in reversed(finished):
            self._finish(index)

    def _end_turn(self, index: int, ended: bool) -> bool:
        """Hand the turn over; return whether the episode goes on."""
        row = self._rows[index]
        turn = SampledTurn(
            tokens=np.array(row.tokens, dtype=np.int64),
            logprob=np.array(row.logprob, dtype=np.float32),
            logprob_sampled=np.array(row.logprob_sampled, dtype=np.float32),
            entropy=np.array(row.entropy, dtype=np.float32),
            hidden=(self._sum[index] / len(row.tokens)).numpy().copy(),
            state=self._boundary[index].numpy().copy(),
            cut=not ended,
        )
        following = row.episode.act(turn)
        if following is None:
            return False
        row.pending += following.tolist()
        for column in (row.tokens, row.logprob, row.logprob_sampled, row.entropy):
            column.clear()
        if row.position + len(row.pending) + self._turn_limit > self._decoder.length:
            row.episode.truncate()
            return False
        return True

    def _finish(self, index: int) -> None:
        row = self._rows[index]
        keep = row.episode.keep_cache
        row.episode.finish(self._decoder.lift(index, row.position) if keep else None)
        last = len(self._rows) - 1
        if index != last:  # Close the hole, so that the rows in flight stay a view of the cache.
            moved = self._rows[last]
            self._decoder.lay(index, self._decoder.lift(last, moved.position), moved.position)
            for tensor in (self._hidden, self._sum, self._boundary, self._temperature, self._top_p):
                tensor[index] = tensor[last]
            self._rows[index] = moved
        self._rows.pop()

    def _advance(self) -> None:
        singles = [i for i, row in enumerate(self._rows) if len(row.pending) == 1]
        chunked = [i for i, row in enumerate(self._rows) if len(row.pending) > 1]
        chunks = [Chunk(i, self._rows[i].position, self._rows[i].pending) for i in chunked]
        tokens = [self._rows[i].pending[0] for i in singles]
        starts = [self._rows[i].position for i in singles]
        states = self._decoder.step(singles, tokens, starts, chunks)
        self._hidden[singles + chunked] = states
        for offset, index in enumerate(chunked, start=len(singles)):
            self._begin_turn(index, states[offset])
        for row in self._rows:
            row.position += len(row.pending)
            row.pending.clear()
