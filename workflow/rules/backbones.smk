# Frozen networks by role. Each is trained on the faces of the scale, and stops the build if its quality is below a floor.
rule backbone:
    input:
        code=CODE("backbone.{backbone}", backbones=lambda w: [w.backbone, *BACKBONES.needs(w.backbone)]),
        faces=with_index(PATHS.faces.format(dataset=GRAPH.train_on)),
        backbones=lambda w: BACKBONES.checkpoints(BACKBONES.needs(w.backbone)),
        published=lambda w: BACKBONES.published(w.backbone),
    output:
        checkpoint=PATHS.backbone,  # checkpoints/mini/backbones/generator.safetensors
        quality=PATHS.backbone_quality,  # checkpoints/mini/backbones/generator.json
    log:
        f"{LOGS}/backbones/{{backbone}}.log",
    benchmark:
        f"{BENCHMARKS}/backbones/{{backbone}}.tsv"
    # most other jobs wait for this one
    priority: 3
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["backbone"]
    resources:
        **submitted("training", lambda w: w.backbone, "backbone"),
    params:
        cfg=GRAPH.params_slice("backbones.{backbone}", "data_seed"),
        state=f"{PATHS.states}/backbones/{{backbone}}.pt",
    shell:
        submission.run_launched(
            "backbone",
            "--name {wildcards.backbone} --faces {input.faces[0]} --backbones {input.backbones}",
            "--state {params.state}",
            outputs="{output.checkpoint} {output.quality}",
        )


rule backbones_table:
    input:
        code=CODE("backbones_table"),
        qualities=[PATHS.backbone_quality.format(backbone=name) for name in PARAMETERS.backbones],
    output:
        PATHS.backbones_table,  # results/mini/tables/backbones.md
    log:
        f"{LOGS}/tables/backbones.log",
    benchmark:
        f"{BENCHMARKS}/tables/backbones.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=GRAPH.params_slice("scale", "caution", *METHODS.published_keys),
    shell:
        submission.run_here(
            "backbones_table",
            "--qualities {input.qualities}",
        )
