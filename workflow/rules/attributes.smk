# FALCO's attribute protocol: a classifier learns from anonymized faces and is tested on real faces.
rule pseudo_labels:
    input:
        code=CODE("pseudo_labels"),
        train=PATHS.faces.format(dataset=GRAPH.train_on),
        faces=GRAPH.of_datasets(GRAPH.attribute_datasets, PATHS.faces),
        indexes=[index(archive) for archive in GRAPH.of_datasets(GRAPH.attribute_datasets, PATHS.faces)],
    output:
        labels=PATHS.pseudo_labels,  # data/mini/attributes/pseudo_labels.parquet
        quality=PATHS.pseudo_label_quality,  # results/mini/attributes/pseudo_labels.json
    log:
        f"{LOGS}/attributes/pseudo_labels.log",
    benchmark:
        f"{BENCHMARKS}/attributes/pseudo_labels.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["backbone"]
    resources:
        **submitted("inference", "pseudo_labels", "backbone"),
    params:
        cfg=GRAPH.params_slice(*list_protocol_keys("attributes"), "data_seed"),
    shell:
        submission.run_launched(
            "pseudo_labels",
            "--train {input.train} --faces {input.faces}",
            outputs="{output.labels} {output.quality}",
        )


rule attributes:
    input:
        code=CODE("attributes"),
        anonymized=lambda w: with_index(
            (PATHS.anonymized_train if GRAPH.has_train_split(w.dataset) else PATHS.anonymized).format(**dict(w))
        ),
        faces=with_index(PATHS.faces),
        pseudo=PATHS.pseudo_labels,
    output:
        PATHS.attributes,  # data/mini/attributes/synthetic_hq/falco/m_0/0.parquet
    log:
        f"{LOGS}/attributes/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/attributes/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **submitted("inference", "attributes", "measure"),
    params:
        cfg=GRAPH.params_slice(*list_protocol_keys("attributes")),
        split=lambda w: "train" if GRAPH.has_train_split(w.dataset) else "test",
    shell:
        submission.run_launched(
            "attributes",
            "--anonymized {input.anonymized[0]} --faces {input.faces[0]} --pseudo {input.pseudo}",
            "--split {params.split} --seed {wildcards.seed}",
        )
