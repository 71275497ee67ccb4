# One page with all tables, claims and figures, images of the faces, and their lineage.
# One list of files is passed as a folder, because the command could become longer than the system allows.
rule report:
    input:
        code=CODE("report", metrics=PARAMETERS.metrics, methods=PARAMETERS.methods),
        look=[str(path) for path in sorted(Path("src/masquerade/papers/report/look").iterdir())],
        declared="reference/claims.yaml",
        references=[f"reference/{item.key}.yaml" for item in PAPERS.items.values()],
        claims=f"{PATHS.claims_table}.csv",
        built=[PAPERS.outputs(item)[0] for item in PAPERS.items.values()],
        # the page of the leaderboard has the ranks
        further=[
            *(PAPERS.outputs(item)[1] for item in PAPERS.items.values() if item.kind == "leaderboard"),
            PATHS.backbones_table,
        ],
        faces=GRAPH.of_datasets(GRAPH.datasets, PATHS.faces),
        metrics=lambda w: GRAPH.of(GRAPH.cells, PATHS.metrics),
        derived=lambda w: GRAPH.of(GRAPH.cells, PATHS.anonymized),
        recoveries=GRAPH.of(GRAPH.attempted, PATHS.recoveries),
        checkpoints=TARGETS.of("train"),
        backbones=BACKBONES.checkpoints(PARAMETERS.backbones),
        indexes=lambda w: [
            index(archive)
            for archive in (
                *GRAPH.of_datasets(GRAPH.datasets, PATHS.faces),
                *GRAPH.of(GRAPH.cells, PATHS.anonymized),
                *GRAPH.of(GRAPH.attempted, PATHS.recoveries),
            )
        ],
    output:
        PATHS.report,  # results/mini/report/index.html
    log:
        f"{LOGS}/report.log",
    benchmark:
        f"{BENCHMARKS}/report.tsv"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=GRAPH.params_slice(
            "scale",
            "seeds",
            "stand_ins",
            "latent_stand_ins",
            "caution",
            "papers",
            *(f"methods.{name}.variants" for name in PARAMETERS.methods),
        ),
        skipped=lambda w: PAPERS.reasons(PAPERS.all_settings()),
        skipped_claims=lambda w: PAPERS.reasons(PAPERS.claimed_settings()),
        imported=lambda w: PAPERS.imported(PAPERS.items.values()),
        needs=GRAPH.methods.all_needs,
        private=GRAPH.private,
    shell:
        submission.run_here(
            "report",
            "--skipped {params.skipped:q} --skipped_claims {params.skipped_claims:q} --imported {params.imported:q}",
            "--needs {params.needs:q} --private {params.private:q}",
            "--declared {input.declared} --claims {input.claims}",
            "--references {input.references} --built {input.built} --further {input.further} --faces {input.faces}",
            "--metrics {input.metrics} --recoveries {input.recoveries} --checkpoints {input.checkpoints}",
            "--backbones {input.backbones}",
        )
