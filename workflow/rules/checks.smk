# Difficulty bands and headroom of each warm start, before any method is compared.
CHECKS = f"{RESULTS}/checks/{{benchmark}}/warm{{warm}}"


def check_config(wildcards):
    """Return what a check reads, as JSON."""
    return as_json(CONFIG.checks, CONFIG.policy, benchmark_values(wildcards, "bands"))


rule bands:
    input:
        policy=rules.warmstart.output,
    output:
        f"{CHECKS}/bands.json",
    params:
        code=code_of("rail.checks", "rail.envs.{benchmark}"),
        config=check_config,
    log:
        f"{LOGS}/checks/{{benchmark}}/warm{{warm}}.bands.log",
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(15),
    shell:
        "rail {rule} {CONFIGS} --benchmark {wildcards.benchmark} --policy {input.policy} "
        "--out {output} > {log} 2>&1"


use rule bands as headroom with:
    output:
        f"{CHECKS}/headroom.json",
    log:
        f"{LOGS}/checks/{{benchmark}}/warm{{warm}}.headroom.log",


rule checks:
    localrule: True
    input:
        per_warm_start(rules.bands.output),
        per_warm_start(rules.headroom.output),
