# Each dataset has one archive of faces.
rule faces:
    input:
        code=CODE("data.{dataset}", faces=["{dataset}"]),
        sources=lambda w: GRAPH.sources(w.dataset),
    output:
        with_index(PATHS.faces),  # data/mini/faces/synthetic_hq.zip
    log:
        f"{LOGS}/faces/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/faces/{{dataset}}.tsv"
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["data"]
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.params_slice("datasets.{dataset}", "image.size", "data_seed", "people"),
    shell:
        submission.run_here(
            "data",
            "--dataset {wildcards.dataset}",
        )
