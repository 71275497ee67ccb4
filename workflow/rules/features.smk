# The features into which a method separates the test faces, for figures that show how they cluster.
rule features:
    input:
        unpack(METHODS.files),
        code=METHODS.code("features"),
        faces=with_index(PATHS.faces),
    output:
        PATHS.features,  # data/mini/features/synthetic_hq/lreorg/default/0.parquet
    log:
        f"{LOGS}/features/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/features/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.params_slice(*VARIANT_KEYS, "measure.batch"),
    shell:
        submission.run_launched(
            "features",
            "--faces {input.faces[0]}",
            submission.METHOD_OPTIONS,
        )
