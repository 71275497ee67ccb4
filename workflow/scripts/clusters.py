"""Draw one figure of clusters of a paper."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("declared",), lists=("features",), words=("skipped",))


def work(run) -> None:
    from masquerade.core import face_tables
    from masquerade.papers import clusters, reference
    from masquerade.papers.context import Context, skip_reasons

    context = Context.of(arguments.params)
    figure = reference.load(arguments.declared, context.latent_stand_ins)
    seeds = [face_tables.read_features(path) for path in arguments.features]
    clusters.draw(figure, seeds, skip_reasons(arguments.skipped), context, arguments.outputs)
    run.log_artifact(arguments.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {arguments.declared.parent.name}/{arguments.declared.stem}", arguments, work)
