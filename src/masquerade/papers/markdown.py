"""A table for people who browse: one page, the printed and the measured value side by side."""

from typing import TYPE_CHECKING

from masquerade.papers import layout

if TYPE_CHECKING:
    from masquerade.papers.tables import Entry, Line, TableResult

Grid = tuple[list[str], list[list[str]]]
"""(header, rows), as many cells everywhere."""


def page(result: "TableResult") -> str:
    """The whole page: caption, caution, table, what stands for what, notes."""
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
    """A row a method."""
    head, body = ["Method"], []
    for column in result.table.columns:
        head.append("<br>".join([layout.title(result, column), *filter(None, [_names(result, column)])]))
    for line in result.lines:
        label = layout.label(result, line.row) + (f": *{line.reason}*" if line.reason else "")
        body.append([label, *(_cell(result, line, entry, marks) for entry in line.entries)])
    return head, body


def _transposed(result: "TableResult", marks: dict[str, str]) -> Grid:
    """A row a column of the declaration, under the name of its group; a column a method."""
    columns, body = result.table.columns, []
    head = [layout.label(result, line.row) + _mark(line.reason, marks) for line in result.lines]
    for group, places in layout.groups(columns):
        body += [[f"**{group}**", *[""] * len(head)]] if group else []
        for place in places:
            label = " ".join([layout.title(result, columns[place]), *filter(None, [_names(result, columns[place])])])
            body.append([label, *(_cell(result, line, line.entries[place], marks) for line in result.lines)])
    return ["", *head], body


def _names(result: "TableResult", column) -> str:
    return ", ".join(f"`{name}`" for name in layout.here(result, column))


def _mark(reason: str, marks: dict[str, str]) -> str:
    return f" [{marks[reason]}]" if reason else ""


def _cell(result: "TableResult", line: "Line", entry: "Entry", marks: dict[str, str]) -> str:
    text = layout.number(entry)
    text = f"**{text}**" if entry.best else text
    reason = entry.measured.reason
    if reason:
        text = _mark(reason, marks).strip() if entry.measured.value is None else text + _mark(reason, marks)
    return f"{layout.printed(entry)} / {text}" if layout.both(result, line, entry.column) else text
