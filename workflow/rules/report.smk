# One page for the reader: verdicts, tables, figures.
rule report:
    input:
        claims=rules.claims.output.ledger,
        tables=rules.tables.input,
        figures=rules.figures.input,
        checks=rules.checks.input,
        runs=rules.runs.input,
        deviations="config/deviations.yaml",
        page=[f"rail/report/{name}" for name in ("page.html.jinja", "page.css")],
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
        config=as_json(CONFIG, {name: METHODS[name].label for name in GRID_METHODS}),
    shell:
        "python -m rail report --deviations {input.deviations} --out {output} > {log} 2>&1"
