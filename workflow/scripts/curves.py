"""Draw one figure of a paper from metrics: curves or a trade-off."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(run) -> None:
    from masquerade.core import files
    from masquerade.papers import curves, reference, tradeoffs
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    context = Context.of(given.params)
    figure = reference.load(given.declared, context.latent_stand_ins)
    kind = {"curves": curves, "tradeoff": tradeoffs}[figure.kind]
    kind.draw(figure, Results(files.read_numbers(given.metrics), skip_reasons(given.skipped), context), given.outputs)
    run.log_artifact(given.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
