# What the papers print, rebuilt: tables from metrics, curves from metrics, grids from pictures; and which claims hold.
rule table:
    input:
        code=lambda w: code("table"),
        declared="reference/{paper}/{item}.yaml",
        metrics=shown(METRICS),
    output:
        multiext(TABLE, ".csv", ".md", ".tex"),
    log:
        f"logs/{SCALE}/tables/{{paper}}/{{item}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/tables/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=items_of("table"),
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=not_shown,
        imported=imported_of,
    shell:
        "python workflow/scripts/table.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --imported {params.imported:q} --declared {input.declared} --metrics {input.metrics}"
        " --outputs {output} > {log} 2>&1"


rule curves:
    input:
        code=lambda w: code("curves"),
        declared="reference/{paper}/{item}.yaml",
        metrics=shown(METRICS),
    output:
        multiext(FIGURE, ".png", ".svg"),
    log:
        f"logs/{SCALE}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=items_of("curves"),
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/curves.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --metrics {input.metrics}"
        " --outputs {output} > {log} 2>&1"


rule clusters:
    input:
        code=lambda w: code("clusters"),
        declared="reference/{paper}/{item}.yaml",
        features=shown(FEATURES),
    output:
        multiext(FIGURE, ".png", ".svg"),
    log:
        f"logs/{SCALE}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=items_of("clusters"),
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/clusters.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --features {input.features}"
        " --outputs {output} > {log} 2>&1"


rule grid:
    input:
        code=lambda w: code("grid"),
        declared="reference/{paper}/{item}.yaml",
        faces=source_of(FACES),
        derived=shown(ANONYMIZED),
        attempts=shown(ATTEMPTS, reference.attempted, matrix.by_setting(TRIED)),
        source=distances_of(source_of(SOURCE)),
        measured=distances_of(shown(MEASURED)),
    output:
        multiext(FIGURE, ".png", ".svg"),
    log:
        f"logs/{SCALE}/figures/{{paper}}/{{item}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/figures/{{paper}}/{{item}}.tsv"
    wildcard_constraints:
        item=items_of("grid"),
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/grid.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --faces {input.faces}"
        " --derived {input.derived} --attempts {input.attempts} --source {input.source} --measured {input.measured}"
        " --outputs {output} > {log} 2>&1"


rule claims_table:
    input:
        code=lambda w: code("claims"),
        declared="reference/claims.yaml",
        metrics=lambda w: files(METRICS, claimed()),
    output:
        multiext(CLAIMS_TABLE, ".csv", ".md", ".tex"),
    log:
        f"logs/{SCALE}/tables/claims.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/tables/claims.tsv"
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=P("scale", "seeds", "stand_ins", "caution", "papers"),
        skipped=lambda w: reasons(claimed()),
    shell:
        "python workflow/scripts/claims.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --metrics {input.metrics}"
        " --outputs {output} > {log} 2>&1"
