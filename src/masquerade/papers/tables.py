"""Tables: what a paper printed beside what was measured here, joined from the metrics of every cell."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from masquerade.papers import ordering
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Row, Table
from masquerade.papers.measured import Cells, Measured
from masquerade.papers.table_result import Entry, Line, TableResult
from masquerade.params.matrix import Setting


def build(
    table: Table, cells: Iterable[Mapping[str, Any]], skipped: Mapping[Setting, str], context: Context
) -> TableResult:
    """Join a declared table with the metrics of all cells, all seeds.

    ``skipped`` gives the reason for each (dataset, method, variant) that was not run.
    """
    measured = Cells(cells)
    lines = [_line(table, row, measured, skipped, context) for row in table.rows]
    orders = [ordering.orders([(line.entries[place].printed, line.entries[place].measured) for line in lines])
              for place in range(len(table.columns))]  # fmt: skip
    best = [_best(column, [line.entries[place] for line in lines if not line.row.control])
            for place, column in enumerate(table.columns)]  # fmt: skip
    marked = []
    for number, line in enumerate(lines):
        entries = (
            replace(entry, order=order[number], best=entry.rounded in values and not line.row.control)
            for entry, order, values in zip(line.entries, orders, best, strict=True)
        )
        marked.append(replace(line, entries=tuple(entries)))
    return TableResult(table, context, tuple(marked))


def _line(table: Table, row: Row, cells: Cells, skipped: Mapping[Setting, str], context: Context) -> Line:
    unprinted = len(table.columns) - len(row.printed)
    keys, entries = [], []
    for column, printed in zip(table.columns, (*row.printed, *[None] * unprinted), strict=True):
        keys.append((context.dataset(column.dataset or table.dataset), row.method, row.variant))
        reason = "" if keys[-1] in cells else skipped.get(keys[-1], "it has no metrics").rstrip(".")
        attempt = row.attempt_in(column)
        value = Measured(reason=reason) if reason else cells.measure(keys[-1], column, context, attempt)
        entries.append(Entry(column, printed.scale(0.01) if printed and column.percent else printed, value))
    keys = list(dict.fromkeys(keys))
    reasons = dict.fromkeys(entry.measured.reason for entry in entries)
    reason = "" if any(key in cells for key in keys) else "; ".join(reasons)
    if reason:  # stands once, beside the label of the row
        entries = [replace(entry, measured=Measured()) for entry in entries]
    return Line(row, tuple(entries), cells.facts(*keys), cells.count_refused(*keys), reason)


def _best(column: Column, entries: Iterable[Entry]) -> list[float]:
    """The best value of a column as a list; no value if there is none, or if no direction is better."""
    values = [entry.rounded for entry in entries if entry.rounded is not None]
    if not values or column.direction == "none":
        return []
    return [max(values) if column.direction == "higher" else min(values)]
