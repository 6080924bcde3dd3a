# One notebook per table or figure, run by papermill. To add one: the notebook, an entry here, and a
# caption in workflow/report. `snakemake figure_NAME` or `table_NAME` makes it alone.
BENCHMARK = CONFIG.benchmarks[0]
EVERY_RUN = grid(f"{RUN}/{{table}}.parquet", table=["steps", "validation", "evaluation"])

# Name -> what its notebook reads, apart from the code that it imports.
TABLE_NOTEBOOKS = {
    "table1": EVERY_RUN,
}
FIGURE_NOTEBOOKS = {
    "headroom": rules.checks.input,
    "learning_curves": EVERY_RUN,
    "figure3": rules.export_traces.output.traces,
}


for name, read in TABLE_NOTEBOOKS.items():

    rule:
        name:
            f"table_{name}"
        input:
            notebook=f"notebooks/{name}.ipynb",
            data=read,
        output:
            table=report(
                f"{RESULTS}/tables/{name}.csv",
                caption=f"../report/{name}.rst",
                category="Tables",
                labels={"table": name},
            ),
            executed=f"{RESULTS}/notebooks/{name}.ipynb",
        log:
            f"{LOGS}/notebooks/{name}.log",
        conda:
            ENVIRONMENT
        resources:
            mem_mb=1500,
            runtime=10,
        params:
            code=notebook_code,
            values=f"-p results={RESULTS} -p benchmark={BENCHMARK}",
        shell:
            "python -m rail notebook {input.notebook} --out {output.executed} {params.values} "
            "-p table={output.table} > {log} 2>&1"


for name, read in FIGURE_NOTEBOOKS.items():

    rule:
        name:
            f"figure_{name}"
        input:
            notebook=f"notebooks/{name}.ipynb",
            data=read,
        output:
            svg=report(
                f"{RESULTS}/figures/{name}.svg",
                caption=f"../report/{name}.rst",
                category="Figures",
                labels={"figure": name},
            ),
            pdf=f"{RESULTS}/figures/{name}.pdf",
            caption=f"{RESULTS}/figures/{name}.caption.txt",
            table=f"{RESULTS}/tables/{name}.csv",
            executed=f"{RESULTS}/notebooks/{name}.ipynb",
        log:
            f"{LOGS}/notebooks/{name}.log",
        conda:
            ENVIRONMENT
        resources:
            mem_mb=1500,
            runtime=10,
        params:
            code=notebook_code,
            values=f"-p results={RESULTS} -p benchmark={BENCHMARK}",
            stem=subpath(output.svg, strip_suffix=".svg"),
        shell:
            "python -m rail notebook {input.notebook} --out {output.executed} {params.values} "
            "-p table={output.table} -p figure={params.stem} > {log} 2>&1"


rule tables:
    input:
        expand(f"{RESULTS}/tables/{{name}}.csv", name=[*TABLE_NOTEBOOKS, *FIGURE_NOTEBOOKS]),
    localrule: True


rule figures:
    input:
        expand(
            f"{RESULTS}/figures/{{name}}.{{suffix}}", name=FIGURE_NOTEBOOKS, suffix=["svg", "pdf"]
        ),
    localrule: True
