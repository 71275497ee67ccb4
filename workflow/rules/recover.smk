# The faces that invertible methods recover: with the right key and with wrong keys; and attacks.
rule recover:
    input:
        unpack(METHODS.files),
        code=METHODS.code("recover"),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
    output:
        with_index(PATHS.recoveries),  # data/mini/recoveries/synthetic_hq/cao21/d_9/0.zip
    log:
        f"{LOGS}/recover/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/recover/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.params_slice(
            *VARIANT_KEYS,
            "measure.batch",
            *list_protocol_keys("recovery"),
        ),
    shell:
        submission.run_launched(
            "recover",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]}",
            submission.METHOD_OPTIONS,
        )


use rule measure as measure_recoveries with:
    input:
        code=JUDGES.code("recovery"),
        faces=with_index(PATHS.recoveries),
        source=with_index(PATHS.faces),
        backbones=JUDGES.checkpoints("recovery"),
        weights=JUDGES.assets("recovery"),
    output:
        PATHS.recovery_measurements,  # data/mini/measurements_of_recoveries/synthetic_hq/cao21/d_9/0.parquet
    log:
        f"{LOGS}/measure_recoveries/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/measure_recoveries/{CELL}.tsv"
    params:
        cfg=GRAPH.params_slice(*JUDGES.keys("recovery"), "recovery.judges", "measure.batch"),
        block="recovery",


# Attacks on keys, which need no training.
rule key_attacks:
    input:
        unpack(METHODS.files),
        code=CODE(
            "key_attacks.{method}",
            methods=["{method}"],
            judges=JUDGES.names("attacks"),
            backbones=lambda w: dict.fromkeys([*METHODS.needs(w.method), *JUDGES.needs("attacks")]),
        ),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
        source=PATHS.source_measurements,
        judged=JUDGES.checkpoints("attacks"),
        weights=JUDGES.assets("attacks"),
    output:
        PATHS.key_attacks,  # results/mini/attacks/synthetic_hq/cao21/d_9/0.json
    log:
        f"{LOGS}/attack/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/attack/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.params_slice(
            *VARIANT_KEYS,
            "matrix.calibrate_on",
            "bootstrap.draws",
            *JUDGES.keys("attacks"),
            *list_protocol_keys("attacks"),
        ),
    shell:
        submission.run_launched(
            "key_attacks",
            "--dataset {wildcards.dataset} --faces {input.faces[0]} --anonymized {input.anonymized[0]}",
            "--source {input.source} --judged {input.judged}",
            submission.METHOD_OPTIONS,
        )
