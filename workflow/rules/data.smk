# Where faces come from: one archive a dataset.
rule faces:
    input:
        code=lambda w: code(f"data.{w.dataset}", *modules("faces", [w.dataset])),
        sources=lambda w: sources_of(w.dataset),
    output:
        indexed(FACES),
    log:
        f"logs/{SCALE}/faces/{{dataset}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/faces/{{dataset}}.tsv"
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["data"]
    resources:
        **LIGHT,
    params:
        cfg=P("datasets.{dataset}", "image.size", "data_seed"),
    shell:
        "python workflow/scripts/data.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --dataset {wildcards.dataset} --outputs {output} > {log} 2>&1"
