# Held-out success of the final policy, apart from training: a change here retrains nothing.
TEST_PANEL = f"test_{CONFIG.test_panel}"


def evaluation_config(wildcards):
    """Return what an evaluation reads, as JSON."""
    return as_json(CONFIG.evaluation, CONFIG.policy, benchmark_values(wildcards, TEST_PANEL))


rule evaluate:
    input:
        run=f"{RUN}/run.json",
        policy=f"{RUN}/policy",
    output:
        f"{RUN}/evaluation.parquet",
    params:
        code=code_of("rail.evaluate", "rail.envs.{benchmark}"),
        config=evaluation_config,
        run=subpath(input.run, parent=True),
    log:
        f"{LOGS}/evaluate/{{benchmark}}/{{method}}/seed{{seed}}.log",
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(15),
    shell:
        "rail evaluate {CONFIGS} --benchmark {wildcards.benchmark} --method {wildcards.method} "
        "--seed {wildcards.seed} --run {params.run} --out {output} > {log} 2>&1"
