# One page for the reader: verdicts, tables, figures.
rule report:
    input:
        claims=rules.claims.output,
        tables=rules.tables.input,
        figures=rules.figures.input,
        checks=rules.checks.input,
        runs=rules.runs.input,
    output:
        report(
            f"{RESULTS}/report.html",
            caption="../report/report.rst",
            category="Report",
            labels={"page": "report"},
        ),
    log:
        f"{LOGS}/report.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.report"),
    shell:
        "python -m rail report --out {output} > {log} 2>&1"
