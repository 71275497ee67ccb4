# The faces that invertible methods recover: with the right key and with wrong keys; and attacks.
rule recover:
    input:
        unpack(GRAPH.method_inputs),
        code=GRAPH.method_code("recover"),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
    output:
        with_index(PATHS.attempts),
    log:
        f"{LOGS}/recover/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/recover/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
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
            *GRAPH.recovery_knobs,
            "recovery.own.{method}.{variant}?",
            name="recover.{method}.{variant}",
        ),
    shell:
        commands.launched(
            "recover",
            "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]}",
            commands.METHOD_OPTIONS,
        )


use rule measure as measure_attempts with:
    input:
        code=lambda w: GRAPH.judges_code("recovery"),
        faces=with_index(PATHS.attempts),
        source=with_index(PATHS.faces),
        backbones=GRAPH.checkpoints(GRAPH.judges_need("recovery")),
        weights=lambda w: GRAPH.judge_assets(GRAPH.judges("recovery")),
    output:
        PATHS.measured_attempts,
    log:
        f"{LOGS}/measure_attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/measure_attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    params:
        cfg=GRAPH.knobs(*GRAPH.judge_knobs("recovery"), "recovery.judges", "measure.batch", name="measure_attempts"),


rule attack:
    input:
        unpack(GRAPH.method_inputs),
        code=lambda w: GRAPH.code(
            f"attack.{w.method}",
            *GRAPH.modules("methods", [w.method]),
            *GRAPH.modules("judges", [PARAMETERS.attacks.judge]),
            *GRAPH.modules("backbones", {*GRAPH.needs(w.method), *GRAPH.attacker.needs}),
        ),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
        source=PATHS.measured_source,
        judged=GRAPH.checkpoints(GRAPH.attacker.needs),
        weights=lambda w: GRAPH.judge_assets([PARAMETERS.attacks.judge]),
    output:
        PATHS.attacks,
    log:
        f"{LOGS}/attack/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/attack/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
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
            "matrix.calibrate_on",
            "bootstrap.draws",
            f"judges.{PARAMETERS.attacks.judge}",
            *GRAPH.attack_knobs,
            name="attack.{method}.{variant}",
        ),
    shell:
        commands.launched(
            "attack",
            "--dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}",
            "--seed {wildcards.seed} --faces {input.faces[0]} --anonymized {input.anonymized[0]}",
            "--source {input.source}",
            "--judged {input.judged}",
            commands.METHOD_OPTIONS,
        )
