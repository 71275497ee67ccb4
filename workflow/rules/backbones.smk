# Frozen networks by role, trained on the faces of the scale, each with its quality and a floor under it.
rule backbone:
    input:
        code=lambda w: code(f"backbone.{w.backbone}", *modules("backbones", [w.backbone, *built_on(w.backbone)])),
        faces=indexed(FACES.format(dataset=PARAMETERS.matrix.train_on)),
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in built_on(w.backbone)],
        published=lambda w: published(w.backbone),
    output:
        checkpoint=BACKBONE,
        quality=QUALITY,
    log:
        f"logs/{SCALE}/backbones/{{backbone}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/backbones/{{backbone}}.tsv"
    # what most other jobs wait for goes first
    priority: 3
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["backbone"]
    resources:
        **submitted("training", lambda w: w.backbone, "backbone"),
    params:
        cfg=P("backbones.{backbone}", "data_seed"),
        state=f".masquerade/state/{SCALE}/backbones/{{backbone}}.pt",
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/backbone.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --name {wildcards.backbone} --faces {input.faces[0]} --backbones {input.backbones}"
        " --state {params.state} --outputs {output.checkpoint} {output.quality} > {log} 2>&1"


rule backbones_table:
    input:
        code=lambda w: code("backbones"),
        qualities=[QUALITY.format(backbone=name) for name in PARAMETERS.backbones],
    output:
        BACKBONES_TABLE,
    log:
        f"logs/{SCALE}/tables/backbones.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/tables/backbones.tsv"
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=P("scale", "caution"),
    shell:
        "python workflow/scripts/backbones.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --qualities {input.qualities} --outputs {output} > {log} 2>&1"
