# Configuration, the grid of runs, and the two rerun triggers: code and configuration of a job.
import json
import os
import shlex
import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DeploymentMethod

from rail import fingerprint as code
from rail.errors import RailError
from rail.runs import benchmark_config, grid_methods, load_config, method_config, names_of

if workflow.config_settings.config:
    raise WorkflowError("use --configfile with an overlay: jobs do not see values of --config")

CONFIG_FILES = list(
    dict.fromkeys(["config/default.yaml", *map(str, workflow.overwrite_configfiles)])
)

try:
    CONFIG = load_config(CONFIG_FILES)
    BENCHMARKS = {name: benchmark_config(CONFIG, name) for name in CONFIG.benchmarks}
    GRID_METHODS = grid_methods(CONFIG)
    # Every known method may be asked for; the grid is what the scale's sets choose.
    METHODS = {name: method_config(CONFIG, name) for name in names_of(CONFIG.folder / "methods")}
except RailError as error:
    raise WorkflowError(str(error)) from None

# One plan, one digest of each set of modules: the same sets come up for every seed.
fingerprint = cache(code.fingerprint)

READ = {config.reads for config in METHODS.values() if config.reads}
RESULTS = CONFIG.results
LOGS = f"{RESULTS}/logs"
RUN = f"{RESULTS}/runs/{{benchmark}}/{{method}}/seed{{seed}}"
STATE = f"{RESULTS}/state/{{benchmark}}/{{method}}/seed{{seed}}"
WARM_START = f"{RESULTS}/warmstarts/{{benchmark}}/warm{{warm}}"

# One environment for every job: that of snakemake itself unless conda is asked for. Jobs read the same
# configuration files as this page, import the package beside it, and use one thread: two runs side by
# side beat one run on two cores.
ROOT = Path(workflow.current_basedir.get_path_or_uri(False)).resolve().parents[1]
ENVIRONMENT = str(ROOT / "workflow/envs/rail.yaml")
shell.executable("bash")
shell.prefix(
    "set -euo pipefail; export OMP_NUM_THREADS=1 "
    f"PYTHONPATH={shlex.quote(str(ROOT))} RAIL_CONFIG={shlex.quote(os.pathsep.join(CONFIG_FILES))}"
    + (
        "; "
        if DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
        else f" PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
    )
)


wildcard_constraints:
    benchmark="|".join(BENCHMARKS),
    method="|".join(METHODS),
    seed=r"\d+",
    warm=r"\d+",


def code_of(*modules):
    """Return a function of the wildcards: the digest of the code that such a job can run."""

    def digest(wildcards):
        return fingerprint(*(module.format(**wildcards) for module in modules))

    return digest


def train_code(wildcards):
    """Return the digest of the loop, of the run's own method and of its own benchmark."""
    method = METHODS[wildcards.method].method
    return fingerprint("rail.train", f"rail.methods.{method}", f"rail.envs.{wildcards.benchmark}")


def as_json(*parts):
    """Return one line that changes exactly when one of `parts` does."""
    plain = [
        part.model_dump(mode="json") if hasattr(part, "model_dump") else part for part in parts
    ]
    return json.dumps(plain, sort_keys=True)


def benchmark_values(wildcards, *panels):
    """Return a benchmark's settings and the sizes of the panels that are read."""
    config = BENCHMARKS[wildcards.benchmark]
    return {"settings": config.settings, "pools": {name: config.pools.get(name) for name in panels}}


def grid(pattern, **fixed):
    """Expand `pattern` over the benchmarks, methods and seeds of the scale."""
    axes = {"benchmark": list(BENCHMARKS), "method": GRID_METHODS, "seed": CONFIG.seeds, **fixed}
    return expand(pattern, **axes)


def per_warm_start(pattern):
    """Expand `pattern` over the benchmarks and warm starts of the scale."""
    return expand(pattern, benchmark=list(BENCHMARKS), warm=range(CONFIG.warm_start.count))


def minutes(first):
    """Return a limit that grows with each attempt; training resumes, so none is lost."""

    def limit(wildcards, attempt):
        return first * attempt

    return limit


def only_at_scale(name, inputs):
    """Return `inputs` at scale `name`; elsewhere a function that says how to get there."""

    def explain(wildcards):
        raise WorkflowError(f"run: snakemake {name} --cores all --configfile config/{name}.yaml")

    return inputs if CONFIG.scale == name else explain
