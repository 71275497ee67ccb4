# What invertible methods give back: with the right key, with wrong ones, and by guessing.
rule recover:
    input:
        code=method_code("recover"),
        faces=indexed(FACES),
        anonymized=indexed(ANONYMIZED),
        checkpoint=checkpoint_of,
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        gallery=lambda w: resources_of(w.method, w.dataset)["gallery"],
        fakes=lambda w: resources_of(w.method, w.dataset)["fakes"],
        latents=lambda w: resources_of(w.method, w.dataset)["latents"],
    output:
        indexed(ATTEMPTS),
    log:
        f"logs/{SCALE}/recover/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/recover/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
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
            *[f"recovery.{name}" for name in TRYING],
        ),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/recover.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --method {wildcards.method} --variant {wildcards.variant} --seed {wildcards.seed}"
        " --faces {input.faces[0]} --anonymized {input.anonymized[0]} --checkpoint {input.checkpoint}"
        " --backbones {input.backbones} --gallery {input.gallery} --fakes {input.fakes} --latents {input.latents}"
        " --outputs {output} > {log} 2>&1"


rule measure_attempts:
    input:
        code=lambda w: judges_code(w, "recovery"),
        faces=indexed(ATTEMPTS),
        source=indexed(FACES),
        backbones=[BACKBONE.format(backbone=name) for name in judges_need("recovery")],
        weights=lambda w: judges_files("recovery"),
    output:
        ATTEMPTS_MEASURED,
    log:
        f"logs/{SCALE}/measure_attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/measure_attempts/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
    group:
        "cells_{method}_{seed}"
    conda:
        "../../environment.yml"
    threads: PARAMETERS.compute.threads["measure"]
    resources:
        **LIGHT,
    params:
        cfg=P(*judged("recovery"), "recovery.judges", "measure.batch"),
    shell:
        "python workflow/scripts/measure.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --faces {input.faces[0]} --source {input.source[0]} --backbones {input.backbones} --splits test"
        " --outputs {output} > {log} 2>&1"


rule guess:
    input:
        code=lambda w: code(
            f"guess.{w.method}",
            *modules("methods", [w.method]),
            *modules("judges", [PARAMETERS.guessing.judge]),
            *modules("backbones", {*needs(w.method), *GUESSER.needs}),
        ),
        anonymized=indexed(ANONYMIZED),
        source=SOURCE,
        checkpoint=checkpoint_of,
        backbones=lambda w: [BACKBONE.format(backbone=name) for name in needs(w.method)],
        gallery=lambda w: resources_of(w.method, w.dataset)["gallery"],
        fakes=lambda w: resources_of(w.method, w.dataset)["fakes"],
        latents=lambda w: resources_of(w.method, w.dataset)["latents"],
        judged=[BACKBONE.format(backbone=name) for name in GUESSER.needs],
        weights=lambda w: assets_of(GUESSER.assets),
    output:
        GUESSES,
    log:
        f"logs/{SCALE}/guess/{{dataset}}/{{method}}/{{variant}}/{{seed}}.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/guess/{{dataset}}/{{method}}/{{variant}}/{{seed}}.tsv"
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
            "matrix.calibrate_on",
            f"judges.{PARAMETERS.guessing.judge}",
            *[f"guessing.{name}" for name in GUESSING],
        ),
    shell:
        "python workflow/scripts/launch.py {resources.launcher} {resources.submission:q}"
        " workflow/scripts/guess.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --dataset {wildcards.dataset} --method {wildcards.method} --variant {wildcards.variant}"
        " --seed {wildcards.seed} --anonymized {input.anonymized[0]} --source {input.source}"
        " --checkpoint {input.checkpoint} --backbones {input.backbones} --gallery {input.gallery}"
        " --fakes {input.fakes} --latents {input.latents} --judged {input.judged} --outputs {output} > {log} 2>&1"


rule guessing_table:
    input:
        code=lambda w: code("guessing"),
        guesses=[GUESSES.format(**vars(cell)) for cell in GUESSED],
    output:
        GUESSING_TABLE,
    log:
        f"logs/{SCALE}/tables/guessing.log",
    benchmark:
        f"logs/{SCALE}/benchmarks/tables/guessing.tsv"
    group:
        "tables"
    conda:
        "../../environment.yml"
    resources:
        **BRIEF,
    params:
        cfg=P("scale", "caution"),
    shell:
        "python workflow/scripts/guessing.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --guesses {input.guesses} --outputs {output} > {log} 2>&1"
