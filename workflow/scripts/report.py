"""Write the report of a scale: one HTML page with every table, claim, picture and trade-off, and their lineage."""

from pathlib import Path

from masquerade import papers, steps
from masquerade.papers import claims, reference
from masquerade.papers.measured import Cells
from masquerade.report import page, reading
from masquerade.report.chain import Files

LISTS = ("faces", "metrics", "source", "attempts", "attempts_measured", "checkpoints", "backbones")
given = steps.arguments(
    __doc__, files=("declared", "claims", "measured", "derived"), lists=("built", "further", *LISTS), words=("skipped",)
)


def work(_) -> None:
    context, names = papers.context(given.params), given.params["papers"]
    declared = {item.key: item for name in names for item in reference.find(name, given.declared.parent)}
    built = {name: [] for name in names}
    for path in given.built:
        built[path.parent.name].append((declared[f"{path.parent.name}/{path.stem}"], path))
    cells = Cells(steps.read_numbers(given.metrics))
    places = [Path(*path.parts[-4:]) for path in given.metrics]
    files = Files(
        measured=tuple(given.measured / place.with_suffix(".parquet") for place in places),
        derived=tuple(given.derived / place.with_suffix(".zip") for place in places),
        **{name: tuple(getattr(given, name)) for name in LISTS},
    )
    records = reading.records(given.claims.read_text(encoding="utf-8"))
    asserted = reading.assertions(claims.load(given.declared), records)
    html = page.render(
        [page.paper(name, built[name], asserted, cells, context) for name in names],
        files,
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
