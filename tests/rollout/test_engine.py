"""The sampling primitive on the toy benchmark: forks, caches, streams, re-scoring."""

from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from rail.config import Config
from rail.envs.base import Env, StepResult, Task
from rail.envs.toy import ToyEnv
from rail.errors import BudgetError, EnvError
from rail.interventions import Decoding
from rail.policy.actor import Actor, open_actor
from rail.rollout.engine import Engine, Expansion, Forest
from rail.rollout.ledger import Budget, bill
from rail.rollout.tree import Tree
from rail.runs import benchmark_config, load_benchmark

Toy = tuple[Config, Path]


def make_engine(toy: Toy, seed: int = 7, backend: str = "native", slots: int = 16) -> Engine:
    config, path = toy
    policy = config.policy.model_copy(update={"backend": backend, "slots": slots})
    actor: Actor = open_actor(path, policy)
    benchmark = load_benchmark("toy", benchmark_config(config, "toy"))
    return Engine(actor.sampler, actor.chat, benchmark, seed)


def roots(engine: Engine, tasks: int = 3, count: int = 8) -> Forest:
    forest = Forest()
    chosen = engine.benchmark.panel("train")[:tasks]
    engine.plant(forest, chosen)
    engine.expand(
        forest,
        [
            Expansion(i, [("base", 0, t.id, child) for child in range(count)], keep=True)
            for i, t in enumerate(chosen)
        ],
    )
    return forest


def texts(tree: Tree) -> list[list[str]]:
    return [[tree.turns[i].text for i in t.turns] for t in tree.trajectories]


def test_recorded_logprobs_and_entropies_are_the_modules(toy: Toy) -> None:
    engine = make_engine(toy)
    model = engine.sampler.decoder._model
    forest = roots(engine)
    engine.expand(
        forest,
        [Expansion(0, [("branch", 1)], rollout=0, turn=1, decoding=Decoding(1.25), origin="live")],
    )
    for tree in forest.trees:
        for rollout, trajectory in enumerate(tree.trajectories):
            path = tree.path(rollout)
            with torch.no_grad():
                logits = model(torch.from_numpy(path.tokens)[None]).logits[0, :-1].double()
            plain = logits.log_softmax(-1)
            targets = torch.from_numpy(path.tokens[1:])[:, None]
            here = path.sampled[1:]
            expected = plain.gather(-1, targets)[:, 0].numpy()[here]
            np.testing.assert_allclose(path.logprob[1:][here], expected, atol=1e-4)
            entropy = -(plain.exp() * plain).sum(-1).numpy()[here]
            np.testing.assert_allclose(path.entropy[1:][here], entropy, atol=1e-4)
            warm = (logits / trajectory.decoding.temperature).log_softmax(-1)
            own = path.own[1:]
            sampled = warm.gather(-1, targets)[:, 0].numpy()[own]
            np.testing.assert_allclose(path.logprob_sampled[1:][own], sampled, atol=1e-4)


def test_a_branch_computes_no_prefix_token_again(toy: Toy) -> None:
    engine = make_engine(toy)
    forest = roots(engine)
    tree = forest.trees[0]
    before = engine.sampler.decoder.tokens_computed
    streams = [("branch", child) for child in range(8)]
    (drawn,) = engine.expand(forest, [Expansion(0, streams, rollout=2, turn=2, origin="live")])
    own = 0
    for rollout in drawn:
        turns = [tree.turns[i] for i in tree.trajectories[rollout].turns[2:]]
        own += sum(len(turn.action) + len(turn.observation) for turn in turns) - 1
    # The last token of an episode is sampled but never computed.
    assert engine.sampler.decoder.tokens_computed - before == own


def test_a_branch_shares_turns_and_environment_with_its_parent(toy: Toy) -> None:
    engine = make_engine(toy)
    forest = roots(engine)
    tree = forest.trees[1]
    streams = [("branch", child) for child in range(6)]
    (drawn,) = engine.expand(forest, [Expansion(1, streams, rollout=3, turn=1, origin="live")])
    parent = tree.trajectories[3]
    for rollout in drawn:
        branch = tree.trajectories[rollout]
        assert branch.turns[:1] == parent.turns[:1]
        assert branch.turns[1] != parent.turns[1]
        assert (branch.parent, branch.branch_turn) == (3, 1)
        replay = engine.benchmark.make(tree.task)
        result = StepResult("")
        for index in branch.turns:
            result = replay.step(tree.turns[index].text)
        assert (result.reward, result.done) == (branch.reward, True)


def test_rollouts_depend_on_their_stream_alone(toy: Toy) -> None:
    few, many = make_engine(toy, slots=4), make_engine(toy, slots=64)
    first, second = roots(few), roots(many, tasks=5)
    for a, b in zip(first.trees, second.trees, strict=False):
        assert texts(a) == texts(b)
        for x, y in zip(a.turns, sorted_like(a, b), strict=True):
            # Bits with the kernel, see test_invariance; without a compiler this is torch.
            np.testing.assert_allclose(x.logprob, y.logprob, atol=1e-5)


def sorted_like(a: Tree, b: Tree) -> list:
    """Return b's turns in the order in which a stored them (turns end in different order)."""
    place = {
        (rollout, depth): index
        for rollout, t in enumerate(a.trajectories)
        for depth, index in enumerate(t.turns)
    }
    ordered: list = [None] * len(a.turns)
    for (rollout, depth), index in place.items():
        ordered[index] = b.turns[b.trajectories[rollout].turns[depth]]
    return ordered


def test_the_backends_sample_the_same_tokens(toy: Toy) -> None:
    native, plain = roots(make_engine(toy)), roots(make_engine(toy, backend="torch"))
    for a, b in zip(native.trees, plain.trees, strict=True):
        assert texts(a) == texts(b)


def test_other_seeds_sample_other_rollouts(toy: Toy) -> None:
    assert texts(roots(make_engine(toy, 7)).trees[0]) != texts(roots(make_engine(toy, 8)).trees[0])


class Broken(ToyEnv):
    def step(self, action: str) -> StepResult:
        if self.turn == 1:
            raise EnvError("the database is gone")
        return super().step(action)

    def fork(self) -> "Broken":
        return Broken(self.task, self.slack, self.turn, self.wrong)


def test_a_failed_environment_has_no_verdict_and_is_billed(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = make_engine(toy)
    make, made = type(engine.benchmark).make, count(1)

    def sometimes(self: object, task: Task) -> Env:
        return Broken(task, 1) if next(made) % 4 == 0 else make(engine.benchmark, task)

    monkeypatch.setattr(type(engine.benchmark), "make", sometimes)
    forest = roots(engine, tasks=1)
    tree = forest.trees[0]
    failed = [i for i, t in enumerate(tree.trajectories) if t.error_type == "EnvError"]
    assert failed == [3, 7]
    assert tree.base() == tree.retained() == [0, 1, 2, 4, 5, 6]
    assert (bill([tree]).billed, bill([tree]).env_errors, bill([tree]).retained) == (8, 2, 6)


def test_a_budget_refuses_what_it_does_not_have() -> None:
    budget = Budget(10)
    budget.take(6, "roots")
    with pytest.raises(BudgetError, match="branches asks for 5 rollouts, 4 are left"):
        budget.take(5, "branches")
    assert budget.left == 4
