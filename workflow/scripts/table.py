"""Write one table of a paper: the printed value beside the measured one."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped", "imported"))


def work(_) -> None:
    from masquerade.core import files
    from masquerade.papers import documents, reference, tables
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    context = Context.of(arguments.params)
    declared = reference.load(arguments.declared, context.latent_stand_ins)
    table = reference.add_imported_rows(declared, reference.parse_imported(arguments.imported), context.stand_ins)
    result = tables.build(
        table, Results(files.read_numbers(arguments.metrics), skip_reasons(arguments.skipped), context)
    )
    for path, text in zip(
        arguments.outputs, (result.csv(), documents.markdown(result), documents.latex(result)), strict=True
    ):
        files.write_text(path, text)


if __name__ == "__main__":
    program.main(f"table {arguments.declared.parent.name}/{arguments.declared.stem}", arguments, work)
