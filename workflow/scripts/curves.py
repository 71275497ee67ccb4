"""Draw one figure of a paper from metrics: curves or a trade-off."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped", "imported"))


def work(run) -> None:
    from masquerade.core import files
    from masquerade.papers import curves, reference, tradeoffs
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    context = Context.of(arguments.params)
    declared = reference.load(arguments.declared, context.latent_stand_ins)
    figure = reference.add_imported_rows(declared, reference.parse_imported(arguments.imported), context.stand_ins)
    kind = {"curves": curves, "tradeoff": tradeoffs}[figure.kind]
    kind.draw(
        figure,
        Results(files.read_numbers(arguments.metrics), skip_reasons(arguments.skipped), context),
        arguments.outputs,
    )
    run.log_artifact(arguments.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {arguments.declared.parent.name}/{arguments.declared.stem}", arguments, work)
