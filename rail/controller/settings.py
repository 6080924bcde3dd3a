"""Every value of the controller; what neither paper nor protocol fixes says `our choice`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rail.config import Positive, Share, Strict

Weight = Annotated[float, Field(ge=0.0)]
Rate = Annotated[float, Field(gt=0.0)]


class ControllerSettings(Strict):
    """Settings of `rail.controller.controller.Controller`.

    `shadow_min = shadow_max` gives a shadow phase of fixed length; `replay = 60` fits on the last
    60 traces only, the literal reading of the paper's window.
    """

    # State.
    prefix_only: bool = False  # protocol section 4: the correction's second factor
    hidden_size: Literal[16] = 16  # our choice: 128 raw dimensions would overfit 500 traces
    task_size: Literal[16] = 16  # our choice, as above; the columns' names fix both
    group_scale: Positive = 32  # our choice: n is divided by the largest group a task may reach
    ema_decay: Share = 0.9  # our choice: a task is met few times; one visit moves it by a tenth

    # Network and fit.
    heads: Annotated[int, Field(gt=0, le=62)] = 3  # our choice: fewest that give a spread
    width: Positive = 64  # our choice: 8,051 weights a head, a refit stays under 10 % of a step
    learning_rate: Rate = 1e-3  # our choice: AdamW's own default
    weight_decay: Weight = 1e-3  # our choice: labels are noisy, the last layer should stay small
    fit_steps: Positive = (
        20  # our choice: full-batch, warm-started; 50 were no better in simulation
    )
    huber_delta: Rate = 0.1  # our choice: about one sd of the label (the paper gives the loss only)
    half_life: Rate = 8.0  # policy steps; protocol section 3
    replay: Positive = (
        512  # our choice: about the traces of a run; recency weights do the forgetting
    )
    sd_floor: Rate = 0.1  # our choice: a feature that never moved must not explode when it does
    clip: Rate = 5.0  # our choice: standardised features beyond 5 sd are outliers

    # Promotion.
    window: Positive = 60  # labels, one per sweep; paper (W), protocol section 3
    min_correlation: float = 0.15  # our choice: half of the r = .31 that the paper reports
    min_agreement: Share = 0.55  # our choice: better than a coin by what 60 labels can show
    shadow_min: Annotated[int, Field(ge=0)] = 5  # policy steps; protocol section 3
    shadow_max: Annotated[int, Field(ge=0)] = 16  # policy steps; protocol section 3
    frozen: bool = False  # ablation of the paper: no learning after promotion

    # Serving.
    gate: float = 0.02  # eta, in units of the gain; paper
    explore_start: Share = 0.2  # rho_0, our choice
    explore_scale: Weight = (
        0.3  # c, our choice: sum of rho_t is O(sqrt(TK)), the theorem's condition
    )
    explore_floor: Share = 0.1  # protocol section 3: propensities stay away from 0

    @model_validator(mode="after")
    def _ordered(self) -> "ControllerSettings":
        if self.shadow_min > self.shadow_max:
            raise ValueError(
                f"shadow_min {self.shadow_min} exceeds shadow_max {self.shadow_max}; "
                "promotion would never be allowed before it is forced"
            )
        if self.explore_floor > self.explore_start:
            raise ValueError(
                f"explore_floor {self.explore_floor} exceeds explore_start {self.explore_start}"
            )
        return self
