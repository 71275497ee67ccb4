# The features into which a method separates the test faces, for figures that show how they cluster.
rule features:
    input:
        unpack(GRAPH.method_inputs),
        code=GRAPH.method_code("features"),
        faces=with_index(PATHS.faces),
    output:
        PATHS.features,
    log:
        f"{LOGS}/features/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/features/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.knobs(
            *GRAPH.variant_knobs,
            "measure.batch",
            name="anonymize.{method}.{variant}",
        ),
    shell:
        commands.launched(
            "features",
            "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]}",
            commands.METHOD_OPTIONS,
        )
