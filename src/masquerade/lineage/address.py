"""What a person names: one number of a table, a row, a claim, a whole table or figure, or any file of a build.

``<paper>/<item>``, ``<paper>/<item>:<method>[/<variant>][:<column>[:<dataset>]]``, ``claims:<paper>:<claim>``, or a
path. A column is named by its title, its metric, or both with the judge; case and punctuation do not matter.
"""

import csv
import io
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from masquerade.lineage.history import LineageError

SAID = ("row", "group", "column", "metric", "part", "attempt", "judge", "printed", "measured", "spread", "over", "of",
        "seeds", "reason", "note")  # fmt: skip
"""What of a table's record is told beside its cell."""


@dataclass(frozen=True)
class Cell:
    """One number: where it stands, what it says, and from which cells of the matrix it was computed."""

    item: str
    title: str
    value: str
    facts: Mapping[str, str]
    cells: tuple[tuple[str, str, str], ...]
    """(dataset, method, variant), all seeds."""


@dataclass(frozen=True)
class Asked:
    """What an address names: numbers (none where a whole file is meant), the file that holds them, and on which of
    its inputs they depend."""

    address: str
    file: str
    cells: tuple[Cell, ...] = ()

    def depends(self, path: str, scale: str) -> bool:
        """Whether an input of ``file`` matters: of metrics, those of the named cells alone."""
        if not self.cells or not path.startswith(f"results/{scale}/metrics/"):
            return True
        return any(
            path.startswith(f"results/{scale}/metrics/{'/'.join(c)}/") for cell in self.cells for c in cell.cells
        )


def resolve(address: str, scale: str, outputs: Collection[str], read: Callable[[str], str]) -> Asked:
    """Find what ``address`` names among the ``outputs`` of a build; ``read`` gives the text of one of them.

    Raises LineageError, saying what there is, where it names nothing.
    """
    if address in outputs:
        return Asked(address, address)
    item, *rest = address.split(":")
    file = _file(outputs, scale, item)
    if not rest:
        return Asked(address, file)
    if not file.endswith(".csv"):
        raise LineageError(f"{item} has no cells that can be named; ask for `{item}` as a whole.")
    records = list(csv.DictReader(io.StringIO(read(file))))
    cells = _claims(address, records, rest) if item == "claims" else _cells(address, records, item, rest)
    return Asked(address, file, tuple(cells))


def _file(outputs: Collection[str], scale: str, item: str) -> str:
    tables, figures = f"results/{scale}/tables/", f"results/{scale}/figures/"
    known: dict[str, str] = {}
    for path in sorted(outputs):  # by name: of a table, the .csv comes before the .md
        for folder, endings in ((figures, (".png",)), (tables, (".csv", ".md"))):
            if path.startswith(folder) and path.endswith(endings):
                known.setdefault(path.removeprefix(folder).rpartition(".")[0], path)
    if item not in known:
        raise LineageError(
            f"There is no table, figure or file '{item}' at scale {scale}. {_told(item, known, 'built here')} "
            "An address is <paper>/<item>:<method>[/<variant>][:<column>[:<dataset>]], claims:<paper>:<claim>, a path."
        )
    return known[item]


def _cells(address: str, records: Iterable[Mapping[str, str]], item: str, rest: list[str]) -> list[Cell]:
    if len(rest) > 3:
        raise LineageError(f"'{address}' has too many parts: {item}:<method>[/<variant>][:<column>[:<dataset>]].")
    method, *more = rest
    found = [record for record in records if method in (record["method"], _of(record))]
    _must(found, method, item, "method or method/variant", records, _of)
    if more:
        kept = [record for record in found if slug(more[0]) in names(record)]
        _must(kept, more[0], f"{item}:{method}", "column", found, lambda record: slug(_column(record)))
        found = kept
    if len(more) > 1:
        kept = [record for record in found if record["dataset"] == more[1]]
        _must(kept, more[1], f"{item}:{method}:{more[0]}", "dataset", found, lambda record: record["dataset"])
        found = kept
    return [_cell(item, record) for record in found]


def _claims(address: str, records: Iterable[Mapping[str, str]], rest: list[str]) -> list[Cell]:
    if len(rest) != 2:
        raise LineageError(f"'{address}' names no claim: claims:<paper>:<claim>.")
    paper, name = rest
    found = [record for record in records if (record["paper"], record["name"]) == (paper, name)]
    _must(found, f"{paper}:{name}", "claims", "claim", records, lambda record: f"{record['paper']}:{record['name']}")
    sides = dict.fromkeys(
        (record["dataset"], record[f"{side}_method"], record[f"{side}_variant"])
        for record in found
        for side in ("greater", "than")
    )
    told = {key: found[0][key] for key in ("says", "source", "verdict", "margin", "reason")}
    return [Cell("claims", f"{paper}: {told['says']}", told["verdict"], told, tuple(sides))]


def _cell(item: str, record: Mapping[str, str]) -> Cell:
    title = f"{record['row']} · {_column(record)} · {record['dataset']}"
    facts = {key: record[key] for key in SAID if record.get(key)}
    where = (record["dataset"], record["method"], record["variant"])
    return Cell(item, title, record["measured"], facts, (where,))


def names(record: Mapping[str, str]) -> set[str]:
    """Every name of a column: its title, with its group, its metric, and that with part, judge or attempt."""
    metric = record["metric"]
    further = [record[key] for key in ("part", "judge", "attempt") if record.get(key)]
    told = [record["column"], _column(record), metric, *(f"{metric} {word}" for word in further)]
    return {slug(name) for name in [*told, " ".join([metric, *further])]}


def slug(text: str) -> str:
    """'Face re-ID: CASIA(%)' -> 'face_re_id_casia'."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _of(record: Mapping[str, str]) -> str:
    return f"{record['method']}/{record['variant']}"


def _column(record: Mapping[str, str]) -> str:
    return ": ".join(filter(None, (record["group"], record["column"])))


def _must(found: list[Any], asked: str, where: str, what: str, records: Iterable[Any], name: Callable) -> None:
    if not found:
        known = dict.fromkeys(name(record) for record in records)
        raise LineageError(f"{where} has no {what} '{asked}'. {_told(asked, known, 'there')}")


def _told(asked: str, known: Iterable[str], where: str) -> str:
    known = list(known)
    near = get_close_matches(asked, known, n=1, cutoff=0.5)
    return (f"Did you mean '{near[0]}'? " if near else "") + f"What is {where}: {', '.join(known) or 'nothing'}."
