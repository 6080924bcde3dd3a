# From tables of runs to traces and verdicts. Nothing from here on imports torch.
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
        tables=grid(f"{RUN}/{{table}}.parquet", table=["steps", "validation", "evaluation"]),
        traces=rules.export_traces.output.traces,
        claims="config/claims.yaml",
    output:
        f"{RESULTS}/claims.json",
    log:
        f"{LOGS}/claims.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.claims"),
    shell:
        "python -m rail claims --claims {input.claims} --out {output} > {log} 2>&1"


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
