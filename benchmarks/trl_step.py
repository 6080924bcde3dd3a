"""A whole GRPO step of rail against TRL's `GRPOTrainer`, alternated in one process on one thread.

    pip install trl
    python benchmarks/trl_step.py results/warmstarts/agentbench_db/warm1

TRL is no dependency of rail; without it the script says so and stops. TRL trains as in a run of its
own, from one call of `train()`; whenever it has finished a step, a callback makes one step of rail.
TRL's clock runs from the end of a callback to the next one. The first step of each is a warm-up.
With two optimizer steps a GRPO step, TRL scores its samples a second time before the first of them;
rail takes the sampler's log-probabilities. Neither is held equal: that is how they work.

Exactly 32 tokens are sampled everywhere: TRL may not end earlier (`min_new_tokens`), rail's sampler
looks for an end token that does not exist. TRL's gradient checkpointing, mixed precision, logging
and saving are off: they would only slow it down.
"""

import argparse
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import transformers
from transformers import PrinterCallback, TrainerCallback

import rail
from rail.config import Config
from rail.envs.base import StepResult, StopReason, Task
from rail.grpo.advantages import is_mixed
from rail.grpo.update import Updater
from rail.policy.actor import open_actor
from rail.policy.loading import load_policy
from rail.rollout.engine import Engine, Expansion, Forest
from rail.runs import benchmark_config, load_benchmark, load_config
from rail.seeding import generator

GROUP, NEW_TOKENS, TARGET = 8, 32, 4.0
NEVER = -1  # no token has this id


def reward(text: str) -> float:
    """Return the parity of a checksum: cheap, fixed, and mixed in nearly every group."""
    return float(zlib.crc32(text.encode()) % 2)


class OneTurn:
    """An episode of one action, rewarded at once: as much of an `Env` as the engine uses here."""

    def step(self, action: str) -> StepResult:
        """Reward the action."""
        value = reward(action)
        return StepResult("", True, value, value, StopReason.ANSWERED)

    def close(self) -> None:
        """Nothing is held."""


class Clock:
    """Seconds of one side's steps, and what shows that both did the same work."""

    def __init__(self) -> None:
        self.total: list[float] = []
        self.generation: list[float] = []
        self.mixed: list[float] = []
        self.tokens = 0

    def report(self, name: str) -> None:
        """Print medians, without the warm-up step."""
        total, generation = self.total[1:], self.generation[1:]
        median, sampled = statistics.median(total), statistics.median(generation)
        update = statistics.median(t - g for t, g in zip(total, generation, strict=True))
        print(
            f"  {name:5s} {median:7.3f} s a step ({min(total):.3f}-{max(total):.3f}); generation "
            f"{sampled:.3f}, the rest {update:.3f}; {statistics.mean(self.mixed[1:]):.0%} of the "
            f"groups mixed; {self.tokens} new tokens a step"
        )


class Rail(Clock):
    """Steps of rail, from its own engine and updater."""

    def __init__(self, policy: Path, config: Config, tasks: list[Task]) -> None:
        super().__init__()
        limits = config.policy.model_copy(update={"max_turn_tokens": NEW_TOKENS})
        self.actor = open_actor(policy, limits)
        self.actor.sampler.end_id = NEVER
        self._tasks = tasks
        benchmark: Any = SimpleNamespace(make=lambda task: OneTurn())
        self._engine = Engine(self.actor.sampler, self.actor.chat, benchmark, 0)
        native = self.actor.backend == "native"
        self._updater = Updater(self.actor.model, config.train, config.update, native)
        self._optimizer_steps = config.update.minibatches

    def step(self) -> None:
        """Make and time one step, as `rail.step` does for plain GRPO."""
        number, sampled = len(self.total), self._engine.seconds
        started = time.perf_counter()
        forest = Forest()
        self._engine.plant(forest, self._tasks)
        expansions = [
            Expansion(i, [("base", number, task.id, child) for child in range(GROUP)])
            for i, task in enumerate(self._tasks)
        ]
        self._engine.expand(forest, expansions)
        rng = generator(0, "minibatches", number)
        result = self._updater.step(forest.trees, [None] * len(forest.trees), rng)
        self.actor.sampler.decoder.load_weights()
        forest.close()
        self.total.append(time.perf_counter() - started)
        self.generation.append(self._engine.seconds - sampled)
        self.mixed.append(result.mixed_share_update)
        self.tokens = result.trained_tokens
        if result.steps != self._optimizer_steps:
            raise SystemExit(f"rail made {result.steps} optimizer steps; take more tasks")


