"""The address of a number, as ``masquerade lineage show`` takes it.

``<paper>/<item>:<method>/<variant>:<column>[:<dataset>]``. The column has the first of its names that no other column
of the row has.
"""

from collections.abc import Sequence

from masquerade.lineage.address import make_slug
from masquerade.papers.report.reading import Record

NamedRecord = tuple[Record, list[str]]
"""A record and the names of its column."""


def of_table(item: str, records: Sequence[Record]) -> list[str]:
    """The address of every record of a table."""
    rows: dict[str, list[NamedRecord]] = {}
    named = [(record, _names(record)) for record in records]
    for one in named:
        rows.setdefault(_row(one[0]), []).append(one)
    return [f"{item}:{_row(one[0])}:{_column(one, rows[_row(one[0])])}" for one in named]


def of_claim(paper: str, name: str) -> str:
    """The address of a claim."""
    return f"claims:{paper}:{name}"


def _column(one: NamedRecord, row: Sequence[NamedRecord]) -> str:
    """The first name of a column that no other number of its row has, except numbers on other datasets."""
    record, names = one
    for name in names:
        same = [other["dataset"] for other, theirs in row if name in theirs]
        if len(set(same)) == len(same):
            return name + (f":{record['dataset']}" if len(same) > 1 else "")
    return names[-1]


def _row(record: Record) -> str:
    return f"{record['method']}/{record['variant']}"


def _names(record: Record) -> list[str]:
    """The names of a column, readable ones first, exact ones last."""
    titled = ": ".join(filter(None, (record["group"], record["column"])))
    further = [record[key] for key in ("part", "judge", "attempt") if record.get(key)]
    metric = record["metric"]
    names = [titled, record["column"], metric, *(f"{metric} {word}" for word in further), " ".join([metric, *further])]
    return list(dict.fromkeys(map(make_slug, names)))
