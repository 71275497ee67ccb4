# Codes of real faces: every face of a dataset inverted once, in one file.
rule invert:
    input:
        code=lambda w: code("invert", *modules("backbones", WORLD)),
        faces=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in WORLD],
    output:
        LATENTS,
    log:
        f"logs/{SCALE}/latents/{{dataset}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/latents/{{dataset}}.tsv"
    # what most other jobs wait for goes first
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["anonymize"]
    resources:
        **submitted("inference", "invert", "anonymize"),
    params:
        cfg=P("scale"),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/invert.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --backbones {input.backbones} --outputs {output} > {log} 2>&1"
