"""Write one table of a paper: the printed value beside the measured one."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped", "imported"))


def work(_) -> None:
    from masquerade.core import files
    from masquerade.papers import documents, reference, tables
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    context = Context.of(given.params)
    declared = reference.load(given.declared, context.latent_stand_ins)
    table = reference.add_imported_rows(declared, reference.parse_imported(given.imported), context.stand_ins)
    result = tables.build(table, Results(files.read_numbers(given.metrics), skip_reasons(given.skipped), context))
    for path, text in zip(
        given.outputs, (result.csv(), documents.markdown(result), documents.latex(result)), strict=True
    ):
        files.write_text(path, text)


if __name__ == "__main__":
    program.main(f"table {given.declared.parent.name}/{given.declared.stem}", given, work)
