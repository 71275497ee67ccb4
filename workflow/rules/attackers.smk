# Attackers who know the method: their own pictures, their trainings, their attacks on the tested people.
use rule anonymize_neural as anonymize_attackers with:
    input:
        unpack(METHODS.files),
        code=METHODS.code("anonymize_attackers"),
        faces=with_index(PATHS.faces),
    output:
        with_index(PATHS.attackers_faces),  # data/mini/attackers/per_image/synthetic_hq/cao21/d_9/0.zip
    log:
        f"{LOGS}/anonymize_attackers/{{key_kind}}/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/anonymize_attackers/{{key_kind}}/{CELL}.tsv"
    wildcard_constraints:
        method=match_any(PARAMETERS.methods),
        key_kind="per_image|shared",
    localrule: True
    params:
        cfg=GRAPH.params_slice(
            *VARIANT_KEYS,
            "measure.batch",
            "informed.people",
            "informed.pictures",
            "informed.linked",
            "informed.overrides.{method}.{variant}?",
        ),
        program="anonymize_attackers",


# Each attacker that learns has one training for each cell, and several for some.
rule attacker:
    input:
        code=CODE("attacker.{attacker}", attackers=["{attacker}"], backbones=lambda w: ATTACKERS.needs([w.attacker])),
        faces=with_index(PATHS.faces),
        anonymized=ATTACKERS.faces,
        backbones=lambda w: BACKBONES.checkpoints(ATTACKERS.needs([w.attacker])),
    output:
        checkpoint=PATHS.attacker,  # checkpoints/mini/attackers/adapted/synthetic_hq/cao21/d_9/0/0.safetensors
        quality=PATHS.attacker_quality,  # checkpoints/mini/attackers/adapted/synthetic_hq/cao21/d_9/0/0.json
    log:
        f"{LOGS}/attackers/{{attacker}}/{CELL}/{{trial}}.log",
    benchmark:
        f"{BENCHMARKS}/attackers/{{attacker}}/{CELL}/{{trial}}.tsv"
    wildcard_constraints:
        attacker=match_any(PARAMETERS.attackers),
        trial=r"\d+",
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["train"]
    resources:
        **submitted("training", lambda w: w.attacker, "train"),
    params:
        cfg=GRAPH.params_slice("attackers.{attacker}", *list_protocol_keys("informed")),
        state=f"{PATHS.states}/attackers/{{attacker}}/{CELL}/{{trial}}.pt",
    shell:
        submission.run_launched(
            "attacker",
            "--attacker {wildcards.attacker} --method {wildcards.method} --variant {wildcards.variant}",
            "--seed {wildcards.seed} --trial {wildcards.trial} --faces {input.faces[0]}",
            "--anonymized {input.anonymized[0]} --backbones {input.backbones} --state {params.state}",
            outputs="{output.checkpoint} {output.quality}",
        )


# What every attacker finds out about every tested picture.
rule attack_results:
    input:
        code=CODE(
            "attack_results",
            attackers=PARAMETERS.attackers,
            judges=JUDGES.names("informed"),
            backbones=lambda w: dict.fromkeys([*ATTACKERS.needs(PARAMETERS.attackers), *JUDGES.needs("informed")]),
        ),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
        attackers_faces=ATTACKERS.own_faces(),
        shared_key_faces=ATTACKERS.insider_faces,
        attackers=lambda w: ATTACKERS.trained(w, PATHS.attacker),
        backbones=lambda w: BACKBONES.checkpoints(
            dict.fromkeys([*ATTACKERS.needs(ATTACKERS.of(w)), *JUDGES.needs("informed")])
        ),
        weights=JUDGES.assets("informed"),
    output:
        PATHS.attack_results,  # data/mini/attack_results/synthetic_hq/cao21/d_9/0.parquet
    log:
        f"{LOGS}/attack_results/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/attack_results/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **submitted("inference", "attack_results", "measure"),
    params:
        cfg=GRAPH.params_slice(
            *[f"attackers.{name}" for name in PARAMETERS.attackers],
            *JUDGES.keys("informed"),
            *list_protocol_keys("informed"),
        ),
        names=lambda w: ",".join(ATTACKERS.of(w)),
    shell:
        submission.run_launched(
            "attack_results",
            "--names {params.names} --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]}",
            "--attackers_faces {input.attackers_faces[0]} --shared_key_faces {input.shared_key_faces}",
            "--attackers {input.attackers} --backbones {input.backbones}",
        )


# How useful the pictures are: networks that learn from them, tested on clear pictures.
rule downstream_utility:
    input:
        code=CODE("downstream_utility", backbones=["landmarks"]),
        faces=with_index(PATHS.faces),
        anonymized=ATTACKERS.own_faces(),
    output:
        PATHS.downstream_utility,  # data/mini/downstream_utility/synthetic_hq/cao21/d_9/0.parquet
    log:
        f"{LOGS}/downstream_utility/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/downstream_utility/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["train"]
    resources:
        **submitted("training", "downstream_utility", "train"),
    params:
        cfg=GRAPH.params_slice("backbones.landmarks", *list_protocol_keys("downstream_utility")),
        state=f"{PATHS.states}/downstream_utility/{CELL}.pt",
    shell:
        submission.run_launched(
            "downstream_utility",
            "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]} --state {params.state}",
        )
