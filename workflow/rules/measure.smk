# Every judge measures every picture once. Each set of faces has one file of measurements.
rule measure_source:
    input:
        code=lambda w: GRAPH.judges_code("measure"),
        faces=with_index(PATHS.faces),
        backbones=GRAPH.checkpoints(GRAPH.judges_need("measure")),
        weights=lambda w: GRAPH.judge_assets(GRAPH.judges("measure")),
    output:
        PATHS.measured_source,
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
        cfg=GRAPH.knobs(*GRAPH.judge_knobs("measure"), "measure.judges", "measure.batch", name="measure"),
        parts=f"{PARAMETERS.matrix.calibrate_on},test",
    shell:
        commands.local(
            "measure",
            "--faces {input.faces[0]} --backbones {input.backbones} --parts {params.parts}",
        )


# Pictures of the people that methods learn from, for Frechet distances to them.
use rule measure_source as measure_target with:
    input:
        code=lambda w: GRAPH.judges_code("target"),
        faces=with_index(PATHS.faces),
        backbones=GRAPH.checkpoints(GRAPH.judges_need("target")),
        weights=lambda w: GRAPH.judge_assets(GRAPH.judges("target")),
    output:
        PATHS.measured_target,
    log:
        f"{LOGS}/measure_target/{{dataset}}.log",
    benchmark:
        f"{BENCHMARKS}/measure_target/{{dataset}}.tsv"
    params:
        cfg=GRAPH.knobs(
            *GRAPH.judge_knobs("target"), "target.judges", "target.pictures", "measure.batch", name="measure_target"
        ),
        parts="methods",


rule measure:
    input:
        code=lambda w: GRAPH.judges_code("measure"),
        faces=with_index(PATHS.anonymized),
        source=with_index(PATHS.faces),
        backbones=GRAPH.checkpoints(GRAPH.judges_need("measure")),
        weights=lambda w: GRAPH.judge_assets(GRAPH.judges("measure")),
    output:
        PATHS.measured,
    log:
        f"{LOGS}/measure/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/measure/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    group:
        "cells_{method}_{seed}"
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.knobs(*GRAPH.judge_knobs("measure"), "measure.judges", "measure.batch", name="measure"),
    shell:
        commands.local(
            "measure",
            "--faces {input.faces[0]} --source {input.source[0]} --backbones {input.backbones}",
            "--parts test",
        )
