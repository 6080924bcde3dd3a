# From tables of runs to traces and verdicts. Nothing from here on imports torch.
EVERY_RUN = grid(f"{RUN}/{{table}}.parquet", table=["steps", "validation", "evaluation"])
CONTROLLED = [name for name in GRID_METHODS if name in READ or METHODS[name].reads]


rule export_traces:
    input:
        grid(f"{RUN}/interventions.parquet", method=CONTROLLED),
    output:
        traces=grid(
            f"{RESULTS}/traces/{{benchmark}}/{{method}}/seed{{seed}}.parquet", method=CONTROLLED
        ),
        sheet=f"{RESULTS}/traces/schema.csv",
    log:
        f"{LOGS}/traces.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.traces.export"),
        methods=" ".join(f"--method {name}" for name in CONTROLLED),
    shell:
        "python -m rail traces {params.methods} > {log} 2>&1"


rule traces:
    input:
        rules.export_traces.output,
    localrule: True


rule claims:
    input:
        tables=EVERY_RUN,
        traces=rules.export_traces.output.traces,
        claims="config/claims.yaml",
        lock=[str(path) for path in CONFIG.folder.glob("claims.lock")],
    output:
        ledger=f"{RESULTS}/claims.json",
        table=report(
            f"{RESULTS}/tables/claims.csv",
            caption="../report/claims.rst",
            category="Claims",
            labels={"table": "ledger"},
        ),
    log:
        f"{LOGS}/claims.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.claims"),
        grid=as_json(CONFIG.seeds, CONFIG.test_panel),
    shell:
        "python -m rail claims --claims {input.claims} > {log} 2>&1"


# Learning rate, chosen once on validation before any comparison.
rule lr_sweep_table:
    input:
        only_at_scale("lr_sweep", grid(f"{RUN}/validation.parquet")),
    output:
        f"{RESULTS}/tables/lr_sweep.csv",
    log:
        f"{LOGS}/lr_sweep.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.sweep"),
    shell:
        "python -m rail lr-sweep --out {output} > {log} 2>&1"


rule lr_sweep:
    input:
        rules.lr_sweep_table.output,
    localrule: True
