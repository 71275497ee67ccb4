"""Write the report of a scale: one HTML page with every table, claim, picture and trade-off, and their lineage."""

import json

from masquerade import papers, steps
from masquerade.papers import claims, reference
from masquerade.papers.measured import Cells
from masquerade.report import page, reading
from masquerade.report.chain import Files

KINDS = tuple(Files.__dataclass_fields__)
given = steps.arguments(__doc__, files=("declared", "claims"), lists=("built", "further", *KINDS), words=("skipped",))


def work(_) -> None:
    context, names = papers.context(given.params), given.params["papers"]
    declared = {item.key: item for name in names for item in reference.find(name, given.declared.parent)}
    items = {name: [] for name in names}
    for path in given.built:
        items[path.parent.name].append((declared[f"{path.parent.name}/{path.stem}"], path))
    cells = Cells(json.loads(path.read_text(encoding="utf-8")) for path in given.metrics)
    asserted = reading.assertions(
        claims.load(given.declared), reading.records(given.claims.read_text(encoding="utf-8"))
    )
    html = page.render(
        [page.paper(name, items[name], asserted, cells, context) for name in names],
        Files(**{kind: tuple(getattr(given, kind)) for kind in KINDS}),
        cells,
        {name.split(".")[1]: knobs for name, knobs in given.params.items() if name.endswith(".variants")},
        papers.skipped(given.skipped),
        given.claims,
        given.further,
        context,
    )
    steps.write_text(given.outputs[0], html)


if __name__ == "__main__":
    steps.main("report", given, work)