class Trl(Clock, TrainerCallback):
    """Steps of TRL, from one call of `GRPOTrainer.train`."""

    def __init__(self, policy: Path, config: Config, tasks: list[Task], steps: int) -> None:
        super().__init__()
        # TRL and its `datasets` are optional: pyright does not find them where they are missing.
        from datasets import Dataset  # pyright: ignore[reportMissingImports]
        from trl import GRPOConfig, GRPOTrainer  # pyright: ignore[reportMissingImports]

        model, chat = load_policy(policy)
        self._model: Any = model
        self._optimizer_steps = config.update.minibatches
        self._folder = tempfile.TemporaryDirectory()
        prompts = [{"prompt": [{"role": "user", "content": task.prompt}]} for task in tasks]
        tokenizer: Any = chat.tokenizer
        for row, task in zip(prompts, tasks, strict=True):
            text = tokenizer.apply_chat_template(
                row["prompt"], add_generation_prompt=True, tokenize=False
            )
            if tokenizer.encode(text) != chat.encode_prompt(task.prompt).tolist():
                raise SystemExit(f"{task.id}: rail and the chat template make different prompts")
        self._trainer = GRPOTrainer(
            model=model,
            processing_class=tokenizer,
            reward_funcs=self._rewards,
            train_dataset=Dataset.from_list(prompts * steps),
            args=GRPOConfig(**_trl_settings(config, len(tasks), steps, self._folder.name)),
        )
        self._trainer.remove_callback(PrinterCallback)

    def train(self, between: Callable[[], None]) -> None:
        """Make all steps; call `between` after each of them, off the clock."""
        self._between, self._generate = between, self._model.generate
        self._model.generate = self._timed_generate
        self._trainer.add_callback(self)
        self._started, self._sampled = time.perf_counter(), 0.0
        self._trainer.train()
        self._folder.cleanup()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop the clock after the last optimizer step of a GRPO step."""
        if state.global_step % self._optimizer_steps == 0:
            self.total.append(time.perf_counter() - self._started)
            self.generation.append(self._sampled)
            self._between()
            self._started, self._sampled = time.perf_counter(), 0.0

    def _timed_generate(self, *args: Any, **kwargs: Any) -> Any:
        begun = time.perf_counter()
        result = self._generate(*args, **kwargs)
        self._sampled += time.perf_counter() - begun
        return result

    def _rewards(self, completions: Any, completion_ids: Any, **_: Any) -> list[float]:
        if {len(ids) for ids in completion_ids} != {NEW_TOKENS}:
            raise SystemExit(f"TRL sampled completions of other lengths than {NEW_TOKENS}")
        values = [reward(messages[0]["content"]) for messages in completions]
        groups = [values[i : i + GROUP] for i in range(0, len(values), GROUP)]
        self.mixed.append(statistics.mean(is_mixed(group) for group in groups))
        self.tokens = sum(len(ids) for ids in completion_ids)
        return values


def _trl_settings(config: Config, tasks: int, steps: int, folder: str) -> dict[str, Any]:
    """Translate rail's settings into TRL's."""
    train, update = config.train, config.update
    plain = (update.normalise, update.kl_weight, update.advantage_std, update.logp_temperature)
    if plain != ("token_mean", 0.0, True, 1.0):
        raise SystemExit(f"the benchmark compares the default loss only, got {plain}")
    batch = tasks * GROUP // update.minibatches
    sampling = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "num_generations": GROUP}
    fixed = {"min_new_tokens": NEW_TOKENS}
    length = {"max_completion_length": NEW_TOKENS, "generation_kwargs": fixed}
    clip = {"epsilon": update.clip_low, "epsilon_high": update.clip_high, "delta": update.dual_clip}
    loss = {"beta": 0.0, "num_iterations": 1, "scale_rewards": "group", "loss_type": "bnpo"}
    norm = {"max_grad_norm": update.max_grad_norm}
    rate = {"learning_rate": train.learning_rate, "lr_scheduler_type": "constant", **norm}
    betas = {"adam_beta1": train.betas[0], "adam_beta2": train.betas[1]}
    adamw = {"optim": "adamw_torch_fused", "weight_decay": train.weight_decay, **rate, **betas}
    count = {"steps_per_generation": update.minibatches, "max_steps": steps * update.minibatches}
    batches = {"per_device_train_batch_size": batch, "gradient_accumulation_steps": 1, **count}
    off = dict.fromkeys(("gradient_checkpointing", "bf16", "shuffle_dataset"), False)
    silent = {"logging_strategy": "no", "save_strategy": "no", "report_to": "none"}
    where = {"output_dir": folder, "use_cpu": True, "disable_tqdm": True}
    return sampling | length | clip | loss | adamw | batches | off | silent | where


def main() -> None:
    """Parse arguments, alternate the steps, print times and ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tasks", type=int, default=16)
    arguments = parser.parse_args()
    try:
        import trl  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise SystemExit(f"{error}; this benchmark needs TRL: pip install trl") from error
    torch.set_num_threads(1)
    config = load_config(["config/default.yaml"])
    benchmark = load_benchmark("agentbench_db", benchmark_config(config, "agentbench_db"))
    tasks = benchmark.panel("train")[: arguments.tasks]
    ours = Rail(arguments.policy, config, tasks)
    theirs = Trl(arguments.policy, config, tasks, arguments.rounds + 1)
    update, train = config.update, config.train
    print(
        f"rail {rail.__version__} ({ours.actor.backend}), TRL {trl.__version__}, transformers "
        f"{transformers.__version__}, torch {torch.__version__}, {torch.get_num_threads()} thread\n"
        f"held equal: policy {arguments.policy}, {len(tasks)} prompts x {GROUP} rollouts of "
        f"{NEW_TOKENS} new tokens at T = 1, reward,\n"
        f"  loss (clip {update.clip_low}/{update.clip_high}, dual clip {update.dual_clip}, no KL, "
        f"mean over tokens, group advantages over their std),\n"
        f"  {update.minibatches} optimizer steps a GRPO step, AdamW lr {train.learning_rate} betas "
        f"{train.betas}, gradient norm <= {update.max_grad_norm}, float32"
    )
    theirs.train(between=ours.step)
    theirs.report("TRL")
    ours.report("rail")
    each = [t / r for t, r in zip(theirs.total[1:], ours.total[1:], strict=True)]
    ratio = statistics.median(theirs.total[1:]) / statistics.median(ours.total[1:])
    print(
        f"rail is {ratio:.2f}x faster per step (per round {min(each):.2f}-{max(each):.2f}, "
        f"{arguments.rounds} rounds); at least {TARGET:.0f}x: {'yes' if ratio >= TARGET else 'NO'}"
    )


if __name__ == "__main__":
    main()
