# Every judge looks at every picture once; one file of measurements a set.
def judges_code(wildcards):
    names = PARAMETERS.measure.judges
    return code(
        "measure", *modules("judges", names), *modules("backbones", judges_need())
    )


def judges_need():
    names = [
        name
        for judge in PARAMETERS.measure.judges
        for name in discovery.load("judges", judge).needs
    ]
    return list(dict.fromkeys(names))


JUDGED = [f"judges.{name}" for name in PARAMETERS.measure.judges]


rule measure_source:
    input:
        code=judges_code,
        faces=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in judges_need()],
    output:
        SOURCE,
    log:
        "logs/" + SCALE + "/measure/{dataset}.log",
    benchmark:
        "logs/" + SCALE + "/benchmarks/measure/{dataset}.tsv"
    threads: PARAMETERS.compute.threads["measure"]
    params:
        cfg=P(*JUDGED, "measure.judges", "measure.batch"),
        splits=f"{PARAMETERS.matrix.calibrate_on},test",
    shell:
        "python workflow/scripts/measure.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --backbones {input.backbones} --splits {params.splits}"
        " --outputs {output} > {log} 2>&1"


rule measure:
    input:
        code=judges_code,
        faces=indexed(ANONYMIZED),
        source=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in judges_need()],
    output:
        MEASURED,
    log:
        "logs/" + SCALE + "/measure/{dataset}/{method}/{variant}/{seed}.log",
    benchmark:
        "logs/" + SCALE + "/benchmarks/measure/{dataset}/{method}/{variant}/{seed}.tsv"
    threads: PARAMETERS.compute.threads["measure"]
    params:
        cfg=P(*JUDGED, "measure.judges", "measure.batch"),
    shell:
        "python workflow/scripts/measure.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --source {input.source[0]} --backbones {input.backbones} --splits test"
        " --outputs {output} > {log} 2>&1"
