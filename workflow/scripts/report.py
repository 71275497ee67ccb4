"""Write the report of a scale: one HTML page of every table, claim and figure, of images, and of their lineage."""

from masquerade.pipeline import program

LISTS = ("faces", "metrics", "recoveries", "checkpoints", "backbones")
given = program.parse_arguments(
    __doc__, files=("declared", "claims"), lists=("built", "further", *LISTS), words=("skipped", "needs", "private")
)


def work(_) -> None:
    import json

    from masquerade.core import files
    from masquerade.papers import claims
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Cells
    from masquerade.papers.report import page, reading, variants
    from masquerade.papers.report.chain import Files

    context, cells = Context.of(given.params), Cells(files.read_numbers(given.metrics))
    records = reading.records(given.claims.read_text(encoding="utf-8"))
    judged = reading.assertions(claims.load(given.declared), records)
    papers = page.all_papers(given.params["papers"], given.declared.parent, given.built, judged, cells, context)
    needs = dict(json.loads(given.needs))
    build = page.Build(
        files=Files.of_build(context.scale, needs, **{name: getattr(given, name) for name in LISTS}),
        cells=cells,
        methods=variants.of_params(given.params),
        skipped=skip_reasons(given.skipped),
        claims=given.claims,
        further=given.further,
        private=given.private.split(),
    )
    files.write_text(given.outputs[0], page.render(papers, build, context))


if __name__ == "__main__":
    program.main("report", given, work)
