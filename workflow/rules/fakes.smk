# Faces of nobody: codes and features of the whole set in one file.
rule fakes:
    input:
        code=lambda w: code("fakes", *modules("backbones", ["generator", "semantics"])),
        backbones=[BACKBONE.format(backbone=name) for name in ("generator", "semantics")],
    output:
        FAKES,
    log:
        f"logs/{SCALE}/fakes.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/fakes.tsv"
    # what most other jobs wait for goes first
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["anonymize"]
    resources:
        **submitted("inference", "fakes", "anonymize"),
    params:
        cfg=P("fakes", "data_seed"),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/fakes.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --backbones {input.backbones} --outputs {output} > {log} 2>&1"
