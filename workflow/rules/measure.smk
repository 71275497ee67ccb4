# Every judge measures every picture once. Each set of faces has one file of measurements.
rule measure_source:
    input:
        code=JUDGES.code("measure"),
        faces=with_index(PATHS.faces),
        backbones=JUDGES.checkpoints("measure"),
        weights=JUDGES.assets("measure"),
    output:
        PATHS.source_measurements,  # data/mini/measurements/synthetic_hq/source.parquet
    log:
        f"{LOGS}/measure/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/measure/{{dataset}}.tsv"
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.params_slice(*JUDGES.keys("measure"), "measure.judges", "measure.batch"),
        block="measure",
        parts=f"{PARAMETERS.matrix.calibrate_on},test,gallery",
    shell:
        submission.run_here(
            "measure",
            "--faces {input.faces[0]} --backbones {input.backbones}",
            "--block {params.block} --parts {params.parts}",
        )


# Pictures of the people that methods learn from, for Frechet distances to them.
use rule measure_source as measure_target with:
    input:
        code=JUDGES.code("target"),
        faces=with_index(PATHS.faces),
        backbones=JUDGES.checkpoints("target"),
        weights=JUDGES.assets("target"),
    output:
        PATHS.target_measurements,  # data/mini/measurements/synthetic_hq/target.parquet
    log:
        f"{LOGS}/measure_target/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/measure_target/{{dataset}}.tsv"
    params:
        cfg=GRAPH.params_slice(*JUDGES.keys("target"), "target.judges", "target.pictures", "measure.batch"),
        block="target",
        parts="methods",


rule measure:
    input:
        code=JUDGES.code("measure"),
        faces=with_index(PATHS.anonymized),
        source=with_index(PATHS.faces),
        backbones=JUDGES.checkpoints("measure"),
        weights=JUDGES.assets("measure"),
    output:
        PATHS.measurements,  # data/mini/measurements/synthetic_hq/falco/m_0/0.parquet
    log:
        f"{LOGS}/measure/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/measure/{CELL}.tsv"
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.params_slice(*JUDGES.keys("measure"), "measure.judges", "measure.batch"),
        block="measure",
    shell:
        submission.run_here(
            "measure",
            "--faces {input.faces[0]} --source {input.source[0]} --backbones {input.backbones}",
            "--block {params.block} --parts test",
        )
