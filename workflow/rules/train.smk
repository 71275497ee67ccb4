# One checkpoint for each method that trains and each seed; all variants share it.
rule method:
    input:
        code=method_code("train"),
        faces=indexed(FACES.format(dataset=PARAMETERS.matrix.train_on)),
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        base=kin_of,
    output:
        CHECKPOINT,
    log:
        f"logs/{SCALE}/train/{{method}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/train/{{method}}/{{seed}}.tsv"
    # what most other jobs wait for goes first
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["train"]
    resources:
        **submitted("training", lambda w: w.method, "train"),
    params:
        cfg=P("methods.{method}.params"),
        state=f".masquerade/state/{SCALE}/methods/{{method}}/{{seed}}.pt",
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/train.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --method {wildcards.method} --seed {wildcards.seed} --faces {input.faces[0]}"
        " --backbones {input.backbones} --base {input.base} --state {params.state}"
        " --outputs {output} > {log} 2>&1"


# A training of the same module with other knobs (params.yaml, `ablations`), for one variant.
rule ablation:
    input:
        code=method_code("train"),
        faces=indexed(FACES.format(dataset=PARAMETERS.matrix.train_on)),
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        base=CHECKPOINT,
    output:
        ABLATED,
    log:
        f"logs/{SCALE}/ablate/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/ablate/{{method}}/{{variant}}/{{seed}}.tsv"
    # what most other jobs wait for goes first
    priority: 1
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["train"]
    resources:
        **submitted("training", lambda w: w.method, "train"),
    params:
        cfg=P("methods.{method}.params", "methods.{method}.ablations.{variant}"),
        state=f".masquerade/state/{SCALE}/ablations/{{method}}/{{variant}}/{{seed}}.pt",
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/train.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --method {wildcards.method} --ablation {wildcards.variant} --seed {wildcards.seed} --faces {input.faces[0]}"
        " --backbones {input.backbones} --base {input.base} --state {params.state}"
        " --outputs {output} > {log} 2>&1"
