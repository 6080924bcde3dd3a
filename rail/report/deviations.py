"""Deviations from the protocol: recorded by hand, shown in full."""

from pathlib import Path

import yaml
from pydantic import Field, ValidationError

from rail.config import Strict
from rail.errors import ConfigError


class Deviation(Strict):
    """One deviation.

    Attributes:
        id: Short unique name.
        section: Section of the protocol it departs from.
        what: What is done instead.
        why: The reason.
    """

    id: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    section: str
    what: str
    why: str


def load_deviations(path: Path) -> list[Deviation]:
    """Read the list, key `deviations` of a YAML mapping.

    Raises:
        ConfigError: If the file is missing, an entry has an unknown or missing key, or an id is
            used twice. A report that cannot say what it departs from is not written.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read: {' '.join(str(error).split())}") from error
    entries = content.get("deviations") if isinstance(content, dict) else None
    if not isinstance(entries, list):
        raise ConfigError(
            f"{path}: expected a mapping with one key `deviations`, a list of entries"
        )
    found: list[Deviation] = []
    for number, entry in enumerate(entries, start=1):
        try:
            deviation = Deviation.model_validate(entry)
        except ValidationError as error:
            problem = error.errors()[0]
            key = ".".join(str(part) for part in problem["loc"])
            raise ConfigError(f"{path}: entry {number}: {key}: {problem['msg']}") from error
        if deviation.id in {other.id for other in found}:
            raise ConfigError(f"{path}: entry {number}: the id {deviation.id!r} is used twice")
        found.append(deviation)
    return found
