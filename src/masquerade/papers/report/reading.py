"""Reads tables and claims back from their CSV files, so that the page shows their numbers and computes none again."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from masquerade.core import files
from masquerade.core.errors import ReferenceFileError
from masquerade.papers.claims import Claim
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Row, Table
from masquerade.papers.measured import Cells, Measured
from masquerade.papers.ordering import Order
from masquerade.papers.printed import Printed
from masquerade.papers.tables import Entry, Line, TableResult

Record = Mapping[str, str]
"""One line of a CSV file."""


@dataclass(frozen=True)
class ComparedNumber:
    """One side of a comparison: its images, its measure, and its value in each seed (None: no number)."""

    method: str
    variant: str
    attempt: str
    metric: str
    part: str
    judge: str
    values: tuple[float | None, ...]
    spread: float | None
    over: str
    of: str

    @property
    def value(self) -> float | None:
        """The mean over the seeds that have a number, or None when no seed has one."""
        known = [value for value in self.values if value is not None]
        return sum(known) / len(known) if known else None


@dataclass(frozen=True)
class Assertion:
    """One claim of a paper with its verdict, its margin (None: a number is missing) and the interval of the margin."""

    claim: Claim
    dataset: str
    verdict: str
    reason: str
    margin: float | None
    interval: tuple[float, float] | None
    pairs: tuple[tuple[ComparedNumber, ComparedNumber], ...]
    """(the side that is claimed to be greater, the other side)."""


def records(text: str) -> Sequence[Record]:
    """The lines of a CSV file."""
    return files.parse_csv(text)


def table(declared: Table, lines: Sequence[Record], cells: Cells, context: Context) -> TableResult:
    """The inverse of `TableResult.csv`. The statements of the methods come from the metrics (``cells``).

    A row that is not declared keeps its place. Raises ReferenceFileError when the columns differ.
    """
    width = len(declared.columns)
    chunks = [lines[start : start + width] for start in range(0, len(lines), width)]
    titles = [column.title for column in declared.columns]
    if any([record["column"] for record in chunk] != titles for chunk in chunks):
        raise ReferenceFileError(
            f"The CSV of {declared.key} has other columns than reference/{declared.key}.yaml: build the table again."
        )
    rows = list(declared.rows)
    return TableResult(declared, context, tuple(_line(declared, rows, chunk, cells) for chunk in chunks))


def _line(declared: Table, rows: list[Row], chunk: Sequence[Record], cells: Cells) -> Line:
    entries = [_entry(column, record) for column, record in zip(declared.columns, chunk, strict=True)]
    keys = list(dict.fromkeys((record["dataset"], record["method"], record["variant"]) for record in chunk))
    reasons = {entry.measured.reason for entry in entries}
    reason = reasons.pop() if len(reasons) == 1 and not any(entry.measured.seeds for entry in entries) else ""
    if reason:  # stands once, beside the label of the row
        entries = [replace(entry, measured=replace(entry.measured, reason="")) for entry in entries]
    return Line(_row(rows, chunk[0]), tuple(entries), cells.facts(*keys), cells.count_refused(*keys), reason)


def _row(rows: list[Row], first: Record) -> Row:
    """The declared row of a record, removed from ``rows``; or a new row, from the record itself."""
    title, method, variant = first["row"], first["method"], first["variant"]
    for place, row in enumerate(rows):
        if (row.title, row.method, row.variant) == (title, method, variant):
            return rows.pop(place)
    note = "not declared by the paper's table"
    return Row(title=title, method=method, variant=variant, attempt=first.get("attempt", ""), note=note)


def _entry(column: Column, record: Record) -> Entry:
    printed = None
    if record["printed"]:
        spread = _number(record["printed_spread"])
        printed = Printed(text=record["printed"], value=float(record["printed_value"]), spread=spread)
    own = column.spread == "metric"
    measured = Measured(
        value=_number(record["measured"]),
        interval=_interval(record),
        key_spread=_number(record["key_spread"]),
        seed_spread=None if own else _number(record["spread"]),
        own_spread=_number(record["spread"]) if own else None,
        own_spread_of=record["spread_of"] if own else "",
        over=int(record["over"] or 0),
        of=int(record["of"] or 0),
        seeds=int(record["seeds"] or 0),
        note=record["note"],
        reason=record["reason"],
    )
    order = Order(*(int(record[field]) for field in ("concordant", "discordant", "undecided")))
    return Entry(column, printed, measured, record["best"] == "True", order)


def _interval(record: Record) -> tuple[float, float] | None:
    low, high = _number(record["low"]), _number(record["high"])
    return None if low is None or high is None else (low, high)


def assertions(claims: Iterable[Claim], lines: Iterable[Record]) -> list[Assertion]:
    """Every claim of the CSV file with its declaration, in the order of the file.

    Raises ReferenceFileError when the file holds a claim that is not declared.
    """
    known = {(claim.paper, claim.name): claim for claim in claims}
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in lines:
        grouped.setdefault((record["paper"], record["name"]), []).append(record)
    unknown = [":".join(key) for key in grouped if key not in known]
    if unknown:
        raise ReferenceFileError(f"The CSV of the claims holds what claims.yaml does not declare: {unknown[0]}.")
    return [_assertion(known[key], mine) for key, mine in grouped.items()]


def _assertion(claim: Claim, lines: Sequence[Record]) -> Assertion:
    first = lines[0]
    pairs: dict[tuple[tuple[str, ...], ...], list[Record]] = {}
    for line in lines:
        pairs.setdefault((_side(line, "greater"), _side(line, "than")), []).append(line)
    return Assertion(
        claim=claim,
        dataset=first["dataset"],
        verdict=first["verdict"],
        reason=first["reason"],
        margin=_number(first["margin"]),
        interval=_interval(first),
        pairs=tuple((_read_side(mine, "greater"), _read_side(mine, "than")) for mine in pairs.values()),
    )


SIDE = ("method", "variant", "attempt", "metric", "part", "judge")


def _side(line: Record, which: str) -> tuple[str, ...]:
    return tuple(line[f"{which}_{field}"] for field in SIDE)


def _read_side(lines: Sequence[Record], which: str) -> ComparedNumber:
    fields: dict[str, Any] = dict(zip(SIDE, _side(lines[0], which), strict=True))
    spreads = [_number(line[f"{which}_spread"]) for line in lines]
    return ComparedNumber(
        **fields,
        values=tuple(_number(line[f"{which}_value"]) for line in lines),
        spread=spreads[0] if len(spreads) == 1 else None,
        over=lines[0][f"{which}_over"],
        of=lines[0][f"{which}_of"],
    )


def _number(text: str) -> float | None:
    return float(text) if text else None
