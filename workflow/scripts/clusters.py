"""Draw one figure of clusters of a paper."""

from masquerade import features, papers, steps
from masquerade.papers import clusters, reference

given = steps.arguments(__doc__, files=("declared",), lists=("features",), words=("skipped",))


def work(run) -> None:
    figure, context = reference.load(given.declared), papers.context(given.params)
    cells = [features.read(path) for path in given.features]
    clusters.clusters(figure, cells, papers.skipped(given.skipped), context, given.outputs)
    run.artifact(given.outputs[0])


if __name__ == "__main__":
    steps.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
