"""Draw one figure of images of a paper: one row for each face, one column for each method."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
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

    context = Context.of(arguments.params)
    figure = reference.load(arguments.declared, context.latent_stand_ins)
    distances = None
    if arguments.source:
        measured = {Cell.of("measurements", path): path for path in arguments.measured}
        distances = grids.measure_distances(arguments.source, measured, context.judge(figure.judge))
    derived, attempts = ([FaceArchive(path) for path in paths] for paths in (arguments.derived, arguments.recoveries))
    private = any(sharing.is_private(path, arguments.private.split()) for path in arguments.inputs)
    images = grids.GridArchives(FaceArchive(arguments.faces), derived, attempts, distances, private)
    grids.draw(figure, images, skip_reasons(arguments.skipped), context, arguments.outputs)
    run.log_artifact(arguments.outputs[0])


if __name__ == "__main__":
    program.main(f"figure {arguments.declared.parent.name}/{arguments.declared.stem}", arguments, work)
