"""Write the report of a scale: one HTML page of every table, claim and figure, of images, and of their lineage."""

from masquerade.pipeline import program

LISTS = ("faces", "metrics", "recoveries", "checkpoints", "backbones")
given = program.parse_arguments(
    __doc__,
    files=("declared", "claims"),
    lists=("built", "further", *LISTS),
    words=("skipped", "imported", "needs", "private"),
)


def work(_) -> None:
    import json

    from masquerade.core import files
    from masquerade.papers import claims, reference, tables, verdicts
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results
    from masquerade.papers.report import boards, page
    from masquerade.papers.report.chain import Files

    context = Context.of(given.params)
    results = Results(files.read_numbers(given.metrics), skip_reasons(given.skipped), context)
    judged = verdicts.judge(claims.of_papers(claims.load(given.declared), given.params["papers"]), results)
    imported = reference.parse_imported(given.imported)
    papers = []
    for name in given.params["papers"]:
        declared = {item.name: reference.add_imported_rows(item, imported, context.stand_ins)
                    for item in reference.find(name, given.declared.parent, context.latent_stand_ins)}  # fmt: skip
        items = [(declared[path.stem], path) for path in given.built if path.parent.name == name]
        shown = [(tables.build(item, results), path) for item, path in items if item.kind == "table"]
        figures = [(item, path) for item, path in items if item.kind != "table"]
        papers.append(page.arrange_paper(name, shown, figures, judged))
    build = page.Build(
        files=Files.of_build(context.scale, dict(json.loads(given.needs)), **{n: getattr(given, n) for n in LISTS}),
        results=results,
        methods=boards.read_methods(given.params),
        claims=given.claims,
        further=given.further,
        private=given.private.split(),
    )
    files.write_text(given.outputs[0], page.render(papers, build))


if __name__ == "__main__":
    program.main("report", given, work)
