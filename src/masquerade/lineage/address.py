"""Addresses of results: a number of a table, a row, a claim, a whole table or figure, or any file of a build.

The forms are ``<paper>/<item>``, ``<paper>/<item>:<method>[/<variant>][:<column>[:<dataset>]]``,
``claims:<paper>:<claim>``, and a path. A column is addressed by its title, or by its metric with or without the part,
judge or attempt. Case and punctuation do not matter.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from masquerade.core import errors, files
from masquerade.lineage.history import History, LineageError
from masquerade.params.paths import Paths

FACT_COLUMNS = ("row", "group", "column", "metric", "part", "attempt", "judge", "printed", "measured", "spread",
                "over", "of", "seeds", "reason", "note")  # fmt: skip
"""Columns of a table's record that are shown beside its cell."""
LEADERBOARD = "attackers/leaderboard"
"""The item that ranks all methods. Its files do not lie among the tables."""
Record = Mapping[str, str]
"""One line of the CSV file of a table or of the claims."""


@dataclass(frozen=True)
class AddressedCell:
    """One number of a table, or the verdict of a claim."""

    item: str
    title: str
    value: str
    facts: Mapping[str, str]
    matrix_cells: tuple[tuple[str, str, str], ...]
    """The cells of the matrix that the value was computed from: (dataset, method, variant), all seeds."""


@dataclass(frozen=True)
class ResolvedAddress:
    """A file, and the cells in it that an address refers to. No cells: the whole file."""

    address: str
    file: str
    cells: tuple[AddressedCell, ...] = ()

    def depends(self, path: str, scale: str) -> bool:
        """Whether the cells depend on ``path``, an input of ``file``. Of the metrics, only those of the cells count."""
        if not self.cells or not path.startswith(f"{Paths(scale).metrics_folder}/"):
            return True
        folders = ("/".join(names) for cell in self.cells for names in cell.matrix_cells)
        return any(path.startswith(f"{Paths(scale).metrics_folder}/{folder}/") for folder in folders)


def resolve(address: str, history: History) -> ResolvedAddress:
    """Find the file and the cells of ``address`` in a build. If the bytes of a table are not here, its cells have no
    values.

    Raises LineageError, which lists the known names, if the address matches nothing.
    """
    if history.find_job(address):
        return ResolvedAddress(address, address)
    item, *rest = address.split(":")
    file = _find_file(history.outputs(), history.scale, item)
    if not rest:
        return ResolvedAddress(address, file)
    if not file.endswith(".csv"):
        raise LineageError(f"{item} has no cells with an address. Use the address `{item}` for the whole item.")
    text = history.read(file)
    if text is None:
        return ResolvedAddress(address, file, (_make_cell_of_absent_table(address, file, item, rest, history),))
    records = files.parse_csv(text)
    cells = _find_claims(address, records, rest) if item == "claims" else _find_cells(address, records, item, rest)
    return ResolvedAddress(address, file, tuple(cells))


def _make_cell_of_absent_table(address: str, file: str, item: str, rest: list[str], history: History) -> AddressedCell:
    """A cell without a value. It depends on the metrics of the method in the address, of a claim on all metrics."""
    folder = f"{Paths(history.scale).metrics_folder}/"
    cells = [path.removeprefix(folder).split("/")[:3] for path in history.outputs() if path.startswith(folder)]
    method = "" if item == "claims" else rest[0]
    places = dict.fromkeys((dataset, name, variant) for dataset, name, variant in cells
                           if method in ("", name, f"{name}/{variant}"))  # fmt: skip
    facts = {"metric": " ".join(rest[1:2]), "reason": f"its table is not on this machine; `dvc pull {file}` fetches it",
             "source": "", "verdict": "", "margin": ""}  # fmt: skip
    return AddressedCell(item, address, "", facts, tuple(places))


def _find_file(outputs: Collection[str], scale: str, item: str) -> str:
    tables, figures = f"{Paths(scale).tables}/", f"{Paths(scale).figures}/"
    choices: dict[str, str] = {}
    if (leaderboard := f"{Paths(scale).leaderboard}.csv") in outputs:
        choices[LEADERBOARD] = leaderboard
    for path in sorted(outputs):  # sorted, so that the .csv of a table comes before its .md
        for folder, endings in ((figures, (".png",)), (tables, (".csv", ".md"))):
            if path.startswith(folder) and path.endswith(endings):
                choices.setdefault(path.removeprefix(folder).rpartition(".")[0], path)
    if item not in choices:
        raise LineageError(
            f"There is no table, figure or file '{item}' at scale {scale}. "
            f"{errors.suggest_nearest(item, choices)} An address has the form "
            "<paper>/<item>:<method>[/<variant>][:<column>[:<dataset>]] or claims:<paper>:<claim>, or is a path."
        )
    return choices[item]


