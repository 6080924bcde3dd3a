# One notebook per table and figure, run by papermill. To add one: the notebook, an entry here, and a
# caption in workflow/report. `snakemake figure_NAME --cores 1` makes it alone.
SHOWN = {"labels": {name: METHODS[name].label for name in GRID_METHODS}, "seeds": CONFIG.seeds}

# Name -> what the notebook reads, apart from the code that it imports; its parameters.
NOTEBOOKS = {
    "headroom": (rules.checks.input, {}),
    "table1": (EVERY_RUN, SHOWN),
    "learning_curves": (EVERY_RUN, SHOWN),
    "figure3": (rules.export_traces.output.traces, {"seeds": CONFIG.seeds}),
}

for name, (read, values) in NOTEBOOKS.items():

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
            code=notebook_code(f"notebooks/{name}.ipynb"),
            values=parameters(**values),
            stem=subpath(output.svg, strip_suffix=".svg"),
        shell:
            "python -m rail notebook {input.notebook} --out {output.executed} {params.values:q} "
            "-p table={output.table} -p figure={params.stem} > {log} 2>&1"


rule tables:
    input:
        expand(f"{RESULTS}/tables/{{name}}.csv", name=NOTEBOOKS),
    localrule: True


rule figures:
    input:
        expand(f"{RESULTS}/figures/{{name}}.{{suffix}}", name=NOTEBOOKS, suffix=["svg", "pdf"]),
    localrule: True
