# Difficulty bands and headroom of each warm start, before any method is compared.


rule bands:
    input:
        policy=rules.warmstart.output,
    output:
        f"{CHECKS}/bands.json",
    log:
        f"{LOGS}/checks/{{benchmark}}/warm{{warm}}.bands.log",
    conda:
        ENVIRONMENT
    threads: 1
    resources:
        mem_mb=1500,
        runtime=minutes(15),
    params:
        verb="bands",
        code=code_of("rail.checks.bands", "rail.envs.{benchmark}"),
        config=check_config,
    shell:
        "python -m rail {params.verb} --benchmark {wildcards.benchmark} --policy {input.policy} "
        "--out {output} > {log} 2>&1"


use rule bands as headroom with:
    output:
        f"{CHECKS}/headroom.json",
    log:
        f"{LOGS}/checks/{{benchmark}}/warm{{warm}}.headroom.log",
    params:
        verb="headroom",
        code=code_of("rail.checks.headroom", "rail.envs.{benchmark}"),
        config=check_config,


rule checks:
    input:
        per_warm_start(rules.bands.output),
        per_warm_start(rules.headroom.output),
    localrule: True
