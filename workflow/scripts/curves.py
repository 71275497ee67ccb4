"""Draw one figure of a paper from metrics: curves or a trade-off."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(run) -> None:
    from masquerade.core import files
    from masquerade.papers import figures, reference, tradeoffs
    from masquerade.papers.context import Context, skip_reasons

    context, cells = Context.of(given.params), files.read_numbers(given.metrics)
    figure = reference.load(given.declared, context.latent_stand_ins)
    draw = {"curves": figures.curves, "tradeoff": tradeoffs.tradeoff}[figure.kind]
    draw(figure, cells, skip_reasons(given.skipped), context, given.outputs)
    run.log_artifact(given.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
