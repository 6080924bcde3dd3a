include: "workflow/Snakefile"


# An include never hands on its default target: without this rule nothing would run.
rule reproduce:
    default_target: True
    input:
        rules.all.input,
    localrule: True
