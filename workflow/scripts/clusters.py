"""Draw one figure of clusters of a paper."""

from masquerade.pipeline import program

given = program.parse_arguments(__doc__, files=("declared",), lists=("features",), words=("skipped",))


def work(run) -> None:
    from masquerade.core import face_tables
    from masquerade.papers import clusters, reference
    from masquerade.papers.context import Context, skip_reasons

    context = Context.of(given.params)
    figure = reference.load(given.declared, context.latent_stand_ins)
    seeds = [face_tables.read_features(path) for path in given.features]
    clusters.draw(figure, seeds, skip_reasons(given.skipped), context, given.outputs)
    run.log_artifact(given.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
