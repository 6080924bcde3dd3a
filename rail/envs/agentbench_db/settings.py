"""Every dial of the generated tasks and of the demonstrator; all values are `our choice`."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rail.config import Positive, Share, Strict
from rail.envs.agentbench_db.schemas import Partition

Route = Literal["columns", "concat", "describe"]
Range = tuple[Share, Share]
Retry = Annotated[float, Field(ge=0.0, lt=1.0)]


class PanelSettings(Strict):
    """A panel: its own stream, and the names it may use."""

    seed: int
    names: Partition


class LevelSettings(Strict):
    """One class of cells of the competence map.

    Attributes:
        share: Share of the cells of every kind.
        success: Range from which a cell's success probability is drawn.
        contrast: Success after the cell's bad schema look-up over success after the good one.
        good_route: Probability that the demonstrator takes the good look-up.
    """

    share: Share
    success: Range
    contrast: Annotated[float, Field(gt=0.0, le=1.0)]
    good_route: Annotated[float, Field(gt=0.0, lt=1.0)]


class DemonstratorSettings(Strict):
    """How often and where the scripted demonstrator fails.

    Attributes:
        levels: Classes of concepts; the shares sum to 1.
        families: Kinds are dealt into this many families, whose good look-ups alternate.
        exponents: Number of queries -> share of a cell's log-difficulty in each query, the last
            standing for the kind's hardest. The rest lies in the answer, or, where the task is a
            mutation, is added to its hardest query.
        skip: Probability to guess the columns instead of looking the schema up.
        retry_error: Probability to try again after a mistake that shows as an error.
        retry_silent: The same after one that does not show.
        routes: The two schema look-ups.
    """

    levels: dict[str, LevelSettings] = Field(
        default={
            "strong": LevelSettings(share=0.335, success=(0.99, 1), contrast=1, good_route=0.5),
            "middle": LevelSettings(
                share=0.085, success=(0.35, 0.55), contrast=0.35, good_route=0.5
            ),
            "weak": LevelSettings(share=0.58, success=(0.02, 0.04), contrast=0.05, good_route=0.4),
        }
    )
    families: Positive = 1
    exponents: dict[int, tuple[float, ...]] = Field(
        default={1: (0.6,), 2: (0.3, 0.6), 3: (0.1, 0.2, 0.6)}
    )
    skip: Share = 0.04
    retry_error: Retry = 0.8
    retry_silent: Retry = 0.1
    routes: tuple[Route, Route] = ("columns", "concat")

    @model_validator(mode="after")
    def _consistent(self) -> "DemonstratorSettings":
        total = sum(level.share for level in self.levels.values())
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"shares of levels sum to {total}, not 1")
        for name, level in self.levels.items():
            low, high = level.success
            best = high / (level.good_route + (1 - level.good_route) * level.contrast)
            if low > high or low <= 0.0 or best > 1.0:
                raise ValueError(
                    f"level {name}: success {level.success} must ascend from above 0, and {high}"
                    f" needs a success of {best:.3f} after the good look-up; at most 1 is possible"
                )
        for queries, shares in self.exponents.items():
            if len(shares) != queries or min(shares) < 0 or sum(shares) > 1 + 1e-9:
                raise ValueError(
                    f"exponents[{queries}] = {shares}: needs {queries} shares that sum to at most 1"
                )
        if self.routes[0] == self.routes[1]:
            raise ValueError(f"the two routes must differ, got {self.routes}")
        return self


class GeneratorSettings(Strict):
    """Generated tasks; `test_b` is added here, with its seed, when the experiment is frozen.

    Attributes:
        seed: Seed of demonstrations and competence maps.
        panels: Panel name -> its stream. A panel that is not listed cannot be generated.
        rows: Fewest and most rows of a table.
        demonstrator: The dial.
    """

    seed: int = 2608
    panels: dict[str, PanelSettings] = Field(
        default={
            "train": PanelSettings(seed=101, names="train"),
            "bands": PanelSettings(seed=102, names="train"),
            "validation": PanelSettings(seed=103, names="validation"),
            "test_a": PanelSettings(seed=104, names="test_a"),
        }
    )
    rows: tuple[Annotated[int, Field(ge=5)], Annotated[int, Field(le=20)]] = (5, 7)
    demonstrator: DemonstratorSettings = DemonstratorSettings()
