# Held-out success of the final policy, apart from training: a change here retrains nothing.


rule evaluate:
    input:
        run=f"{RUN}/run.json",
        policy=f"{RUN}/policy",
    output:
        f"{RUN}/evaluation.parquet",
    log:
        f"{LOGS}/evaluate/{{benchmark}}/{{method}}/seed{{seed}}.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(15),
    params:
        code=code_of("rail.evaluate", "rail.envs.{benchmark}"),
        config=evaluation_config,
        run=subpath(input.run, parent=True),
    shell:
        "python -m rail evaluate --benchmark {wildcards.benchmark} --method {wildcards.method} "
        "--seed {wildcards.seed} --run {params.run} --out {output} > {log} 2>&1"
