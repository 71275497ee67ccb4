"""From faces to tables: the one graph. What is in it follows from params.yaml and the overlay of its scale."""

from snakemake.utils import min_version

min_version("9.0")


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/backbones.smk"
include: "workflow/rules/fakes.smk"
include: "workflow/rules/inversion.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/anonymize.smk"
include: "workflow/rules/features.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/recover.smk"
include: "workflow/rules/attributes.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"


# Every kept file is a target: after a failure, what is missing is then always seen and made.
rule all:
    default_target: True
    input:
        TARGETS["data"],
        TARGETS["backbones"],
        TARGETS["latent"],
        TARGETS["train"],
        TARGETS["anonymize"],
        TARGETS["features"],
        TARGETS["measure"],
        TARGETS["attributes"],
        TARGETS["recovery"],
        TARGETS["metrics"],
        TARGETS["tables"],
        TARGETS["report"],


rule data:
    input:
        TARGETS["data"],


rule backbones:
    input:
        TARGETS["backbones"],


rule train:
    input:
        TARGETS["train"],


rule tables:
    input:
        TARGETS["tables"],


onstart:
    refuse_touch()
    check_assets()
    check_cluster()
    look_when_jobs_end()
    tell_why_groups_fail()


onsuccess:
    finish("success")


onerror:
    finish("error")
