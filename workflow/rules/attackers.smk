# Attackers who know the method: their own pictures, their trainings, their attacks on the tested people.
use rule anonymize_neural as anonymize_attackers with:
    output:
        with_index(PATHS.attackers_faces),
    log:
        f"{LOGS}/anonymize_attackers/{{under}}/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/anonymize_attackers/{{under}}/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    wildcard_constraints:
        method=one_of(PARAMETERS.methods),
        under="own|one",
    localrule: True
    params:
        cfg=GRAPH.knobs(
            *GRAPH.variant_knobs,
            "measure.batch",
            "informed.people",
            "informed.pictures",
            "informed.own.{method}.{variant}?",
            name="anonymize_attackers.{method}.{variant}",
        ),
        split="attackers",
        attacker_keys=lambda w: w.under,


# Each attacker that learns has one training for each cell, and several for some.
rule attacker:
    input:
        code=lambda w: GRAPH.code(
            f"attacker.{w.attacker}",
            *GRAPH.modules("attackers", [w.attacker]),
            *GRAPH.modules("backbones", GRAPH.attackers.needs([w.attacker])),
        ),
        faces=with_index(PATHS.faces),
        anonymized=GRAPH.attackers.faces,
        backbones=lambda w: GRAPH.checkpoints(GRAPH.attackers.needs([w.attacker])),
    output:
        checkpoint=PATHS.attacker,
        quality=PATHS.attacker_quality,
    log:
        f"{LOGS}/attackers/{{attacker}}/{{dataset}}/{{method}}/{{variant}}/{{seed}}/{{trial}}.log",
    benchmark:
        f"{BENCHMARKS}/attackers/{{attacker}}/{{dataset}}/{{method}}/{{variant}}/{{seed}}/{{trial}}.tsv"
    wildcard_constraints:
        attacker=one_of(PARAMETERS.attackers),
        trial=r"\d+",
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["train"]
    resources:
        **submitted("training", lambda w: w.attacker, "train"),
    params:
        cfg=GRAPH.knobs("attackers.{attacker}", *GRAPH.attackers.knobs, name="attacker.{attacker}.{method}.{variant}"),
        state=f"{PATHS.states}/attackers/{{attacker}}/{{dataset}}/{{method}}/{{variant}}/{{seed}}/{{trial}}.pt",
    shell:
        commands.launched(
            "attacker",
            "--attacker {wildcards.attacker} --method {wildcards.method} --variant {wildcards.variant}",
            "--seed {wildcards.seed} --trial {wildcards.trial} --faces {input.faces[0]}",
            "--anonymized {input.anonymized[0]} --backbones {input.backbones} --state {params.state}",
            outputs="{output.checkpoint} {output.quality}",
        )


# What every attacker answers about every tested picture.
rule attacked:
    input:
        code=lambda w: GRAPH.code(
            "attacked",
            *GRAPH.modules("attackers", PARAMETERS.attackers),
            *GRAPH.modules("judges", GRAPH.judges("informed")),
            *GRAPH.modules(
                "backbones", {*GRAPH.attackers.needs(PARAMETERS.attackers), *GRAPH.judges_need("informed")}
            ),
        ),
        faces=with_index(PATHS.faces),
        anonymized=with_index(PATHS.anonymized),
        own=GRAPH.attackers.own_faces(),
        one=GRAPH.attackers.insider_faces,
        attackers=lambda w: GRAPH.attackers.trained(w, PATHS.attacker),
        backbones=lambda w: GRAPH.checkpoints(
            dict.fromkeys([*GRAPH.attackers.needs(GRAPH.attackers.of(w)), *GRAPH.judges_need("informed")])
        ),
        weights=lambda w: GRAPH.judge_assets(GRAPH.judges("informed")),
    output:
        PATHS.attacked,
    log:
        f"{LOGS}/attacked/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/attacked/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["measure"]
    resources:
        **submitted("inference", "attacked", "measure"),
    params:
        cfg=GRAPH.knobs(
            *[f"attackers.{name}" for name in PARAMETERS.attackers],
            *GRAPH.judge_knobs("informed"),
            *GRAPH.attackers.knobs,
            name="attacked.{method}.{variant}",
        ),
        names=lambda w: ",".join(GRAPH.attackers.of(w)),
    shell:
        commands.launched(
            "attacked",
            "--names {params.names} --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]} --own {input.own[0]} --one {input.one}",
            "--attackers {input.attackers} --backbones {input.backbones}",
        )


# How useful the pictures are: networks that learn from them, tested on clear pictures.
rule twins:
    input:
        code=lambda w: GRAPH.code("twins", *GRAPH.modules("backbones", ["landmarks"])),
        faces=with_index(PATHS.faces),
        anonymized=GRAPH.attackers.own_faces(),
    output:
        PATHS.twins,
    log:
        f"{LOGS}/twins/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/twins/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["train"]
    resources:
        **submitted("training", "twins", "train"),
    params:
        cfg=GRAPH.knobs("backbones.landmarks", *GRAPH.attackers.twin_knobs, name="twins"),
        state=f"{PATHS.states}/twins/{{dataset}}/{{method}}/{{variant}}/{{seed}}.pt",
    shell:
        commands.launched(
            "twins",
            "--method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}",
            "--faces {input.faces[0]} --anonymized {input.anonymized[0]} --state {params.state}",
        )
