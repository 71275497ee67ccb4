"""Writes a table as a Markdown page, with the printed and the measured value side by side."""

from typing import TYPE_CHECKING

from masquerade.papers import layout

if TYPE_CHECKING:
    from masquerade.papers.declarations import Column
    from masquerade.papers.table_result import Entry, Line, TableResult

Grid = tuple[list[str], list[list[str]]]
"""(header, rows). Every row has as many cells as the header."""


def page(result: "TableResult") -> str:
    """The whole page: caption, caution, table, legend, notes."""
    table = result.table
    marks = layout.marks(result, rows=table.transpose)
    parts = [
        f"# {table.title}. {table.caption}",
        f"*{table.source}*",
        "\n".join(f"> {line}" for line in layout.preamble(result)),
        layout.grid(*(_transposed if table.transpose else _upright)(result, marks), right_from=1),
        "## What was measured",
        layout.grid(layout.LEGEND, layout.legend(result), right_from=len(layout.LEGEND)),
        "## Notes",
        "\n".join(f"- {note}" for note in [*layout.notes(result), *(f"[{m}] {why}." for why, m in marks.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def _upright(result: "TableResult", marks: dict[str, str]) -> Grid:
    """One row for each method."""
    titles = [
        "<br>".join([layout.title(result, column), *filter(None, [_names(result, column)])])
        for column in result.table.columns
    ]
    body = [
        [
            layout.label(result, line.row) + (f": *{line.reason}*" if line.reason else ""),
            *(_cell(result, line, entry, marks) for entry in line.entries),
        ]
        for line in result.lines
    ]
    return ["Method", *titles], body


def _transposed(result: "TableResult", marks: dict[str, str]) -> Grid:
    """One row for each declared column, under the name of its group; one column for each method."""
    columns, body = result.table.columns, []
    head = [layout.label(result, line.row) + _mark(line.reason, marks) for line in result.lines]
    for group, places in layout.groups(columns):
        body += [[f"**{group}**", *[""] * len(head)]] if group else []
        for place in places:
            label = " ".join([layout.title(result, columns[place]), *filter(None, [_names(result, columns[place])])])
            body.append([label, *(_cell(result, line, line.entries[place], marks) for line in result.lines)])
    return ["", *head], body


def _names(result: "TableResult", column: "Column") -> str:
    return ", ".join(f"`{name}`" for name in layout.stand_ins(result, column))


def _mark(reason: str, marks: dict[str, str]) -> str:
    return f" [{marks[reason]}]" if reason else ""


def _cell(result: "TableResult", line: "Line", entry: "Entry", marks: dict[str, str]) -> str:
    text = layout.number(entry)
    text = f"**{text}**" if entry.best else text
    reason = entry.measured.reason
    if reason:
        text = _mark(reason, marks).strip() if entry.measured.value is None else text + _mark(reason, marks)
    return f"{layout.printed(entry)} / {text}" if layout.both(result, line, entry.column) else text
