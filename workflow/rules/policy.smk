# The initial policies: trained on scripted demonstrations that are executed for real.
def warm_start_config(wildcards):
    """Return what a warm start reads, as JSON."""
    return as_json(CONFIG.policy, CONFIG.warm_start, benchmark_values(wildcards, "train"))


rule warmstart:
    output:
        directory(WARM_START),
    params:
        code=code_of("rail.policy.warmstart", "rail.envs.{benchmark}"),
        config=warm_start_config,
    log:
        f"{LOGS}/warmstarts/{{benchmark}}/warm{{warm}}.log",
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(30),
    shell:
        "rail warmstart {CONFIGS} --benchmark {wildcards.benchmark} --index {wildcards.warm} "
        "--out {output} > {log} 2>&1"


rule setup:
    localrule: True
    input:
        expand(rules.panels.output.hashes, benchmark=BENCHMARKS),
        per_warm_start(WARM_START),
