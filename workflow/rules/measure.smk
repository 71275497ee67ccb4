# Every judge looks at every picture once; one file of measurements a set.
rule measure_source:
    input:
        code=lambda w: judges_code(w, "measure"),
        faces=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in judges_need("measure")],
        weights=lambda w: judges_files("measure"),
    output:
        SOURCE,
    log:
        f"logs/{SCALE}/measure/{{dataset}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/measure/{{dataset}}.tsv"
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=P(*judged("measure"), "measure.judges", "measure.batch"),
        splits=f"{PARAMETERS.matrix.calibrate_on},test",
    shell:
        "python workflow/scripts/measure.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --backbones {input.backbones} --splits {params.splits}"
        " --outputs {output} > {log} 2>&1"


rule measure:
    input:
        code=lambda w: judges_code(w, "measure"),
        faces=indexed(ANONYMIZED),
        source=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in judges_need("measure")],
        weights=lambda w: judges_files("measure"),
    output:
        MEASURED,
    log:
        f"logs/{SCALE}/measure/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/measure/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    group:
        "cells_{method}_{seed}"
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=P(*judged("measure"), "measure.judges", "measure.batch"),
    shell:
        "python workflow/scripts/measure.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --source {input.source[0]} --backbones {input.backbones} --splits test"
        " --outputs {output} > {log} 2>&1"
