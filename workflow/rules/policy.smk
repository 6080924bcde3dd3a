# The initial policies: trained on scripted demonstrations that are executed for real.


# The compiled decoder, before anything samples; without a compiler torch decodes. A job on another
# machine builds its own, so a newer file here reruns nothing.
rule kernel:
    output:
        f"{RESULTS}/kernel.json",
    log:
        f"{LOGS}/kernel.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        code=code_of("rail.policy.kernel.build"),
    shell:
        "python -m rail kernel --out {output} > {log} 2>&1"


rule warmstart:
    input:
        kernel=ancient(rules.kernel.output),
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
