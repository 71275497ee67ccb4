# The set of generated faces: their codes and features in one file.
rule fakes:
    input:
        code=CODE("fakes", backbones=["generator", "semantics"]),
        backbones=BACKBONES.checkpoints(["generator", "semantics"]),
        published=BACKBONES.drawn("fakes"),
    output:
        PATHS.fakes,  # data/mini/fakes.safetensors
    log:
        f"{LOGS}/fakes.log",
    benchmark:
        f"{BENCHMARKS}/fakes.tsv"
    # most other jobs wait for this one
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", "fakes", "anonymize"),
    params:
        cfg=GRAPH.params_slice("fakes", "data_seed"),
    shell:
        submission.run_launched(
            "fakes",
            "--backbones {input.backbones}",
        )


# What recognizers say of many generated faces, which enlarge a gallery.
rule distractors:
    input:
        JUDGES.assets("distractors"),
        code=CODE(
            "distractors", backbones=["generator", *JUDGES.needs("distractors")], judges=JUDGES.names("distractors")
        ),
        backbones=BACKBONES.checkpoints(dict.fromkeys(["generator", *JUDGES.needs("distractors")])),
        published=BACKBONES.drawn("distractors"),
    output:
        PATHS.distractors,  # data/mini/distractors.safetensors
    log:
        f"{LOGS}/distractors.log",
    benchmark:
        f"{BENCHMARKS}/distractors.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", "distractors", "anonymize"),
    params:
        cfg=GRAPH.params_slice("distractors", "data_seed", *JUDGES.keys("distractors")),
    shell:
        submission.run_launched(
            "distractors",
            "--backbones {input.backbones}",
        )


# The codes of real faces: every face of a dataset is inverted once, into one file.
rule invert:
    input:
        code=CODE("invert", backbones=LATENT_BACKBONES),
        faces=with_index(PATHS.faces),
        backbones=BACKBONES.checkpoints(LATENT_BACKBONES),
    output:
        PATHS.latents,  # data/mini/latents/synthetic_hq.safetensors
    log:
        f"{LOGS}/latents/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/latents/{{dataset}}.tsv"
    # most other jobs wait for this one
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", "invert", "anonymize"),
    params:
        cfg=GRAPH.params_slice("scale"),
    shell:
        submission.run_launched(
            "invert",
            "--faces {input.faces[0]} --backbones {input.backbones}",
        )
