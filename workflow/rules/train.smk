# Training. What a run needs to go on after a kill lies in STATE, which no rule owns as output:
# snakemake deletes the outputs of a failed job, and with them the way back.


rule train:
    input:
        policy=warm_start_of,
        recorded=recorded,
    output:
        tables=expand(f"{RUN}/{{table}}.parquet", table=TABLES, allow_missing=True),
        run=f"{RUN}/run.json",
        policy=directory(f"{RUN}/policy"),
    log:
        f"{LOGS}/train/{{benchmark}}/{{method}}/seed{{seed}}.log",
    wildcard_constraints:
        method="|".join(sorted(set(METHODS) - READ)),
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=2000,
        runtime=minutes(60),
    params:
        code=train_code,
        config=train_config,
        reads=reads_option,
        state=STATE,
        out=subpath(output.run, parent=True),
    shell:
        "python -m rail train --benchmark {wildcards.benchmark} --method {wildcards.method} "
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
    # Others wait for these runs.
    priority: 1


rule runs:
    input:
        grid(f"{RUN}/run.json"),
    localrule: True
