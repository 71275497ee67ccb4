"""Tables: what a paper printed beside what was measured here, joined from the metrics of every cell, and as CSV."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from masquerade.core import files
from masquerade.papers import measured, reference
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Printed, Row, Table
from masquerade.papers.measured import Measured, Order, Results


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
    """A table with its measured values, to be written as CSV, Markdown, LaTeX or HTML."""

    table: Table
    context: Context
    lines: tuple[Line, ...]

    def list_records(self) -> list[dict[str, Any]]:
        """One record for each place of the table, line by line."""
        return [self._record(line, entry) for line in self.lines for entry in line.entries]

    def csv(self) -> str:
        """Tidy CSV of the records: numbers at full precision, an empty field for no number."""
        records = self.list_records()
        columns = [name for name in records[0] if name != "attempt" or reference.list_attempts(self.table)]
        return files.format_csv(columns, records)

    def _record(self, line: Line, entry: Entry) -> dict[str, Any]:
        column, printed, value = entry.column, entry.printed, entry.measured
        spread, spread_of = entry.spread
        difference = "" if printed is None or value.value is None else value.value - printed.value
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
            "measured": value.value,
            "low": value.interval[0] if value.interval else "",
            "high": value.interval[1] if value.interval else "",
            "key_spread": value.key_spread,
            "spread": spread,
            "spread_of": spread_of,
            "difference": difference,
            "over": value.over,
            "of": value.of,
            "seeds": value.seeds,
            "best": entry.best,
            "concordant": entry.order.concordant,
            "discordant": entry.order.discordant,
            "undecided": entry.order.undecided,
            "reason": line.reason or value.reason,
            "note": value.note,
        }


def build(table: Table, results: Results) -> TableResult:
    """Join a declared table with the metrics of all cells, all seeds."""
    lines = [_line(table, row, results) for row in table.rows]
    columns = list(zip(*(line.entries for line in lines), strict=True))
    orders = [measured.compare_orders([(entry.printed, entry.measured) for entry in column]) for column in columns]
    best = [find_best([entry for entry, line in zip(column, lines, strict=True) if not line.row.control])
            for column in columns]  # fmt: skip
    for number, line in enumerate(lines):
        entries = (
            replace(entry, order=order[number], best=entry.rounded in values and not line.row.control)
            for entry, order, values in zip(line.entries, orders, best, strict=True)
        )
        lines[number] = replace(line, entries=tuple(entries))
    return TableResult(table, results.context, tuple(lines))


def _line(table: Table, row: Row, results: Results) -> Line:
    unprinted = len(table.columns) - len(row.printed)
    keys, entries = [], []
    for column, printed in zip(table.columns, (*row.printed, *[None] * unprinted), strict=True):
        keys.append((results.context.dataset(column.dataset or table.dataset), row.method, row.variant))
        reason = results.explain_missing(keys[-1])
        value = Measured(reason=reason) if reason else results.measure(keys[-1], column, row.attempt_in(column))
        entries.append(Entry(column, printed.scale(0.01) if printed and column.percent else printed, value))
    keys = list(dict.fromkeys(keys))
    reason = ""
    if all(map(results.explain_missing, keys)):  # the reason stands once, beside the label of the row
        reason = "; ".join(dict.fromkeys(entry.measured.reason for entry in entries))
        entries = [replace(entry, measured=Measured()) for entry in entries]
    return Line(row, tuple(entries), results.facts(*keys), results.count_refused(*keys), reason)


def find_best(entries: Iterable[Entry]) -> list[float]:
    """The best value of a column as a list; no value if there is none, or if no direction is better."""
    entries = [entry for entry in entries if entry.column.direction != "none"]
    values = [entry.rounded for entry in entries if entry.rounded is not None]
    if not values:
        return []
    return [max(values) if entries[0].column.direction == "higher" else min(values)]
