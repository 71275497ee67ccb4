# One archive for each cell: the test split of a dataset, anonymized. Networks do so where the GPUs are.
rule anonymize_neural:
    input:
        code=method_code("anonymize"),
        faces=indexed(FACES),
        checkpoint=checkpoint_of,
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        gallery=lambda w: resources_of(w.method, w.dataset)["gallery"],
        fakes=lambda w: resources_of(w.method, w.dataset)["fakes"],
        latents=lambda w: resources_of(w.method, w.dataset)["latents"],
    output:
        indexed(ANONYMIZED),
    log:
        f"logs/{SCALE}/anonymize/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/anonymize/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    wildcard_constraints:
        method=one_of(NEURAL),
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=P(
            "methods.{method}.params",
            "methods.{method}.ablations.{variant}?",
            "methods.{method}.variants.{variant}",
            "measure.batch",
        ),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/anonymize.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --split test --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --faces {input.faces[0]} --checkpoint {input.checkpoint} --backbones {input.backbones}"
        " --gallery {input.gallery} --fakes {input.fakes} --latents {input.latents} --outputs {output} > {log} 2>&1"


# The methods that a processor computes at once.
use rule anonymize_neural as anonymize with:
    wildcard_constraints:
        method=one_of({*PARAMETERS.methods} - NEURAL),
    group:
        "anonymize"
    localrule: False
    resources:
        **LIGHT,
        launcher="in_process",
        submission="{}",


# The pictures that another program made of the same faces, held against their originals.
rule imported:
    input:
        code=lambda w: code("imported"),
        faces=indexed(FACES),
        pictures=IMPORTED,
    output:
        indexed(ANONYMIZED),
    log:
        f"logs/{SCALE}/imported/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/imported/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    wildcard_constraints:
        method=one_of(PARAMETERS.imported),
    group:
        "anonymize"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=P("imported.{method}.variants.{variant}.{dataset}", "imported.{method}.source"),
    shell:
        "python workflow/scripts/imported.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}"
        " --seed {wildcards.seed} --faces {input.faces[0]} --pictures {input.pictures}"
        " --outputs {output} > {log} 2>&1"


# The part of the train split from which attributes are learnt.
rule anonymize_train:
    input:
        code=method_code("anonymize"),
        faces=indexed(FACES),
        checkpoint=checkpoint_of,
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        gallery=lambda w: resources_of(w.method, w.dataset)["gallery"],
        fakes=lambda w: resources_of(w.method, w.dataset)["fakes"],
        latents=lambda w: resources_of(w.method, w.dataset)["latents"],
    output:
        indexed(ANONYMIZED_TRAIN),
    log:
        f"logs/{SCALE}/anonymize_train/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/anonymize_train/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=P(
            "methods.{method}.params",
            "methods.{method}.ablations.{variant}?",
            "methods.{method}.variants.{variant}",
            "measure.batch",
            "attributes.train_pictures",
        ),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/anonymize.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --split train --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --faces {input.faces[0]} --checkpoint {input.checkpoint} --backbones {input.backbones}"
        " --gallery {input.gallery} --fakes {input.fakes} --latents {input.latents} --outputs {output} > {log} 2>&1"
