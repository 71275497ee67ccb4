# Every metric of a cell, computed from its measurements.
rule metrics:
    input:
        code=CODE("metrics", metrics=PARAMETERS.metrics),
        source=PATHS.measured_source,
        derived=PATHS.measured,
        target=PATHS.measured_target.format(dataset=GRAPH.train_on),
        attributes=GRAPH.only(GRAPH.attributed, PATHS.attributes),
        attempts=GRAPH.only(GRAPH.attempted, PATHS.measured_attempts),
        key_attacks=GRAPH.only(GRAPH.key_attacked, PATHS.key_attacks),
        answers=GRAPH.only(ATTACKERS.cells, PATHS.answers),
        twins=GRAPH.only(ATTACKERS.cells, PATHS.twins),
    output:
        PATHS.metrics,
    log:
        f"{LOGS}/metrics/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/metrics/{CELL}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=GRAPH.knobs(
            *[f"metrics.{name}" for name in PARAMETERS.metrics],
            "matrix.calibrate_on",
            "bootstrap.draws",
        ),
    shell:
        commands.local(
            "metrics",
            "--dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}",
            "--seed {wildcards.seed} --source {input.source} --derived {input.derived}",
            "--target {input.target} --attributes {input.attributes} --attempts {input.attempts}",
            "--key_attacks {input.key_attacks} --answers {input.answers} --twins {input.twins}",
        )


# The means of all metrics in one file, which DVC lists as its metrics.
rule scores:
    input:
        code=CODE("scores"),
        metrics=GRAPH.of(GRAPH.cells, PATHS.metrics),
    output:
        PATHS.scores,
    log:
        f"{LOGS}/scores.log",
    benchmark:
        f"{BENCHMARKS}/scores.tsv"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.knobs("scale"),
    shell:
        commands.local(
            "scores",
            "--metrics {input.metrics}",
        )
