"""Draw one figure of pictures of a paper: one row for each face, one column for each method."""

from masquerade.pipeline import program

given = program.parse_arguments(
    __doc__,
    files=("declared", "faces"),
    optional=("source",),
    lists=("derived", "measured", "recoveries"),
    words=("skipped", "private"),
)


def work(run) -> None:
    from masquerade.core.images import FaceArchive
    from masquerade.papers import grids, reference
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.params import sharing
    from masquerade.params.matrix import Cell

    context = Context.of(given.params)
    figure = reference.load(given.declared, context.latent_stand_ins)
    distances = None
    if given.source:
        measured = {Cell.of("measurements", path): path for path in given.measured}
        distances = grids.measure_distances(given.source, measured, context.judge(figure.judge))
    derived, attempts = ([FaceArchive(path) for path in paths] for paths in (given.derived, given.recoveries))
    private = any(sharing.is_private(path, given.private.split()) for path in given.inputs)
    images = grids.GridArchives(FaceArchive(given.faces), derived, attempts, distances, private)
    grids.draw(figure, images, skip_reasons(given.skipped), context, given.outputs)
    run.log_artifact(given.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
