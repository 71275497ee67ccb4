# What a method takes the test faces apart into, where a figure shows how that clusters.
rule features:
    input:
        code=method_code("features"),
        faces=indexed(FACES),
        checkpoint=checkpoint_of,
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        gallery=lambda w: resources_of(w.method, w.dataset)["gallery"],
        fakes=lambda w: resources_of(w.method, w.dataset)["fakes"],
        latents=lambda w: resources_of(w.method, w.dataset)["latents"],
    output:
        FEATURES,
    log:
        f"logs/{SCALE}/features/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/features/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=P(
            "methods.{method}.params",
            "methods.{method}.ablations.{variant}?",
            "methods.{method}.variants.{variant}",
            "measure.batch",
        ),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/features.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --faces {input.faces[0]} --checkpoint {input.checkpoint} --backbones {input.backbones}"
        " --gallery {input.gallery} --fakes {input.fakes} --latents {input.latents} --outputs {output} > {log} 2>&1"
