"""Many episodes decoded together: rows are refilled as they finish, no prefix is computed twice.

The sampler knows tokens, not environments: it decodes turns and asks each episode what follows.
Every episode brings its own uniforms, so that what it samples does not depend on its neighbours or
their order (beyond float rounding of batched matrix products, below 1e-5 nats here).
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rail.interventions import Decoding
from rail.policy.decoder import Decoder, Entries

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
            states = self.decoder.step(Entries.of([(row, 0, ids) for row, ids in enumerate(part)]))
            found += [
                Prefix(len(ids), self.decoder.lift(row, len(ids)), states[row].clone())
                for row, ids in enumerate(part)
            ]
        return found

    def run(self, episodes: Iterable[Episode]) -> None:
        """Decode all episodes to their ends."""
        _Run(self, deque(episodes)).go()


class _Run:
    """One call of `Sampler.run`: the rows in flight are 0..len(episodes)-1, without holes."""

    def __init__(self, sampler: Sampler, waiting: deque[Episode]) -> None:
        self._decoder, self._end = sampler.decoder, sampler.end_id
        self._turn_limit = sampler.max_turn_tokens
        self._waiting = waiting
        self._episodes: list[Episode] = []
        self._following: dict[int, Ints] = {}  # by row: what an action is followed by
        count, width = sampler.decoder.rows, sampler.decoder.width
        self._uniforms = np.zeros((count, sampler.decoder.length))
        # Per row: position of the next entry, tokens drawn in all and in the turn, the newest one.
        self._position, self._drawn, self._size, self._newest = np.zeros((4, count), dtype=np.int64)
        self._tokens = np.zeros((count, self._turn_limit), dtype=np.int64)
        # Of each token of the turn: log-probability, the same as sampled, entropy.
        self._figures = np.zeros((3, count, self._turn_limit), dtype=np.float32)
        # Hidden state that predicts the next token, sum over the turn, state at its boundary.
        states = np.zeros((3, count, width), dtype=np.float32)
        self._state, self._sum, self._boundary = states
        self._hidden = torch.from_numpy(self._state)  # the same memory, for the decoder
        self._temperature, self._top_p = torch.ones(2, count)
        self._per_row = (
            self._uniforms, self._position, self._drawn, self._size, self._newest, self._tokens,
            *self._figures, *states, self._temperature, self._top_p,
        )  # fmt: skip

    def go(self) -> None:
        while self._waiting or self._episodes:
            while self._waiting and len(self._episodes) < self._decoder.rows:
                self._start(self._waiting.popleft())
            self._draw()
            if self._episodes:
                self._advance()

    def _start(self, episode: Episode) -> None:
        row, prefix = len(self._episodes), episode.prefix
        self._episodes.append(episode)
        self._decoder.lay(row, prefix.cache, prefix.length)
        self._uniforms[row, : len(episode.uniforms)] = episode.uniforms[: self._uniforms.shape[1]]
        self._position[row], self._drawn[row] = prefix.length, 0
        self._temperature[row] = episode.decoding.temperature
        self._top_p[row] = episode.decoding.top_p
        self._hidden[row] = prefix.state
        self._begin_turn(row)

    def _begin_turn(self, row: int) -> None:
        self._boundary[row] = self._state[row]
        self._sum[row] = 0.0
        self._size[row] = 0

    def _draw(self) -> None:
        rows = np.arange(len(self._episodes))
        active = slice(len(rows))
        self._sum[active] += self._state[active]
        uniforms = torch.from_numpy(self._uniforms[rows, self._drawn[active]])
        drawn = self._decoder.draw(
            self._hidden[active], uniforms, self._temperature[active], self._top_p[active]
        )
        tokens, place = drawn.tokens.numpy(), self._size[active]
        self._newest[active] = tokens
        self._tokens[rows, place] = tokens
        for kept, new in zip(
            self._figures, (drawn.logprob, drawn.logprob_sampled, drawn.entropy), strict=True
        ):
            kept[rows, place] = new.numpy()
        self._drawn[active] += 1
        self._size[active] += 1
        ended = tokens == self._end
        stopped = np.flatnonzero(ended | (self._size[active] == self._turn_limit)).tolist()
        finished = [row for row in stopped if not self._end_turn(row, bool(ended[row]))]
        for row in reversed(finished):
            self._finish(row)

    def _end_turn(self, row: int, ended: bool) -> bool:
        """Hand the turn over; return whether the episode goes on."""
        size = int(self._size[row])
        logprob, logprob_sampled, entropy = self._figures[:, row, :size].copy()
        turn = SampledTurn(
            tokens=self._tokens[row, :size].copy(),
            logprob=logprob,
            logprob_sampled=logprob_sampled,
            entropy=entropy,
            hidden=self._sum[row] / np.float32(size),
            state=self._boundary[row].copy(),
            cut=not ended,
        )
        following = self._episodes[row].act(turn)
        if following is None:
            return False
        self._following[row] = following
        if self._position[row] + 1 + len(following) + self._turn_limit > self._decoder.length:
            self._episodes[row].truncate()
            return False
        return True

    def _finish(self, row: int) -> None:
        """Hand the episode back and close the hole, so that the rows in flight stay a prefix."""
        episode, length = self._episodes[row], int(self._position[row])
        episode.finish(self._decoder.lift(row, length) if episode.keep_cache else None)
        last = len(self._episodes) - 1
        self._following.pop(row, None)
        if row != last:
            length = int(self._position[last])
            self._decoder.lay(row, self._decoder.lift(last, length), length)
            for values in self._per_row:
                values[row] = values[last]
            if last in self._following:
                self._following[row] = self._following.pop(last)
            self._episodes[row] = self._episodes[last]
        self._episodes.pop()

    def _advance(self) -> None:
        """Compute the newest token of each row, and what follows it where a turn has ended."""
        active = slice(len(self._episodes))
        tokens: Ints = self._newest[active]
        lengths = np.ones(len(tokens), dtype=np.int64)
        for row, following in self._following.items():
            lengths[row] += len(following)
        if self._following:
            parts = [tokens[:0]]
            done = 0
            for row in sorted(self._following):
                parts += [tokens[done : row + 1], self._following[row]]
                done = row + 1
            tokens = np.concatenate([*parts, tokens[done:]])
        rows = np.arange(len(lengths))
        entries = Entries(rows, self._position[active].copy(), lengths, tokens)
        self._hidden[active] = self._decoder.step(entries)
        self._position[active] += lengths
        for row in self._following:
            self._begin_turn(row)
        self._following.clear()
