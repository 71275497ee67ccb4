"""Draw one figure of pictures of a paper: a row a face, a column a method."""

from masquerade import papers, steps
from masquerade.images import FaceArchive
from masquerade.papers import choice, figures, reference

given = steps.arguments(
    __doc__, files=("declared", "faces"), lists=("derived", "source", "measured", "attempts"), words=("skipped",)
)


def work(run) -> None:
    figure, context = reference.load(given.declared), papers.context(given.params)
    apart = None
    if given.source:
        cells = {(*path.parts[-3:-1], int(path.stem)): path for path in given.measured}
        apart = choice.distances(given.source[0], cells, context.judge(figure.judge))
    derived, attempts = ([FaceArchive(path) for path in paths] for paths in (given.derived, given.attempts))
    skipped = papers.skipped(given.skipped)
    figures.grid(figure, FaceArchive(given.faces), derived, skipped, context, given.outputs, apart, attempts)
    run.artifact(given.outputs[0])


if __name__ == "__main__":
    steps.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
