"""The address of a number, as ``masquerade lineage show`` takes it.

``<paper>/<item>:<method>/<variant>:<column>[:<dataset>]``: the column by the shortest of its names that no other column
of that row has.
"""

import re
from collections.abc import Sequence

from masquerade.report.reading import Record


def slug(text: str) -> str:
    """'Face re-ID: CASIA(%)' -> 'face_re_id_casia'."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def of_table(item: str, records: Sequence[Record]) -> list[str]:
    """The address of every record of a table."""
    return [_address(item, record, records) for record in records]


def of_claim(paper: str, name: str) -> str:
    """The address of a claim."""
    return f"claims:{paper}:{name}"


def _address(item: str, record: Record, records: Sequence[Record]) -> str:
    mine = [other for other in records if _of(other) == _of(record)]
    for name in _names(record):
        same = [other for other in mine if name in _names(other)]
        if len({other["dataset"] for other in same}) == len(same):
            place = f":{record['dataset']}" if len(same) > 1 else ""
            return f"{item}:{_of(record)}:{name}{place}"
    return f"{item}:{_of(record)}:{_names(record)[-1]}"


def _of(record: Record) -> str:
    return f"{record['method']}/{record['variant']}"


def _names(record: Record) -> list[str]:
    """The names of a column, readable ones first, exact ones last."""
    titled = ": ".join(filter(None, (record["group"], record["column"])))
    further = [record[key] for key in ("part", "judge", "attempt") if record.get(key)]
    metric = record["metric"]
    told = [titled, record["column"], metric, *(f"{metric} {word}" for word in further), " ".join([metric, *further])]
    return list(dict.fromkeys(map(slug, told)))
