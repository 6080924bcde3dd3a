import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from rail.config import BenchmarkConfig, Config, MethodConfig
from rail.controller.settings import ControllerSettings
from rail.runs import load_config, method_config, names_of, resolve

CONFIG = Path(__file__).parents[1] / "config"
SECTIONS = {name: f.annotation for name, f in Config.model_fields.items() if name != "folder"}


def documented() -> set[str]:
    cells = re.findall(r"^\| ([^|]+) \|", (CONFIG / "README.md").read_text(), re.MULTILINE)
    return {key for cell in cells for key in re.findall(r"`(\w+)`", cell)}


def keys() -> set[str]:
    models = [m for m in SECTIONS.values() if isinstance(m, type) and issubclass(m, BaseModel)]
    found = {
        key for model in [*models, BenchmarkConfig, MethodConfig] for key in model.model_fields
    }
    return found | {name for name, kind in SECTIONS.items() if kind not in models}


def test_every_key_is_explained_and_no_other() -> None:
    assert documented() == keys()


@pytest.mark.parametrize("overlay", ["smoke", "lr_sweep"])
def test_every_overlay_is_a_valid_scale(overlay: str) -> None:
    config = load_config([CONFIG / "default.yaml", CONFIG / f"{overlay}.yaml"])
    assert config.scale == overlay


def test_every_method_resolves_at_the_default_and_the_smoke_scale() -> None:
    for files in (["default.yaml"], ["default.yaml", "smoke.yaml"]):
        config = load_config([CONFIG / name for name in files])
        for name in names_of(CONFIG / "methods"):
            run = resolve(config, "agentbench_db", name, 1001)
            assert run.reads == method_config(config, name).reads
            assert run.train.steps == config.train.steps


def test_every_setting_of_rail_is_among_our_choices_with_its_value() -> None:
    text = (CONFIG.parent / "docs/choices.md").read_text()
    rows = re.findall(r"^\| (.*?) \| (.*?) \|", text, re.MULTILINE)
    listed = {
        key: value
        for names, values in rows
        for key, value in zip(re.findall(r"`(\w+)`", names), values.split(", "), strict=False)
    }
    settings = ControllerSettings().model_dump()
    assert set(settings) - set(listed) == set()
    numbers = {k: listed[k].split()[0] for k, v in settings.items() if not isinstance(v, bool)}
    assert {k: float(text) for k, text in numbers.items()} == {k: settings[k] for k in numbers}
