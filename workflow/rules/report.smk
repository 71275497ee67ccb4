# One page with everything that a lab would show: tables, claims, pictures, trade-offs, and their lineage.
# Two of the lists go by their folders: all of them in one command would be longer than a system allows some day.
rule report:
    input:
        code=lambda w: code(
            "report",
            *modules("metrics", PARAMETERS.metrics),
            *modules("methods", PARAMETERS.methods),
        ),
        look=[str(path) for path in sorted((PACKAGE / "report" / "look").iterdir())],
        declared="reference/claims.yaml",
        references=[f"reference/{item.key}.yaml" for item in ITEMS.values()],
        claims=f"{CLAIMS_TABLE}.csv",
        built=[
            (TABLE if item.kind == "table" else FIGURE).format(paper=item.paper, item=item.name)
            + f".{item.endings[0]}"
            for item in ITEMS.values()
        ],
        further=[BACKBONES_TABLE, GUESSING_TABLE],
        faces=ARCHIVES,
        metrics=lambda w: of_cells(METRICS),
        source=[SOURCE.format(dataset=name) for name in DATASETS],
        measured=lambda w: of_cells(MEASURED),
        derived=lambda w: of_cells(ANONYMIZED),
        attempts=[ATTEMPTS.format(**vars(cell)) for cell in TRIED],
        attempts_measured=[ATTEMPTS_MEASURED.format(**vars(cell)) for cell in TRIED],
        checkpoints=TARGETS["train"],
        backbones=[BACKBONE.format(backbone=name) for name in PARAMETERS.backbones],
        indexes=lambda w: [
            path
            for kind in ("data", "anonymize", "recovery")
            for path in TARGETS[kind](w)
            if path.endswith(".parquet")
        ],
    output:
        REPORT,
    log:
        f"logs/{SCALE}/report.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/report.tsv"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=P(
            "scale",
            "seeds",
            "stand_ins",
            "caution",
            "papers",
            *(f"methods.{name}.variants" for name in PARAMETERS.methods),
        ),
        skipped=lambda w: reasons(cell for item in ITEMS.values() for cell in asked(item)),
    shell:
        "python workflow/scripts/report.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --claims {input.claims} --built {input.built}"
        " --further {input.further} --faces {input.faces} --metrics {input.metrics} --source {input.source}"
        f" --measured {DATA}/measurements --derived {DATA}/anonymized"
        " --attempts {input.attempts}"
        " --attempts_measured {input.attempts_measured} --checkpoints {input.checkpoints} --backbones {input.backbones}"
        " --outputs {output} > {log} 2>&1"
