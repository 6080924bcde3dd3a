"""The one sampling primitive: `expand(node, n, decoding)`.

A node is a boundary of a trajectory (the root is boundary 0 of no trajectory). Expanding it draws n
continuations to their ends: the environment is forked there, and the sampler lays the prefix's
cached keys and values into a row, so that neither is computed again.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rail.envs.base import Benchmark, Env, StepResult, StopReason, Task
from rail.errors import EnvError
from rail.interventions import ON_POLICY, Decoding
from rail.policy.chat import Chat
from rail.policy.sampler import Prefix, SampledTurn, Sampler
from rail.rollout.tree import ROOT_REGIME, Trajectory, Tree, Turn
from rail.seeding import PathPart, generator


@dataclass(frozen=True, slots=True)
class Expansion:
    """Draw `count` continuations at boundary `turn` of `rollout` (-1: the root) in tree `tree`.

    Attributes:
        streams: One random path per continuation; the whole path of its uniforms.
        keep: Keep caches and environment forks, so that the continuations can be branched from.
    """

    tree: int
    streams: Sequence[tuple[PathPart, ...]]
    rollout: int = -1
    turn: int = 0
    decoding: Decoding = ON_POLICY
    regime: str = ROOT_REGIME
    origin: str = "base"
    keep: bool = False


@dataclass(slots=True)
class Forest:
    """The trees of one step with what is needed to branch from them; weights must not change.

    Attributes:
        prompts: Computed prompt of each tree.
        caches: Keys and values of kept rollouts, by (tree, rollout).
        forks: Environments at the boundary after a turn, by (tree, turn index in the tree).
    """

    trees: list[Tree] = field(default_factory=list)
    prompts: list[Prefix] = field(default_factory=list)
    caches: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    forks: dict[tuple[int, int], Env] = field(default_factory=dict)

    def close(self) -> None:
        """Close the kept environments."""
        for env in self.forks.values():
            env.close()
        self.forks.clear()


class Engine:
    """Draws rollouts of a benchmark with one policy.

    Attributes:
        seconds_environment: Time spent in environments and tokenisation so far.
        seconds: Time spent in `plant` and `expand` so far, environments included.
    """

    def __init__(self, sampler: Sampler, chat: Chat, benchmark: Benchmark, seed: int) -> None:
        """`seed` is the root of every uniform that the engine draws."""
        self.sampler = sampler
        self.benchmark = benchmark
        self.chat = chat
        self._seed = seed
        self.seconds_environment = 0.0
        self.seconds = 0.0

    def plant(self, forest: Forest, tasks: Sequence[Task]) -> None:
        """Add one tree per task, its prompt computed once."""
        start = time.perf_counter()
        prompts = [self.chat.encode_prompt(task.prompt) for task in tasks]
        forest.trees += [Tree(t, p) for t, p in zip(tasks, prompts, strict=True)]
        forest.prompts += self.sampler.prefill(prompts)
        self.seconds += time.perf_counter() - start

    def expand(self, forest: Forest, expansions: Sequence[Expansion]) -> list[list[int]]:
        """Draw all continuations together; return the new rollouts of each expansion, in order.

        A failure of an environment marks its rollout with `error_type`; it has no verdict.
        """
        start = time.perf_counter()
        episodes: list[_Rollout] = []
        drawn: list[list[int]] = []
        for expansion in expansions:
            new = [_Rollout(self, forest, expansion, stream) for stream in expansion.streams]
            drawn.append([episode.index for episode in new])
            episodes += new
        self.sampler.run(episode for episode in episodes if not episode.failed)
        self.seconds += time.perf_counter() - start
        return drawn

    def uniforms(self, stream: tuple[PathPart, ...]) -> NDArray[np.float64]:
        """Return the uniforms of one rollout: a function of the seed and its path alone."""
        return generator(self._seed, *stream).random(self.sampler.decoder.length)


class _Rollout:
    """One continuation in flight; the sampler's `Episode`."""

    def __init__(
        self, engine: Engine, forest: Forest, expansion: Expansion, stream: tuple[PathPart, ...]
    ) -> None:
        self._engine, self._forest = engine, forest
        self._tree_index = expansion.tree
        self._tree = forest.trees[expansion.tree]
        self.index = len(self._tree.trajectories)
        self._trajectory = Trajectory(
            turns=self._shared_turns(expansion),
            parent=expansion.rollout,
            branch_turn=expansion.turn,
            origin=expansion.origin,
            regime=expansion.regime,
            decoding=expansion.decoding,
        )
        self._tree.trajectories.append(self._trajectory)
        self.decoding = expansion.decoding
        self.keep_cache = expansion.keep
        self.uniforms = engine.uniforms(stream)
        self.prefix = self._find_prefix(expansion)
        self.failed = False
        started = time.perf_counter()
        try:
            self._env = self._find_env(expansion)
        except EnvError as error:
            self._fail(error)
        engine.seconds_environment += time.perf_counter() - started

    def _shared_turns(self, expansion: Expansion) -> list[int]:
        if expansion.rollout < 0:
            return []
        return self._tree.trajectories[expansion.rollout].turns[: expansion.turn]

    def _find_prefix(self, expansion: Expansion) -> Prefix:
        if expansion.rollout < 0:
            return self._forest.prompts[expansion.tree]
        parent = self._tree.trajectories[expansion.rollout]
        turns = [self._tree.turns[i] for i in parent.turns[: expansion.turn]]
        length = len(self._tree.prompt) + sum(len(t.action) + len(t.observation) for t in turns)
        state = self._tree.turns[parent.turns[expansion.turn]].state
        cache = self._forest.caches[expansion.tree, expansion.rollout]
        return Prefix(length, cache, cache.new_tensor(state))

    def _find_env(self, expansion: Expansion) -> Env:
        if expansion.rollout < 0:
            return self._engine.benchmark.make(self._tree.task)
        return self._forest.forks[expansion.tree, self._trajectory.turns[-1]].fork()

    def act(self, turn: SampledTurn) -> NDArray[np.int64] | None:
        """Execute one action; see `rail.policy.sampler.Episode`."""
        started = time.perf_counter()
        following = self._act(turn)
        self._engine.seconds_environment += time.perf_counter() - started
        return following

    def _act(self, turn: SampledTurn) -> NDArray[np.int64] | None:
        chat = self._engine.chat
        text = chat.decode_action(turn.tokens)
        try:
            result = self._env.step(text)
        except EnvError as error:
            self._record(turn, text, np.zeros(0, dtype=np.int64), True)
            self._fail(error)
            return None
        if result.done:
            self._record(turn, text, np.zeros(0, dtype=np.int64), result.error)
            self._settle(result)
            return None
        observation = chat.encode_observation(result.observation)
        if turn.cut:
            observation = np.concatenate([chat.close_unfinished, observation])
        self._record(turn, text, observation, result.error)
        if self.keep_cache:
            self._forest.forks[self._tree_index, self._trajectory.turns[-1]] = self._env.fork()
        return observation

    def _record(
        self, turn: SampledTurn, text: str, observation: NDArray[np.int64], error: bool
    ) -> None:
        self._trajectory.turns.append(len(self._tree.turns))
        self._tree.turns.append(
            Turn(
                index=len(self._trajectory.turns) - 1,
                action=turn.tokens,
                observation=observation,
                logprob=turn.logprob,
                logprob_sampled=turn.logprob_sampled,
                entropy=turn.entropy,
                hidden=turn.hidden,
                state=turn.state,
                text=text,
                error=error,
            )
        )

    def _settle(self, result: StepResult) -> None:
        self._trajectory.reward = result.reward
        self._trajectory.reward_upstream = result.reward_upstream
        self._trajectory.stop = result.stop

    def _fail(self, error: EnvError) -> None:
        self.failed = True
        self._trajectory.error_type = type(error).__name__
        self._trajectory.retained = False

    def truncate(self) -> None:
        """End without an answer: the token limit is the policy's doing, so the reward is 0."""
        self._trajectory.stop = StopReason.TOKEN_LIMIT

    def finish(self, cache: Tensor | None) -> None:
        """Free the environment, keep the cache."""
        if hasattr(self, "_env"):
            self._env.close()
        if cache is not None:
            self._forest.caches[self._tree_index, self.index] = cache
