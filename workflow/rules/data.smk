# Each dataset has one archive of faces.
rule faces:
    input:
        code=lambda w: GRAPH.code(f"data.{w.dataset}", *GRAPH.modules("faces", [w.dataset])),
        sources=lambda w: GRAPH.sources(w.dataset),
    output:
        with_index(PATHS.faces),
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
        cfg=GRAPH.knobs("datasets.{dataset}", "image.size", "data_seed", "people", name="faces.{dataset}"),
    shell:
        commands.local(
            "data",
            "--dataset {wildcards.dataset}",
        )
