# The tasks themselves, to look at; jobs draw them from the same code.
PANELS = sorted(set.intersection(*(set(config.pools) for config in BENCHMARKS.values())))


rule panels:
    output:
        hashes=f"{RESULTS}/panels/{{benchmark}}/hashes.json",
        tasks=expand(f"{RESULTS}/panels/{{{{benchmark}}}}/{{panel}}.jsonl", panel=PANELS),
    log:
        f"{LOGS}/panels/{{benchmark}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.panels", "rail.envs.{benchmark}"),
        config=lambda wildcards: as_json(BENCHMARKS[wildcards.benchmark]),
        out=subpath(output.hashes, parent=True),
    shell:
        "python -m rail panels --benchmark {wildcards.benchmark} --out {params.out} > {log} 2>&1"
