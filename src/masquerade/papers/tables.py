"""Tables: what a paper printed beside what was measured here, joined from the metrics of every cell, and as CSV."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from masquerade.core import files
from masquerade.papers import ordering, reference
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Row, Table
from masquerade.papers.measured import Cells, Measured
from masquerade.papers.ordering import Order
from masquerade.papers.printed import Printed
from masquerade.params.matrix import Setting

FIELDS = (
    "row", "method", "variant", "dataset", "group", "column", "metric", "part", "attempt", "paper_judge", "judge",
    "direction", "printed", "printed_value", "printed_spread", "measured", "low", "high", "key_spread", "spread",
    "spread_of", "difference", "over", "of", "seeds", "best", "concordant", "discordant", "undecided", "reason", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One place of a table: the printed number and the measured one. Either may be missing.

    ``order``: its comparisons with the other rows of its column.
    """

    column: Column
    printed: Printed | None
    measured: Measured
    best: bool = False
    order: Order = field(default_factory=Order)

    @property
    def spread(self) -> tuple[float | None, str]:
        """The number behind ± and what it is taken over: the metric's own spread, or that over seeds, by the column."""
        if self.column.spread == "metric":
            return self.measured.own_spread, self.measured.own_spread_of
        return self.measured.seed_spread, f"{self.measured.seeds} seeds" if self.measured.seeds > 1 else ""

    @property
    def rounded(self) -> float | None:
        """The measured value as it is shown, in the unit of its column. Equal rounded values are equally good."""
        value = self.measured.value
        return None if value is None else round(value * self.unit, self.column.digits)

    @property
    def unit(self) -> float:
        """The factor from the measured value to the shown one: 100 in a column of percent."""
        return 100.0 if self.column.percent else 1.0


@dataclass(frozen=True)
class Line:
    """One row of a table. ``reason`` says why nothing of it was measured; '' if something was."""

    row: Row
    entries: tuple[Entry, ...]
    facts: Mapping[str, list[Any]]
    refused: tuple[int, int]
    reason: str = ""


@dataclass(frozen=True)
class TableResult:
    """A table with its measured values, to be written as CSV, Markdown or LaTeX."""

    table: Table
    context: Context
    lines: tuple[Line, ...]

    def csv(self) -> str:
        """Tidy CSV: one record for each place of the table, numbers at full precision, an empty field for no number."""
        columns = [field for field in FIELDS if field != "attempt" or reference.list_attempts(self.table)]
        return files.format_csv(columns, (self._record(line, entry) for line in self.lines for entry in line.entries))

    def _record(self, line: Line, entry: Entry) -> dict[str, Any]:
        column, printed, measured = entry.column, entry.printed, entry.measured
        spread, spread_of = entry.spread
        difference = "" if printed is None or measured.value is None else measured.value - printed.value
        return {
            "row": line.row.title,
            "method": line.row.method,
            "variant": line.row.variant,
            "dataset": self.context.dataset(column.dataset or self.table.dataset),
            "group": column.group,
            "column": column.title,
            "metric": column.metric,
            "part": column.part,
            "attempt": line.row.attempt_in(column),
            "paper_judge": column.judge.name if column.judge and column.printed else "",
            "judge": self.context.judge(column.judge),
            "direction": column.direction,
            "printed": printed.text if printed else "",
            "printed_value": printed.value if printed else "",
            "printed_spread": printed.spread if printed else "",
            "measured": measured.value,
            "low": measured.interval[0] if measured.interval else "",
            "high": measured.interval[1] if measured.interval else "",
            "key_spread": measured.key_spread,
            "spread": spread,
            "spread_of": spread_of,
            "difference": difference,
            "over": measured.over,
            "of": measured.of,
            "seeds": measured.seeds,
            "best": entry.best,
            "concordant": entry.order.concordant,
            "discordant": entry.order.discordant,
            "undecided": entry.order.undecided,
            "reason": line.reason or measured.reason,
            "note": measured.note,
        }


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
