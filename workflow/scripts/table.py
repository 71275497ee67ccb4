"""Write one table of a paper: the printed value beside the measured one."""

import json

from masquerade import papers, steps
from masquerade.papers import reference, tables

given = steps.arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(_) -> None:
    table = reference.load(given.declared)
    cells = [json.loads(path.read_text(encoding="utf-8")) for path in given.metrics]
    result = tables.build(table, cells, papers.skipped(given.skipped), papers.context(given.params))
    for path, text in zip(given.outputs, (result.csv(), result.markdown(), result.latex()), strict=True):
        steps.write_text(path, text)


if __name__ == "__main__":
    steps.main(f"table {given.declared.parent.name}/{given.declared.stem}", given, work)
