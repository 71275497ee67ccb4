"""Writes tables as Markdown and as LaTeX, from the same cells: printed / measured value side by side.

The cells of a table are texts with Markdown's marks, such as ``0.31 / **0.25 [0.20, 0.30]** [a]``.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from masquerade.papers import layout

if TYPE_CHECKING:
    from masquerade.papers.declarations import Column
    from masquerade.papers.tables import Entry, Line, TableResult

Grid = tuple[list[str], list[list[str]]]
"""(header, rows). Every row has as many cells as the header."""
LETTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "ε": r"$\varepsilon$", "σ": r"$\sigma$", "Δ": r"$\Delta$", "λ": r"$\lambda$", "×": r"$\times$", "±": r"$\pm$",
    "≥": r"$\geq$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "†": r"$^{\dagger}$", "–": "--",
    "√": r"$\surd$", "τ": r"$\tau$", "·": r"$\cdot$", "`": "", "…": r"\dots{}",
}  # fmt: skip
MARKED = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*")
"""Bold or emphasized text in Markdown."""


def markdown_grid(head: Sequence[str], body: Sequence[Sequence[str]], left: int) -> str:
    """A Markdown table whose first ``left`` columns stand left and whose other columns stand right."""
    from tabulate import tabulate

    rows = [[cell.replace("|", r"\|") for cell in row] for row in (head, *body)]
    sides = ["left" if place < left else "right" for place in range(len(head))]
    return tabulate(rows[1:], headers=rows[0], tablefmt="pipe", disable_numparse=True, colalign=sides)


def latex_grid(head: Sequence[str], body: Sequence[Sequence[str]], columns: str, longtable: bool = False) -> str:
    """The same for LaTeX, with the rules of booktabs. ``columns``: the argument of tabular, such as ``lrr``."""
    from pandas import DataFrame

    frame = DataFrame([[escape(cell) for cell in row] for row in body])
    titles = [escape(title).replace("{", "{{").replace("}", "}}") for title in head]  # pandas formats them
    return frame.to_latex(index=False, header=titles, escape=False, column_format=columns, longtable=longtable)


def escape(text: str) -> str:
    """Markdown without links as LaTeX."""
    parts = MARKED.split(text.replace("<br>", " "))
    plain = ["".join(LETTERS.get(character, character) for character in part or "") for part in parts]
    texts = [
        before + (rf"\textbf{{{bold}}}" if bold else "") + (rf"\emph{{{emphasized}}}" if emphasized else "")
        for before, bold, emphasized in zip(plain[::3], [*plain[1::3], ""], [*plain[2::3], ""], strict=True)
    ]
    return "".join(texts)


def markdown(result: "TableResult") -> str:
    """The whole page: caption, caution, table, legend, notes."""
    table = result.table
    parts = [
        f"# {table.title}. {table.caption}",
        f"*{table.source}*",
        "\n".join(f"> {line}" for line in layout.preamble(result)),
        markdown_grid(*cells(result), left=1),
        "## What was measured",
        markdown_grid(layout.LEGEND, layout.legend(result), left=len(layout.LEGEND)),
        "## Notes",
        "\n".join(f"- {note}" for note in [*layout.notes(result), *reasons(result)]),
    ]
    return "\n\n".join(parts) + "\n"


def latex(result: "TableResult") -> str:
    """A ``table*`` for the packages booktabs and graphicx: its caption, and the legend and notes as text below it."""
    table = result.table
    head, body = cells(result)
    legend = [
        "; ".join(f"{what}: {fact}" for what, fact in zip(layout.LEGEND, line, strict=True) if fact != layout.NONE)
        + "."
        for line in layout.legend(result)
    ]
    sentences = [*layout.preamble(result), *legend, *layout.notes(result), *reasons(result)]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(f'{table.caption} ({table.source}).')}}}",
        rf"\label{{tab:{table.paper}-{table.name}}}",
        r"\resizebox{\textwidth}{!}{%",
        latex_grid(head, body, "l" + "r" * (len(head) - 1)).rstrip() + "}",
        r"\par\smallskip\begin{minipage}{\textwidth}\footnotesize",
        *(escape(sentence) + r"\par" for sentence in sentences),
        r"\end{minipage}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def cells(result: "TableResult") -> Grid:
    """The cells of a table: one row for each method, or for each measure if the paper prints it so."""
    return (_cells_by_measure if result.table.transpose else _cells_by_method)(result, layout.marks(result))


def reasons(result: "TableResult") -> list[str]:
    """The reason behind each letter of the cells."""
    return [f"[{mark}] {why}." for why, mark in layout.marks(result).items()]


def _cells_by_method(result: "TableResult", marks: dict[str, str]) -> Grid:
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


def _cells_by_measure(result: "TableResult", marks: dict[str, str]) -> Grid:
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
    return f"{layout.format_printed(entry)} / {text}" if layout.both(result, line, entry.column) else text
