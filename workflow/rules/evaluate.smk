# Held-out success of the final policy, apart from training: a change here retrains nothing.
rule evaluate_initial:
    input:
        policy=rules.warmstart.output,
    output:
        f"{CHECKS}/evaluation.parquet",
    log:
        f"{LOGS}/checks/{{benchmark}}/warm{{warm}}.evaluation.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(15),
    params:
        code=code_of("rail.evaluate", "rail.envs.{benchmark}"),
        config=evaluation_config,
    shell:
        "python -m rail evaluate-initial --benchmark {wildcards.benchmark} "
        "--policy {input.policy} --out {output} > {log} 2>&1"


rule evaluate:
    input:
        run=f"{RUN}/run.json",
        policy=f"{RUN}/policy",
        initial=initial_evaluation,
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
        "--seed {wildcards.seed} --run {params.run} --initial {input.initial} --out {output} "
        "> {log} 2>&1"
