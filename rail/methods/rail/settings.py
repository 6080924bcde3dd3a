"""What the method's configuration may say."""

from pydantic import Field

from rail.config import Positive, SpaceConfig, Strict
from rail.controller.settings import ControllerSettings


class Settings(Strict):
    """The method's values; see `ControllerSettings` for the controller's."""

    base_rollouts: Positive = 8  # our choice: the paper's average of 10 to 13 implies about 8
    rounds: Positive = 2  # anchors per task and step at most; protocol section 3
    task_limit: Positive = 32  # rollouts per task and step at most; our choice
    space: SpaceConfig = SpaceConfig()
    controller: ControllerSettings = Field(default_factory=ControllerSettings)
