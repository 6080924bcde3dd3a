# Configuration, the grid of runs, and the two rerun triggers: code and configuration of a job.
import json
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError

from rail.errors import RailError
from rail.fingerprint import fingerprint
from rail.runs import benchmark_config, load_config, method_config, methods_of, names_of

if workflow.config_settings.config:
    raise WorkflowError("use --configfile with an overlay: jobs do not see values of --config")

# Jobs are given the same files, so a job and this file can never disagree.
CONFIG_FILES = list(dict.fromkeys(["config/default.yaml", *workflow.overwrite_configfiles]))
CONFIGS = " ".join(f"--config {path}" for path in CONFIG_FILES)

try:
    CONFIG = load_config(CONFIG_FILES)
    BENCHMARKS = {name: benchmark_config(CONFIG, name) for name in CONFIG.benchmarks}
    CHOSEN = methods_of(CONFIG)
    # Every known method may be asked for; the grid is what the scale's sets choose.
    METHODS = {
        name: method_config(CONFIG, name) for name in names_of(CONFIG.folder / "methods")
    }
except RailError as error:
    raise WorkflowError(str(error)) from None

READ = {config.reads for config in METHODS.values() if config.reads}
GRID_METHODS = sorted({*CHOSEN, *(METHODS[name].reads for name in CHOSEN if METHODS[name].reads)})
RESULTS = CONFIG.results
LOGS = f"{RESULTS}/logs"
RUN = f"{RESULTS}/runs/{{benchmark}}/{{method}}/seed{{seed}}"
STATE = f"{RESULTS}/state/{{benchmark}}/{{method}}/seed{{seed}}"
WARM_START = f"{RESULTS}/warmstarts/{{benchmark}}/warm{{warm}}"

# `rail` is the one beside the Python that runs snakemake, whatever the user's PATH says. Jobs are
# single-threaded: two runs side by side beat one run on two cores.
shell.executable("bash")
shell.prefix(
    f"set -euo pipefail; export PATH='{Path(sys.executable).parent}':\"$PATH\" OMP_NUM_THREADS=1; "
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
    plain = [part.model_dump(mode="json") if hasattr(part, "model_dump") else part for part in parts]
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
