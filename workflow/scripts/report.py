"""Write the report of a scale: one HTML page of every table, claim and figure, of images, and of their lineage."""

from masquerade.pipeline import program

LISTS = ("faces", "metrics", "recoveries", "checkpoints", "backbones")
arguments = program.parse_arguments(
    __doc__,
    files=("declared", "claims"),
    lists=("references", "built", "further", *LISTS),
    words=("skipped", "skipped_claims", "imported", "needs", "private"),
)


def work(_) -> None:
    import json

    from masquerade.core import files
    from masquerade.papers import claims, reference, tables, verdicts
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.declarations import Table
    from masquerade.papers.measured import Results
    from masquerade.papers.report import boards, page
    from masquerade.papers.report.chain import Files
    from masquerade.params.paths import Paths

    context, cells = Context.of(arguments.params), files.read_numbers(arguments.metrics)
    declared_claims = claims.of_papers(claims.load(arguments.declared), arguments.params["papers"])
    judged = verdicts.judge(declared_claims, Results(cells, skip_reasons(arguments.skipped_claims), context))
    results = Results(cells, skip_reasons(arguments.skipped), context)
    imported = reference.parse_imported(arguments.imported)
    items = [
        (reference.add_imported_rows(reference.load(file, context.latent_stand_ins), imported, context.stand_ins), path)
        for file, path in zip(arguments.references, arguments.built, strict=True)
    ]
    papers = []
    for name in arguments.params["papers"]:
        own = [(item, path) for item, path in items if item.paper == name]
        shown = [
            (tables.build(item, results), path)
            for item, path in own
            if isinstance(item, Table) and item.kind != "leaderboard"  # its page is shown whole, with the ranks
        ]
        figures = [(item, path) for item, path in own if not isinstance(item, Table)]
        papers.append(page.arrange_paper(name, shown, figures, judged))
    paths = {name: getattr(arguments, name) for name in LISTS}
    build = page.Build(
        files=Files(Paths(context.scale), needs=dict(json.loads(arguments.needs)), **paths),
        results=results,
        methods=boards.read_methods(arguments.params),
        claims=arguments.claims,
        further=arguments.further,
        private=arguments.private.split(),
    )
    files.write_text(arguments.outputs[0], page.render(papers, build))


if __name__ == "__main__":
    program.main("report", arguments, work)
