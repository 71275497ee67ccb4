"""Write the leaderboard: the rank of each method in each column, with the numbers behind it."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__, files=("declared",), lists=("metrics",), words=("skipped", "imported", "benchmarks")
)


def work(_) -> None:
    from masquerade.core import files
    from masquerade.papers import leaderboard, reference, tables
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    context, cells = Context.of(arguments.params), files.read_numbers(arguments.metrics)
    declared = reference.load(arguments.declared, context.latent_stand_ins)
    table = reference.add_imported_rows(declared, reference.parse_imported(arguments.imported), context.stand_ins)
    result = tables.build(table, Results(cells, skip_reasons(arguments.skipped), context))
    board = leaderboard.build(result, leaderboard.read_seconds(cells, arguments.benchmarks))
    for path, text in zip(arguments.outputs, (leaderboard.csv(board), leaderboard.markdown(board)), strict=True):
        files.write_text(path, text)


if __name__ == "__main__":
    program.main("leaderboard", arguments, work)
