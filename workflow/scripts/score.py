"""Write the page of what another program made: where it stands among all methods, and its extreme faces."""

from masquerade.pipeline import program

arguments = program.parse_arguments(
    __doc__,
    files=("leaderboard", "metrics", "faces", "derived", "source", "measured"),
    words=("variant", "private"),
)


def work(run) -> None:
    from masquerade.core import files
    from masquerade.core.discovery import IMPORTED
    from masquerade.core.images import REFUSED, TEST, FaceArchive
    from masquerade.papers import grids, score_page
    from masquerade.papers.context import Context
    from masquerade.params import sharing
    from masquerade.params.blocks import ImportedImages
    from masquerade.params.matrix import Cell

    context, variant = Context.of(arguments.params), arguments.variant
    [cell] = files.read_numbers([arguments.metrics])
    about = arguments.params.settings(f"methods.{IMPORTED}.variants.{variant}", ImportedImages)
    faces = FaceArchive(arguments.faces)
    unseen = len(faces.select(TEST, status=REFUSED))  # the program got no face whose original was refused
    counts = cell["statement"]["refused"] - unseen, cell["statement"]["faces"] - unseen
    records = files.parse_csv(arguments.leaderboard.read_text(encoding="utf-8"))
    page, picture = arguments.outputs
    files.write_text(page, score_page.write(records, variant, about.model_dump(), counts, context))
    distances = grids.measure_distances(
        arguments.source, {Cell.of("measurements", arguments.measured): arguments.measured}, score_page.JUDGE
    )
    private = sharing.is_private(arguments.faces, arguments.private.split())
    score_page.draw(faces, FaceArchive(arguments.derived), distances, private, context, picture)
    run.log_artifact(picture)


if __name__ == "__main__":
    program.main(f"score {arguments.variant}", arguments, work)
