"""Tables: what a paper printed beside what was measured here, joined from the metrics of every cell."""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from masquerade.papers import latex, markdown, reference
from masquerade.papers.measured import Cells, Context, Measured
from masquerade.papers.printed import Printed
from masquerade.papers.reference import Column, Row, Table

FIELDS = (
    "row", "method", "variant", "dataset", "group", "column", "metric", "part", "attempt", "paper_judge", "judge",
    "direction", "printed", "printed_value", "printed_spread", "measured", "spread", "spread_of", "difference",
    "over", "of", "seeds", "best", "reason", "note",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One place of a table: the printed number and the measured one, either of which may be missing."""

    column: Column
    printed: Printed | None
    measured: Measured
    best: bool = False

    @property
    def spread(self) -> tuple[float | None, str]:
        """What follows ±, and over what it is: the metric's own where the column asks for it, else over seeds."""
        if self.column.spread == "metric":
            return self.measured.own_spread, self.measured.own_spread_of
        return self.measured.seed_spread, f"{self.measured.seeds} seeds" if self.measured.seeds > 1 else ""

    @property
    def rounded(self) -> float | None:
        """The measured value as it is shown, in the unit of its column; what looks the same is equally good."""
        value = self.measured.value
        return None if value is None else round(value * self.unit, self.column.digits)

    @property
    def unit(self) -> float:
        """What a measured share is shown as a multiple of."""
        return 100.0 if self.column.percent else 1.0


@dataclass(frozen=True)
class Line:
    """One row of a table. ``reason`` says why nothing of it was measured; '' where something was."""

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
        """Tidy: one record a place of the table, numbers at full precision, nothing where there is none."""
        text = io.StringIO()
        fields = [field for field in FIELDS if field != "attempt" or reference.attempted(self.table)]
        writer = csv.DictWriter(text, fields, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for line in self.lines:
            writer.writerows(self._record(line, entry) for entry in line.entries)
        return text.getvalue()

    def markdown(self) -> str:
        """For people: printed and measured value side by side in each cell, then what stands for what."""
        return markdown.page(self)

    def latex(self) -> str:
        """A ``table*`` for booktabs and graphicx."""
        return latex.table(self)

    def _record(self, line: Line, entry: Entry) -> dict[str, Any]:
        column, printed, measured = entry.column, entry.printed, entry.measured
        spread, spread_of = entry.spread
        both = printed is not None and measured.value is not None
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
            "spread": spread,
            "spread_of": spread_of,
            "difference": measured.value - printed.value if both else "",
            "over": measured.over,
            "of": measured.of,
            "seeds": measured.seeds,
            "best": entry.best,
            "reason": line.reason or measured.reason,
            "note": measured.note,
        }


def build(
    table: Table,
    cells: Iterable[Mapping[str, Any]],
    skipped: Mapping[tuple[str, str, str], str],
    context: Context,
) -> TableResult:
    """Join a declared table with the metrics of all cells, all seeds.

    ``skipped`` gives the reason of each (dataset, method, variant) that was not run.
    """
    measured = Cells(cells)
    lines = [_line(table, row, measured, skipped, context) for row in table.rows]
    best = [_best(column, [line.entries[place] for line in lines if not line.row.control])
            for place, column in enumerate(table.columns)]  # fmt: skip
    return TableResult(table, context, tuple(_marked(line, best) for line in lines))


def _line(table: Table, row: Row, cells: Cells, skipped: Mapping[tuple[str, str, str], str], context: Context) -> Line:
    unprinted = len(table.columns) - len(row.printed)
    keys, entries = [], []
    for column, printed in zip(table.columns, (*row.printed, *[None] * unprinted), strict=True):
        keys.append((context.dataset(column.dataset or table.dataset), row.method, row.variant))
        reason = "" if keys[-1] in cells else skipped.get(keys[-1], "it has no metrics").rstrip(".")
        attempt = row.attempt_in(column)
        value = Measured(reason=reason) if reason else cells.measured(keys[-1], column, context, attempt)
        entries.append(Entry(column, printed.scaled(0.01) if printed and column.percent else printed, value))
    keys = list(dict.fromkeys(keys))
    whole = "" if any(key in cells for key in keys) else "; ".join(dict.fromkeys(e.measured.reason for e in entries))
    if whole:  # said once, of the row
        entries = [replace(entry, measured=Measured()) for entry in entries]
    return Line(row, tuple(entries), cells.facts(*keys), cells.refused(*keys), whole)


def _best(column: Column, entries: Iterable[Entry]) -> float | None:
    values = [entry.rounded for entry in entries if entry.rounded is not None]
    if not values or column.direction == "none":
        return None
    return max(values) if column.direction == "higher" else min(values)


def _marked(line: Line, best: Iterable[float | None]) -> Line:
    """``line`` with its best values marked; a control is never the best."""
    if line.row.control:
        return line
    entries = (
        replace(entry, best=value is not None and entry.rounded == value)
        for entry, value in zip(line.entries, best, strict=True)
    )
    return replace(line, entries=tuple(entries))
