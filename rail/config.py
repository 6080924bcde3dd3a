"""Configuration: frozen, closed (`extra="forbid"`), one YAML per scale, benchmark and method.

A value that neither the paper nor the protocol fixes is marked `our choice` where it is set.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from rail.interventions import Decoding, InterventionSpace


class Strict(BaseModel):
    """A frozen section that refuses unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Positive = Annotated[int, Field(gt=0)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class DecodingConfig(Strict):
    """A decoding regime; top-p 1 keeps importance weights exact."""

    temperature: Annotated[float, Field(gt=0.0)]
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0


class SpaceConfig(Strict):
    """The intervention space of a method; protocol section 3 (temperatures are `our choice`)."""

    budgets: tuple[Positive, ...] = (4, 8, 12)
    regimes: dict[str, DecodingConfig] = {
        "EXPLOIT": DecodingConfig(temperature=0.7),
        "MILD": DecodingConfig(temperature=1.0),
        "AGGRESSIVE": DecodingConfig(temperature=1.25),
    }
    cost_weight: Annotated[float, Field(ge=0.0)] = 0.005

    def build(self) -> InterventionSpace:
        """Return the space."""
        regimes = {name: Decoding(r.temperature, r.top_p) for name, r in self.regimes.items()}
        return InterventionSpace.build(self.budgets, regimes, self.cost_weight)


class PolicyConfig(Strict):
    """The policy's architecture (embedded scale) or where to load one from."""

    path: Path | None = None  # a Hugging Face folder; None: the embedded warm starts
    backend: Literal["native", "torch", "hf"] = (
        "native"  # one that cannot run gives way to the next
    )
    hidden: Positive = 128
    layers: Positive = 3
    heads: Positive = 4
    feed_forward: Positive = 256
    vocabulary: Positive = 768  # upper limit of the byte-level BPE
    max_tokens: Positive = 256  # longest episode in tokens, prompt included
    max_turn_tokens: Positive = 48  # longest action in tokens
    slots: Positive = 48  # rows decoded together


class WarmStartConfig(Strict):
    """Supervised training on scripted demonstrations."""

    count: Positive = 4
    demonstrations: Positive = 16800
    steps: Positive = 700
    batch: Positive = 24
    muon_lr: float = 0.02
    adam_lr: float = 1e-2
    warmup: int = 20
    decay_share: Share = 0.4


class UpdateConfig(Strict):
    """The one policy update of all methods; see `rail.grpo`."""

    advantage_std: bool = True
    advantage_eps: float = 1e-4
    clip_low: float = 0.2
    clip_high: float = 0.28
    dual_clip: float = 3.0
    kl_weight: float = 0.0
    normalise: Literal["token_mean", "sequence_mean", "token_sum_const"] = "token_mean"
    constant: float = 1.0  # divisor of token_sum_const
    prefix_policy: Literal["soft", "hard", "suffix"] = "soft"
    task_equal: bool = False
    importance_cap: Annotated[float, Field(gt=0)] | None = None  # weights min(plain / sampled, cap)
    logp_temperature: Annotated[float, Field(gt=0)] = 1.0
    packing: Literal["tree", "padded"] = "tree"  # `padded` is the slower oracle of `tree`
    minibatches: Positive = 2
    microbatch_tokens: Positive = 3000  # padded tokens in attention per forward; our choice
    max_grad_norm: float = 1.0


class TrainConfig(Strict):
    """The loop."""

    steps: Positive = 48
    tasks_per_step: Positive = 8
    rollouts_per_task: Positive = 16  # the budget: at most tasks_per_step x this, all billed
    budget_mode: Literal["cap", "matched"] = "cap"
    fill: Literal["new_groups", "same_task"] = "new_groups"
    learning_rate: float = 3e-4
    betas: tuple[float, float] = (0.9, 0.95)
    weight_decay: float = 0.0
    checkpoint_every: Positive = 8
    validate_every: Positive = 12
    validation_tasks: Positive = 144
    max_error_share: Share = 0.25


class EvaluationConfig(Strict):
    """Held-out evaluation at the end."""

    tasks: Positive = 1000
    modes: tuple[Literal["sampled", "greedy"], ...] = ("sampled", "greedy")


class ChecksConfig(Strict):
    """Difficulty bands and headroom (protocol section 2)."""

    band_tasks: Positive = 500
    band_rollouts: Positive = 8
    headroom_anchors: Positive = 200
    headroom_branches: Positive = 32


class Config(Strict):
    """A scale: what the whole grid shares."""

    scale: str
    results: str = "results"  # folder of everything that is written
    folder: Path = Field(default=Path("config"), exclude=True)  # where the YAML files lie
    benchmarks: tuple[str, ...]
    method_sets: tuple[str, ...]
    methods: dict[str, dict[str, Any]] = {}  # laid over config/methods/<name>.yaml, by name
    seeds: tuple[int, ...]
    test_panel: str = "a"
    policy: PolicyConfig = PolicyConfig()
    warm_start: WarmStartConfig = WarmStartConfig()
    train: TrainConfig = TrainConfig()
    update: UpdateConfig = UpdateConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    checks: ChecksConfig = ChecksConfig()


class BenchmarkConfig(Strict):
    """config/benchmarks/<name>.yaml; `settings` is validated by the benchmark's own module."""

    pools: dict[str, Positive]  # panel name -> number of tasks
    settings: dict[str, Any] = {}


class MethodConfig(Strict):
    """config/methods/<name>.yaml; `settings` is validated by the method's own module."""

    method: str  # module in rail.methods
    sets: tuple[str, ...]
    source: str  # paper, arXiv id, or `our choice`
    label: str  # how figures call it
    reads: str | None = None  # a method whose recorded runs are this one's input
    update: dict[str, Any] = {}  # named options of the one update
    train: dict[str, Any] = {}
    settings: dict[str, Any] = {}
