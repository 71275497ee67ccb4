# Every metric of a cell, from its measurements alone.
rule metrics:
    input:
        code=lambda w: code("metrics", *modules("metrics", PARAMETERS.metrics)),
        source=SOURCE,
        derived=MEASURED,
        target=SOURCE.format(dataset=PARAMETERS.matrix.train_on),
        attributes=where(ATTRIBUTED, ATTRIBUTES),
        attempts=where(TRIED, ATTEMPTS_MEASURED),
        index=ANONYMIZED.replace(".zip", ".parquet"),
    output:
        METRICS,
    log:
        f"logs/{SCALE}/metrics/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/metrics/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    group:
        "cells_{method}_{seed}"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=P(*[f"metrics.{name}" for name in PARAMETERS.metrics], "matrix.calibrate_on"),
    shell:
        "python workflow/scripts/metrics.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}"
        " --seed {wildcards.seed} --source {input.source} --derived {input.derived} --index {input.index}"
        " --target {input.target} --attributes {input.attributes} --attempts {input.attempts}"
        " --outputs {output} > {log} 2>&1"


# All of them in one file, which DVC knows as its metrics.
rule scores:
    input:
        code=lambda w: code("scores"),
        metrics=of_cells(METRICS),
    output:
        SCORES,
    log:
        f"logs/{SCALE}/scores.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/scores.tsv"
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **LIGHT,
    params:
        cfg=P("scale"),
    shell:
        "python workflow/scripts/scores.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --metrics {input.metrics} --outputs {output} > {log} 2>&1"
