# What the papers print, rebuilt: tables from metrics, curves from metrics, grids from pictures.
def item_of(wildcards):
    return ITEMS[f"{wildcards.paper}/{wildcards.item}"]


def asked(item):
    """The (dataset, method, variant) that a table or figure shows, with the dataset that stands in here."""
    dataset = reference.stand_in(item.dataset, PARAMETERS.stand_ins.datasets)
    offered = [(cell.method, cell.variant) for cell in CELLS if cell.dataset == dataset]
    return [
        (dataset, method, variant)
        for _, method, variant in reference.needs(item, offered)
    ]


def shown(pattern):
    """``input`` function: the files of the runnable cells that the wildcards' table or figure shows."""

    def value(wildcards):
        wanted = set(asked(item_of(wildcards)))
        cells = [
            cell
            for cell in RUNNABLE
            if (cell.dataset, cell.method, cell.variant) in wanted
        ]
        return [pattern.format(**vars(cell)) for cell in cells]

    return value


def not_shown(wildcards):
    """Why the other cells are not there, as JSON."""
    reasons = matrix.skipped(PARAMETERS, asked(item_of(wildcards)), CELLS)
    return json.dumps([[*cell, reason] for cell, reason in sorted(reasons.items())])


def source_of(pattern):
    return lambda w: pattern.format(dataset=asked(item_of(w))[0][0])


def distances_of(pattern):
    """``input`` function: measurements, where a grid chooses its faces by distance."""
    return lambda w: pattern(w) if item_of(w).choose == "closest_to_mean" else []


ABOUT = P("scale", "seeds", "stand_ins", "caution")


rule table:
    input:
        code=lambda w: code("table"),
        declared="reference/{paper}/{item}.yaml",
        metrics=shown(METRICS),
    output:
        multiext(TABLE, ".csv", ".md", ".tex"),
    log:
        "logs/" + SCALE + "/tables/{paper}/{item}.log",
    benchmark:
        "logs/" + SCALE + "/benchmarks/tables/{paper}/{item}.tsv"
    wildcard_constraints:
        item=one_of(item.name for item in ITEMS.values() if item.kind == "table"),
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/table.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --metrics {input.metrics}"
        " --outputs {output} > {log} 2>&1"


rule curves:
    input:
        code=lambda w: code("curves"),
        declared="reference/{paper}/{item}.yaml",
        metrics=shown(METRICS),
    output:
        multiext(FIGURE, ".png", ".svg"),
    log:
        "logs/" + SCALE + "/figures/{paper}/{item}.log",
    benchmark:
        "logs/" + SCALE + "/benchmarks/figures/{paper}/{item}.tsv"
    wildcard_constraints:
        item=one_of(item.name for item in ITEMS.values() if item.kind == "curves"),
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/curves.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --metrics {input.metrics}"
        " --outputs {output} > {log} 2>&1"


rule grid:
    input:
        code=lambda w: code("grid"),
        declared="reference/{paper}/{item}.yaml",
        faces=source_of(FACES),
        derived=shown(ANONYMIZED),
        source=distances_of(source_of(SOURCE)),
        measured=distances_of(shown(MEASURED)),
    output:
        multiext(FIGURE, ".png", ".svg"),
    log:
        "logs/" + SCALE + "/figures/{paper}/{item}.log",
    benchmark:
        "logs/" + SCALE + "/benchmarks/figures/{paper}/{item}.tsv"
    wildcard_constraints:
        item=one_of(item.name for item in ITEMS.values() if item.kind == "grid"),
    params:
        cfg=ABOUT,
        skipped=not_shown,
    shell:
        "python workflow/scripts/grid.py --params {params.cfg:q} --code {input.code} --threads {threads}"
        " --skipped {params.skipped:q} --declared {input.declared} --faces {input.faces}"
        " --derived {input.derived} --source {input.source} --measured {input.measured}"
        " --outputs {output} > {log} 2>&1"