def _find_cells(address: str, records: Sequence[Record], item: str, rest: list[str]) -> list[AddressedCell]:
    if len(rest) > 3:
        raise LineageError(
            f"'{address}' has too many parts. The form is {item}:<method>[/<variant>][:<column>[:<dataset>]]."
        )
    kinds = (
        ("method or method/variant", lambda record: [_join_method(record), record["method"]]),
        ("column", list_names),
        ("dataset", lambda record: [record["dataset"]]),
    )
    parent = item
    for part, (kind, names) in zip(rest, kinds, strict=False):
        name = make_slug(part) if kind == "column" else part
        matching = [record for record in records if name in names(record)]
        _require_match(matching, part, parent, kind, {names(record)[0] for record in records})
        records, parent = matching, f"{parent}:{part}"
    return [_make_cell(item, record) for record in records]


def _find_claims(address: str, records: Sequence[Record], rest: list[str]) -> list[AddressedCell]:
    if len(rest) != 2:
        raise LineageError(f"'{address}' is not the address of a claim. The form is claims:<paper>:<claim>.")
    matching = [record for record in records if [record["paper"], record["name"]] == rest]
    choices = {f"{record['paper']}:{record['name']}" for record in records}
    _require_match(matching, ":".join(rest), "claims", "claim", choices)
    sides = dict.fromkeys(
        (record["dataset"], record[f"{side}_method"], record[f"{side}_variant"])
        for record in matching
        for side in ("greater", "than")
    )
    facts = {key: matching[0][key] for key in ("says", "source", "verdict", "margin", "reason")}
    return [AddressedCell("claims", f"{rest[0]}: {facts['says']}", facts["verdict"], facts, tuple(sides))]


def _make_cell(item: str, record: Record) -> AddressedCell:
    title = f"{record['row']} · {_join_title(record)} · {record['dataset']}"
    facts = {key: record[key] for key in FACT_COLUMNS if record.get(key)}
    matrix_cell = (record["dataset"], record["method"], record["variant"])
    return AddressedCell(item, title, record["measured"], facts, (matrix_cell,))


def list_names(record: Record) -> list[str]:
    """Every name of a column, readable ones first, exact ones last: its title, with the group and without; its metric,
    alone and with part, judge or attempt.
    """
    metric = record["metric"]
    details = [record[key] for key in ("part", "judge", "attempt") if record.get(key)]
    titles = [_join_title(record), record["column"], metric, *(f"{metric} {word}" for word in details)]
    return list(dict.fromkeys(make_slug(name) for name in [*titles, " ".join([metric, *details])]))


def list_addresses(item: str, records: Sequence[Record]) -> list[str]:
    """The address of every record of a table.

    A column has the first of its names that no other number of its row has, except numbers on other datasets.
    """
    rows: dict[str, list[tuple[str, list[str]]]] = {}
    for record in records:
        rows.setdefault(_join_method(record), []).append((record["dataset"], list_names(record)))
    addresses = []
    for record in records:
        row = _join_method(record)
        for name in (names := list_names(record)):
            datasets = [dataset for dataset, others in rows[row] if name in others]
            if len(set(datasets)) == len(datasets):
                column = name + (f":{record['dataset']}" if len(datasets) > 1 else "")
                break
        else:
            column = names[-1]
        addresses.append(f"{item}:{row}:{column}")
    return addresses


def make_slug(text: str) -> str:
    """'Face re-ID: CASIA(%)' -> 'face_re_id_casia'."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _join_method(record: Record) -> str:
    return f"{record['method']}/{record['variant']}"


def _join_title(record: Record) -> str:
    return ": ".join(filter(None, (record["group"], record["column"])))


def _require_match(matching: Sequence[Record], part: str, parent: str, kind: str, choices: Collection[str]) -> None:
    """Raise LineageError if no record matches ``part`` of an address. ``parent``: the address without that part."""
    if not matching:
        raise LineageError(f"{parent} has no {kind} '{part}'. {errors.suggest_nearest(part, choices)}")
