"""The graph, from faces to tables. params.yaml and the overlay of its scale determine what it contains."""

from snakemake.utils import min_version

min_version("9.27.1")


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/backbones.smk"
include: "workflow/rules/latents.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/anonymize.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/recover.smk"
include: "workflow/rules/attributes.smk"
include: "workflow/rules/attackers.smk"
include: "workflow/rules/metrics.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/report.smk"


# Every kept file is a target: after a failure, what is missing is then always seen and made.
rule all:
    default_target: True
    input:
        TARGETS.of("data"),
        TARGETS.of("backbones"),
        TARGETS.of("latents"),
        TARGETS.of("train"),
        TARGETS.of("anonymize"),
        TARGETS.of("features"),
        TARGETS.of("measure"),
        TARGETS.of("attributes"),
        TARGETS.of("recovery"),
        TARGETS.of("attackers"),
        TARGETS.of("metrics"),
        TARGETS.of("tables"),
        TARGETS.of("report"),


rule data:
    input:
        TARGETS.of("data"),


rule backbones:
    input:
        TARGETS.of("backbones"),


rule train:
    input:
        TARGETS.of("train"),


rule metrics:
    input:
        TARGETS.of("metrics"),


# The tables and figures of one paper: `snakemake falco`. With those of `attackers`, all that attackers do is built.
for paper in dict.fromkeys([*PARAMETERS.papers, "attackers"]):

    rule:
        name:
            paper
        input:
            TARGETS.of("paper", paper),


# Rule `report`, a job of its own, builds the page and what it shows.
rule tables:
    input:
        TARGETS.of("tables"),


onstart:
    before_jobs()


onsuccess:
    after_jobs("success")


onerror:
    after_jobs("error")
