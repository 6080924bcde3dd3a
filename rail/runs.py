"""From YAML files to one resolved run: merging, validation, plug-ins found by name.

A benchmark is `rail/envs/<name>` plus `config/benchmarks/<name>.yaml`; a method is a module in
`rail/methods` plus `config/methods/<name>.yaml`. There is no central list of either.
"""

import difflib
import importlib
import pkgutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

import rail.envs
import rail.methods
from rail.config import (
    BenchmarkConfig,
    Config,
    MethodConfig,
    PolicyConfig,
    Strict,
    TrainConfig,
    UpdateConfig,
)
from rail.envs.base import Benchmark
from rail.errors import ConfigError
from rail.methods.base import Method, MethodContext

Model = TypeVar("Model", bound=BaseModel)

_NOT_PLUGINS = {"base", "contract"}


class RunConfig(Strict):
    """All that one training run reads, and nothing else: its rerun trigger and checkpoint key.

    Attributes:
        method: Name of the method's configuration.
        module: Module in `rail.methods` that implements it.
        settings: The method's settings, defaults filled in.
        reads: Method whose recorded run of the same seed is an input, or None.
    """

    benchmark: str
    benchmark_settings: dict[str, Any]
    pools: dict[str, int]
    method: str
    module: str
    settings: dict[str, Any]
    reads: str | None
    seed: int
    warm_start: int
    policy: PolicyConfig
    train: TrainConfig
    update: UpdateConfig


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` overlaid by `over`: dicts merge, everything else is replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = (
            merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a mapping.

    Raises:
        ConfigError: If the file is missing, is not YAML, or is no mapping.
    """
    try:
        content = yaml.safe_load(path.read_text())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: not valid YAML: {error}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path}: expected a mapping of keys, got {type(content).__name__}")
    return content


def validate(model: type[Model], content: Any, where: str) -> Model:
    """Validate `content`; name the file, the key, and the nearest known key.

    Raises:
        ConfigError: On an unknown key or a value that does not fit.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        lines = [_explain(model, problem) for problem in error.errors()]
        raise ConfigError(f"{where}: " + "; ".join(lines)) from error


def _explain(model: type[BaseModel], problem: Any) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        return f"{key}: {problem['msg']}"
    for part in problem["loc"][:-1]:
        annotation = model.model_fields[part].annotation if part in model.model_fields else None
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            model = annotation
    return f"unknown key {key!r}{_nearest(str(problem['loc'][-1]), model.model_fields)}"


def _nearest(name: str, known: Any) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    hint = f", did you mean {close[0]!r}?" if close else ""
    return f"{hint} (known: {', '.join(names)})"


def load_config(paths: Sequence[Path | str]) -> Config:
    """Merge YAML files from left to right into one `Config`.

    Raises:
        ConfigError: If a file or a key cannot be used.
    """
    files = [Path(path) for path in paths] or [Path("config/default.yaml")]
    content: dict[str, Any] = {}
    for file in files:
        content = merge(content, read_yaml(file))
    config = validate(Config, content, " + ".join(str(file) for file in files))
    config = config.model_copy(update={"folder": files[0].parent})
    for name in config.methods:
        _named(config, "method", name)
    return config


def names_of(folder: Path) -> list[str]:
    """Return the names of the YAML files in `folder`, sorted."""
    return sorted(path.stem for path in folder.glob("*.yaml"))


def _named(config: Config, kind: str, name: str) -> Path:
    folder = config.folder / f"{kind}s"
    known = names_of(folder)
    if name not in known:
        raise ConfigError(f"no {kind} {name!r}{_nearest(name, known)} in {folder}/*.yaml")
    return folder / f"{name}.yaml"


def benchmark_config(config: Config, name: str) -> BenchmarkConfig:
    """Return config/benchmarks/<name>.yaml, validated."""
    path = _named(config, "benchmark", name)
    return validate(BenchmarkConfig, read_yaml(path), str(path))


def method_config(config: Config, name: str) -> MethodConfig:
    """Return config/methods/<name>.yaml under the scale's own values, validated."""
    path = _named(config, "method", name)
    return validate(MethodConfig, merge(read_yaml(path), config.methods.get(name, {})), str(path))


def methods_of(config: Config) -> list[str]:
    """Return the methods whose `sets` meet the configured `method_sets`, sorted."""
    wanted = set(config.method_sets)
    names = names_of(config.folder / "methods")
    found = [name for name in names if wanted & set(method_config(config, name).sets)]
    if not found:
        known = {s for name in names for s in method_config(config, name).sets}
        raise ConfigError(f"no method has one of the sets {sorted(wanted)}; known: {sorted(known)}")
    return found


def grid_methods(config: Config) -> list[str]:
    """Return the methods of the scale and those that they read, sorted."""
    chosen = methods_of(config)
    read = {source for name in chosen if (source := method_config(config, name).reads)}
    return sorted({*chosen, *read})


def load_plugin(package: Any, name: str) -> Any:
    """Import `<package>.<name>`.

    Raises:
        ConfigError: If there is no such module; lists what exists.
    """
    known = {m.name for m in pkgutil.iter_modules(package.__path__)} - _NOT_PLUGINS
    if name not in known:
        raise ConfigError(f"no module {name!r} in {package.__name__}{_nearest(name, known)}")
    return importlib.import_module(f"{package.__name__}.{name}")


def load_benchmark(name: str, config: BenchmarkConfig) -> Benchmark:
    """Build the benchmark `name` from its configuration."""
    module = load_plugin(rail.envs, name)
    settings = validate(module.Settings, config.settings, f"settings of benchmark {name}")
    return module.build(settings, dict(config.pools))


def resolve(config: Config, benchmark: str, method: str, seed: int) -> RunConfig:
    """Return all that one run reads.

    Raises:
        ConfigError: On an unknown name or key, in whichever file it stands.
    """
    bench = benchmark_config(config, benchmark)
    chosen = method_config(config, method)
    plugin = load_plugin(rail.methods, chosen.method)
    where = f"method {method}"
    settings = validate(plugin.Settings, chosen.settings, f"settings of {where}")
    train = merge(config.train.model_dump(), chosen.train)
    update = merge(config.update.model_dump(), chosen.update)
    return RunConfig(
        benchmark=benchmark,
        benchmark_settings=bench.settings,
        pools={name: bench.pools[name] for name in ("train", "validation")},
        method=method,
        module=chosen.method,
        settings=settings.model_dump(mode="json"),
        reads=chosen.reads,
        seed=seed,
        warm_start=seed % config.warm_start.count,
        policy=config.policy,
        train=validate(TrainConfig, train, f"train of {where}"),
        update=validate(UpdateConfig, update, f"update of {where}"),
    )


def open_benchmark(run: RunConfig) -> Benchmark:
    """Build the benchmark of a run."""
    config = BenchmarkConfig(pools=run.pools, settings=run.benchmark_settings)
    return load_benchmark(run.benchmark, config)


def build_method(run: RunConfig, context: MethodContext) -> Method:
    """Build the method of a run."""
    module = load_plugin(rail.methods, run.module)
    settings = validate(module.Settings, run.settings, f"settings of method {run.method}")
    return module.build(settings, context)
