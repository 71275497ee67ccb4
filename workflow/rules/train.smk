# Each method that trains has one checkpoint for each seed. All its variants share it. It may be adopted from weights/.
rule method:
    input:
        code=METHODS.code("train"),
        faces=with_index(PATHS.faces.format(dataset=GRAPH.train_on)),
        backbones=lambda w: BACKBONES.checkpoints(METHODS.needs(w.method)),
        base=METHODS.shared_checkpoint,
        published=METHODS.weights,
    output:
        PATHS.method,  # checkpoints/mini/methods/riddle/0.safetensors
    log:
        f"{LOGS}/train/{{method}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/train/{{method}}/{{seed}}.tsv"
    # most other jobs wait for this one
    priority: 2
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["train"]
    resources:
        **submitted("training", lambda w: w.method, "train"),
    params:
        cfg=GRAPH.params_slice("methods.{method}.params", "methods.{method}.published"),
        ablation="",
        state=f"{PATHS.states}/methods/{{method}}/{{seed}}.pt",
    shell:
        submission.run_launched(
            "train",
            "--method {wildcards.method} --ablation {params.ablation:q} --seed {wildcards.seed} --faces {input.faces[0]}",
            "--backbones {input.backbones} --base {input.base} --state {params.state}",
        )


# A training with the other parameters of one ablation (params.yaml, `ablations`).
use rule method as ablation with:
    input:
        code=METHODS.code("train"),
        faces=with_index(PATHS.faces.format(dataset=GRAPH.train_on)),
        backbones=lambda w: BACKBONES.checkpoints(METHODS.needs(w.method)),
        base=PATHS.method,
        published=METHODS.weights,
    output:
        PATHS.ablation,  # checkpoints/mini/ablations/ifadit/without_div/0.safetensors
    log:
        f"{LOGS}/ablate/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/ablate/{{method}}/{{variant}}/{{seed}}.tsv"
    priority: 1
    localrule: True
    params:
        cfg=GRAPH.params_slice(
            "methods.{method}.params",
            "methods.{method}.published_ablations.{variant}?",
            "methods.{method}.ablations.{variant}",
        ),
        ablation=lambda w: w.variant,
        state=f"{PATHS.states}/ablations/{{method}}/{{variant}}/{{seed}}.pt",
