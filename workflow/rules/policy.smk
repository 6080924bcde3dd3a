# The initial policies: trained on scripted demonstrations that are executed for real.


rule warmstart:
    output:
        directory(WARM_START),
    log:
        f"{LOGS}/warmstarts/{{benchmark}}/warm{{warm}}.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(30),
    params:
        code=code_of("rail.policy.warmstart", "rail.envs.{benchmark}"),
        config=warm_start_config,
    shell:
        "python -m rail warmstart --benchmark {wildcards.benchmark} --index {wildcards.warm} "
        "--out {output} > {log} 2>&1"


rule setup:
    input:
        expand(rules.panels.output.hashes, benchmark=BENCHMARKS),
        per_warm_start(WARM_START),
    localrule: True
