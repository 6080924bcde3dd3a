# What each kind of job reads: its inputs, and its configuration as one line of JSON.
from rail.traces.schema import TABLES

TEST_PANEL = f"test_{CONFIG.test_panel}"
CHECKS = f"{RESULTS}/checks/{{benchmark}}/warm{{warm}}"


def warm_start_config(wildcards):
    """Return what a warm start reads, as JSON."""
    return as_json(CONFIG.policy, CONFIG.warm_start, benchmark_values(wildcards, "train"))


def check_config(wildcards):
    """Return what a check reads, as JSON."""
    return as_json(CONFIG.checks, CONFIG.policy, benchmark_values(wildcards, "bands"))


def warm_start_of(wildcards):
    """Return the initial policy of a seed."""
    warm = int(wildcards.seed) % CONFIG.warm_start.count
    return WARM_START.format(benchmark=wildcards.benchmark, warm=warm)


def initial_evaluation(wildcards):
    """Return the evaluation of a seed's initial policy."""
    warm = int(wildcards.seed) % CONFIG.warm_start.count
    return f"{CHECKS}/evaluation.parquet".format(benchmark=wildcards.benchmark, warm=warm)


def recorded(wildcards):
    """Return what a yoked method reads: tables and promotion checkpoint of another method's run."""
    source = METHODS[wildcards.method].reads
    names = [f"{table}.parquet" for table in TABLES] + ["promotion.pt"] if source else []
    return [f"{RUN}/{name}".format(**{**wildcards, "method": source}) for name in names]


def reads_option(wildcards):
    """Return the option that names the recorded run, empty where there is none."""
    files = recorded(wildcards)
    return f"--reads {Path(files[0]).parent}" if files else ""


def train_config(wildcards):
    """Return what one run reads, as JSON."""
    method = METHODS[wildcards.method].model_dump(mode="json", exclude={"sets", "label", "source"})
    panels = benchmark_values(wildcards, "train", "validation")
    return as_json(CONFIG.policy, CONFIG.train, CONFIG.update, method, panels)


def evaluation_config(wildcards):
    """Return what an evaluation reads, as JSON."""
    return as_json(CONFIG.evaluation, CONFIG.policy, benchmark_values(wildcards, TEST_PANEL))


def parameters(**values):
    """Return command-line options that set the parameters of a notebook."""
    common = {"results": RESULTS, "benchmark": CONFIG.benchmarks[0]}
    texts = {k: v if isinstance(v, str) else json.dumps(v) for k, v in {**common, **values}.items()}
    return [word for name, text in texts.items() for word in ("-p", f"{name}={text}")]


def notebook_code(notebook):
    """Return a function: the digest of the code that runs `notebook` and of all it imports."""

    # Not a function of `input`: snakemake leaves such parameters out of its rerun triggers.
    def digest(wildcards):
        return fingerprint("rail.notebook", *code.modules_in_notebook(Path(notebook)))

    return digest
