"""A table with its measured values, and its form as CSV."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from masquerade.core import files
from masquerade.papers import reference
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Row, Table
from masquerade.papers.measured import Measured
from masquerade.papers.ordering import Order
from masquerade.papers.printed import Printed

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
