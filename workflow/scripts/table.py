"""Write one table of a paper: the printed value beside the measured one."""

from masquerade import papers, steps
from masquerade.papers import guests, reference, tables

given = steps.arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped", "imported"))


def work(_) -> None:
    context = papers.context(given.params)
    table = guests.seated(reference.load(given.declared), guests.read(given.imported), context.stand_ins)
    cells = steps.read_numbers(given.metrics)
    result = tables.build(table, cells, papers.skipped(given.skipped), context)
    for path, text in zip(given.outputs, (result.csv(), result.markdown(), result.latex()), strict=True):
        steps.write_text(path, text)


if __name__ == "__main__":
    steps.main(f"table {given.declared.parent.name}/{given.declared.stem}", given, work)
