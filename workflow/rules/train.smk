# Training. What a run needs to go on after a kill lies in STATE, which no rule owns as output:
# snakemake deletes the outputs of a failed job, and with them the way back.
from rail.traces.schema import TABLES


def warm_start_of(wildcards):
    """Return the initial policy of a seed."""
    warm = int(wildcards.seed) % CONFIG.warm_start.count
    return WARM_START.format(benchmark=wildcards.benchmark, warm=warm)


def recorded(wildcards):
    """Return what a yoked method reads: tables and promotion checkpoint of another method's run."""
    source = METHODS[wildcards.method].reads
    names = ["interventions.parquet", "steps.parquet", "promotion.pt"] if source else []
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


rule train:
    input:
        policy=warm_start_of,
        recorded=recorded,
    output:
        tables=expand(f"{RUN}/{{table}}.parquet", table=TABLES, allow_missing=True),
        run=f"{RUN}/run.json",
        policy=directory(f"{RUN}/policy"),
    params:
        code=train_code,
        config=train_config,
        reads=reads_option,
        state=STATE,
        out=subpath(output.run, parent=True),
    log:
        f"{LOGS}/train/{{benchmark}}/{{method}}/seed{{seed}}.log",
    wildcard_constraints:
        method="|".join(sorted(set(METHODS) - READ)),
    threads: 1
    resources:
        mem_mb=2000,
        runtime=minutes(60),
    shell:
        "rail train {CONFIGS} --benchmark {wildcards.benchmark} --method {wildcards.method} "
        "--seed {wildcards.seed} --policy {input.policy} {params.reads} --state {params.state} "
        "--out {params.out} > {log} 2>&1"


# A method that others read also leaves the checkpoint they start from.
use rule train as train_source with:
    output:
        tables=expand(f"{RUN}/{{table}}.parquet", table=TABLES, allow_missing=True),
        run=f"{RUN}/run.json",
        policy=directory(f"{RUN}/policy"),
        promotion=f"{RUN}/promotion.pt",
    wildcard_constraints:
        method="|".join(sorted(READ)),


rule runs:
    localrule: True
    input:
        grid(f"{RUN}/run.json"),
