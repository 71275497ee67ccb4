# The tables and figures of the papers: tables, curves and trade-offs from metrics, grids from pictures, and the page of claims.
rule table:
    input:
        code=CODE("table"),
        declared="reference/{paper}/{item}.yaml",
        metrics=PAPERS.shown(PATHS.metrics),
    output:
        multiext(PATHS.table, ".csv", ".md", ".tex"),  # results/mini/tables/falco/table1.md
    log:
        f"{LOGS}/tables/{{paper}}/{{item}}.log",
    benchmark:
        f"{BENCHMARKS}/tables/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=PAPERS.names("table"),
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=PAPERS.not_shown,
        imported=lambda w: PAPERS.imported([PAPERS.item(w)]),
    shell:
        submission.run_here(
            "table",
            "--skipped {params.skipped:q} --imported {params.imported:q} --declared {input.declared}",
            "--metrics {input.metrics}",
        )


rule leaderboard:
    input:
        code=CODE("leaderboard"),
        declared="reference/attackers/leaderboard.yaml",
        metrics=lambda w: PAPERS.files(PATHS.metrics, PAPERS.settings(PAPERS.leaderboard)),
    output:
        multiext(PATHS.leaderboard, ".csv", ".md"),  # results/mini/leaderboard.md
    log:
        f"{LOGS}/leaderboard.log",
    benchmark:
        f"{BENCHMARKS}/leaderboard.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=lambda w: PAPERS.reasons(PAPERS.settings(PAPERS.leaderboard)),
        imported=lambda w: PAPERS.imported([PAPERS.leaderboard]),
        benchmarks=lambda w: f"{BENCHMARKS}/anonymize/{CELL}.tsv",
    shell:
        submission.run_here(
            "leaderboard",
            "--skipped {params.skipped:q} --imported {params.imported:q} --benchmarks {params.benchmarks:q}",
            "--declared {input.declared} --metrics {input.metrics}",
        )


# Where the images of another program stand among all methods.
rule score:
    input:
        code=CODE("score"),
        leaderboard=f"{PATHS.leaderboard}.csv",
        metrics=PAPERS.scored(PATHS.metrics),
        faces=PAPERS.scored(PATHS.faces),
        derived=PAPERS.scored(PATHS.anonymized),
        source=PAPERS.scored(PATHS.source_measurements),
        measured=PAPERS.scored(PATHS.measurements),
    output:
        multiext(PATHS.score, ".md", ".png"),  # results/mini/scores/their_method.md
    log:
        f"{LOGS}/scores/{{variant}}.log",
    benchmark:
        f"{BENCHMARKS}/scores/{{variant}}.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=GRAPH.params_slice(
            "scale", "seeds", "stand_ins", "latent_stand_ins", "caution", f"methods.{IMPORTED}.variants.{{variant}}"
        ),
        private=GRAPH.private,
    shell:
        submission.run_here(
            "score",
            "--variant {wildcards.variant} --private {params.private:q} --leaderboard {input.leaderboard}",
            "--metrics {input.metrics} --faces {input.faces} --derived {input.derived} --source {input.source}",
            "--measured {input.measured}",
        )


rule curves:
    input:
        code=CODE("curves"),
        declared="reference/{paper}/{item}.yaml",
        metrics=PAPERS.shown(PATHS.metrics),
    output:
        multiext(PATHS.figure, ".png", ".svg"),  # results/mini/figures/identitydp/figure4.png
    log:
        f"{LOGS}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"{BENCHMARKS}/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=PAPERS.names("curves", "tradeoff"),
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=PAPERS.not_shown,
        imported=lambda w: PAPERS.imported([PAPERS.item(w)]),
    shell:
        submission.run_here(
            "curves",
            "--skipped {params.skipped:q} --imported {params.imported:q} --declared {input.declared}",
            "--metrics {input.metrics}",
        )


rule clusters:
    input:
        code=CODE("clusters"),
        declared="reference/{paper}/{item}.yaml",
        features=PAPERS.shown(PATHS.features),
    output:
        multiext(PATHS.figure, ".png", ".svg"),  # results/mini/figures/lreorg/figure12.png
    log:
        f"{LOGS}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"{BENCHMARKS}/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=PAPERS.names("clusters"),
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=PAPERS.not_shown,
    shell:
        submission.run_here(
            "clusters",
            "--skipped {params.skipped:q} --declared {input.declared} --features {input.features}",
        )


rule grid:
    input:
        code=CODE("grid"),
        declared="reference/{paper}/{item}.yaml",
        faces=PAPERS.source(PATHS.faces),
        derived=PAPERS.shown(PATHS.anonymized),
        recoveries=PAPERS.shown(PATHS.recoveries, attempts=True),
        source=PAPERS.if_chosen_by_distance(PAPERS.source(PATHS.source_measurements)),
        measured=PAPERS.if_chosen_by_distance(PAPERS.shown(PATHS.measurements)),
    output:
        multiext(PATHS.figure, ".png", ".svg"),  # results/mini/figures/falco/figure3.png
    log:
        f"{LOGS}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"{BENCHMARKS}/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=PAPERS.names("grid"),
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=PAPERS.not_shown,
        private=GRAPH.private,
    shell:
        submission.run_here(
            "grid",
            "--skipped {params.skipped:q} --private {params.private:q}",
            "--declared {input.declared} --faces {input.faces}",
            "--derived {input.derived} --recoveries {input.recoveries} --source {input.source}",
            "--measured {input.measured}",
        )


rule claims_table:
    input:
        code=CODE("claims"),
        declared="reference/claims.yaml",
        metrics=lambda w: PAPERS.files(PATHS.metrics, PAPERS.claimed_settings()),
    output:
        multiext(PATHS.claims_table, ".csv", ".md", ".tex"),  # results/mini/tables/claims.md
    log:
        f"{LOGS}/tables/claims.log",
    benchmark:
        f"{BENCHMARKS}/tables/claims.tsv"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=GRAPH.params_slice("scale", "seeds", "stand_ins", "latent_stand_ins", "caution", "papers"),
        skipped=lambda w: PAPERS.reasons(PAPERS.claimed_settings()),
    shell:
        submission.run_here(
            "claims",
            "--skipped {params.skipped:q} --declared {input.declared} --metrics {input.metrics}",
        )
