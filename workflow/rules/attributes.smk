# FALCO's attribute protocol: learnt from anonymized faces, tested on real ones.
rule pseudo_labels:
    input:
        code=lambda w: code("pseudo_labels"),
        train=FACES.format(dataset=PARAMETERS.matrix.train_on),
        faces=[FACES.format(dataset=name) for name in ATTRIBUTE_DATASETS],
        indexes=[indexed(FACES.format(dataset=name))[1] for name in ATTRIBUTE_DATASETS],
    output:
        labels=PSEUDO_LABELS,
        quality=f"{RESULTS}/attributes/pseudo_labels.json",
    log:
        f"logs/{SCALE}/attributes/pseudo_labels.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/attributes/pseudo_labels.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["backbone"]
    resources:
        **submitted("inference", "pseudo_labels", "backbone"),
    params:
        cfg=P(*[f"attributes.{name}" for name in LEARNING], "data_seed"),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/pseudo_labels.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --train {input.train} --faces {input.faces} --outputs {output.labels} {output.quality} > {log} 2>&1"


rule attributes:
    input:
        code=lambda w: code("attributes"),
        anonymized=lambda w: indexed((ANONYMIZED_TRAIN if own_train(w.dataset) else ANONYMIZED).format(**dict(w))),
        faces=indexed(FACES),
        pseudo=PSEUDO_LABELS,
    output:
        ATTRIBUTES,
    log:
        f"logs/{SCALE}/attributes/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/attributes/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["measure"]
    resources:
        **submitted("inference", "attributes", "measure"),
    params:
        cfg=P(*[f"attributes.{name}" for name in LEARNING]),
        split=lambda w: "train" if own_train(w.dataset) else "test",
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/attributes.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --anonymized {input.anonymized[0]} --faces {input.faces[0]} --pseudo {input.pseudo} --split {params.split}"
        " --seed {wildcards.seed} --outputs {output} > {log} 2>&1"
