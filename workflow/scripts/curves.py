"""Draw one figure of curves of a paper."""

from masquerade import papers, steps
from masquerade.papers import figures, reference

given = steps.arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(run) -> None:
    figure = reference.load(given.declared)
    cells = steps.read_numbers(given.metrics)
    figures.curves(figure, cells, papers.skipped(given.skipped), papers.context(given.params), given.outputs)
    run.artifact(given.outputs[0])


if __name__ == "__main__":
    steps.main(f"figure {given.declared.parent.name}/{given.declared.stem}", given, work)
