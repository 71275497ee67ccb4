# Every metric of a cell, computed from its measurements.
rule evaluate:
    input:
        code=CODE("evaluate", metrics=PARAMETERS.metrics),
        source=PATHS.source_measurements,
        derived=PATHS.measurements,
        target=PATHS.target_measurements.format(dataset=GRAPH.train_on),
        attributes=GRAPH.only(GRAPH.attributed, PATHS.attributes),
        recoveries=GRAPH.only(GRAPH.attempted, PATHS.recovery_measurements),
        key_attacks=GRAPH.only(GRAPH.key_attacked, PATHS.key_attacks),
        attack_results=GRAPH.only(ATTACKERS.cells, PATHS.attack_results),
        downstream_utility=GRAPH.only(ATTACKERS.cells, PATHS.downstream_utility),
        distractors=PATHS.distractors if PARAMETERS.distractors.count else [],
    output:
        PATHS.metrics,  # results/mini/metrics/synthetic_hq/falco/m_0/0.json
    log:
        f"{LOGS}/evaluate/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/evaluate/{CELL}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=GRAPH.params_slice(
            *[f"metrics.{name}" for name in PARAMETERS.metrics],
            "matrix.calibrate_on",
            "bootstrap.draws",
        ),
    shell:
        submission.run_here(
            "evaluate",
            "--dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}",
            "--seed {wildcards.seed} --source {input.source} --derived {input.derived}",
            "--target {input.target} --attributes {input.attributes} --recoveries {input.recoveries}",
            "--key_attacks {input.key_attacks} --attack_results {input.attack_results} --downstream_utility {input.downstream_utility}",
            "--distractors {input.distractors}",
        )


# The means of all metrics in one file, which DVC lists as its metrics.
rule scores:
    input:
        code=CODE("scores"),
        metrics=GRAPH.of(GRAPH.cells, PATHS.metrics),
    output:
        PATHS.scores,  # results/mini/scores.json
    log:
        f"{LOGS}/scores.log",
    benchmark:
        f"{BENCHMARKS}/scores.tsv"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.params_slice("scale"),
    shell:
        submission.run_here(
            "scores",
            "--metrics {input.metrics}",
        )
