# Each cell has one archive: the anonymized test split of its dataset. Methods with networks may run on a GPU.
rule anonymize_neural:
    input:
        unpack(METHODS.files),
        code=METHODS.code("anonymize"),
        faces=with_index(PATHS.faces),
    output:
        with_index(PATHS.anonymized),  # data/mini/anonymized/synthetic_hq/falco/m_0/0.zip
    log:
        f"{LOGS}/anonymize/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/anonymize/{CELL}.tsv"
    wildcard_constraints:
        method=match_any(METHODS.neural),
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.params_slice(*VARIANT_KEYS, "measure.batch"),
        program="anonymize",
    shell:
        submission.run_launched("{params.program}", "--faces {input.faces[0]}", submission.METHOD_OPTIONS)


# Methods without networks take a processor a few seconds.
use rule anonymize_neural as anonymize with:
    wildcard_constraints:
        method=match_any({*PARAMETERS.methods} - METHODS.neural),
    localrule: False
    resources:
        **LIGHT,
        launcher="in_process",
        submission="{}",


# The part of the methods' people from which a classifier of attributes learns.
use rule anonymize_neural as anonymize_train with:
    input:
        unpack(METHODS.files),
        code=METHODS.code("anonymize_train"),
        faces=with_index(PATHS.faces),
    output:
        with_index(PATHS.anonymized_train),  # data/mini/anonymized_train/synthetic_hq/falco/m_0/0.zip
    log:
        f"{LOGS}/anonymize_train/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/anonymize_train/{CELL}.tsv"
    wildcard_constraints:
        method=match_any(PARAMETERS.methods),
    localrule: True
    params:
        cfg=GRAPH.params_slice(*VARIANT_KEYS, "measure.batch", "attributes.train_pictures"),
        program="anonymize_train",


# The features into which a method separates the test faces, for figures that show how they cluster.
rule features:
    input:
        unpack(METHODS.files),
        code=METHODS.code("features"),
        faces=with_index(PATHS.faces),
    output:
        PATHS.features,  # data/mini/features/synthetic_hq/lreorg/default/0.parquet
    log:
        f"{LOGS}/features/{CELL}.log",
    benchmark:
        f"{BENCHMARKS}/features/{CELL}.tsv"
    retries: 0
    localrule: True
    conda:
        "../../environment.yml"
    threads: COMPUTE.threads["anonymize"]
    resources:
        **submitted("inference", lambda w: w.method, "anonymize"),
    params:
        cfg=GRAPH.params_slice(*VARIANT_KEYS, "measure.batch"),
    shell:
        submission.run_launched(
            "features",
            "--faces {input.faces[0]}",
            submission.METHOD_OPTIONS,
        )
