"""Writes a table in LaTeX: a ``table*`` that needs the packages booktabs and graphicx."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from masquerade.papers import layout

if TYPE_CHECKING:
    from masquerade.papers.table_result import Entry, Line, TableResult

LETTERS = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "ε": r"$\varepsilon$", "σ": r"$\sigma$", "Δ": r"$\Delta$", "λ": r"$\lambda$", "×": r"$\times$", "±": r"$\pm$",
    "≥": r"$\geq$", "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "†": r"$^{\dagger}$", "–": "--",
    "√": r"$\surd$", "τ": r"$\tau$", "·": r"$\cdot$", "`": "", "…": r"\dots{}",
}  # fmt: skip


def table(result: "TableResult") -> str:
    """The table with its caption, and the legend and notes as text below it."""
    declared, marks = result.table, layout.marks(result, rows=True)
    widths, body = (_transposed if declared.transpose else _upright)(result, marks)
    sentences = [*layout.preamble(result), *_legend(result), *layout.notes(result)]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(f'{declared.caption} ({declared.source}).')}}}",
        rf"\label{{tab:{declared.paper}-{declared.name}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * sum(widths)}}}",
        r"\toprule",
        *body,
        r"\bottomrule",
        r"\end{tabular}}",
        r"\par\smallskip\begin{minipage}{\textwidth}\footnotesize",
        *(escape(sentence) + r"\par" for sentence in sentences),
        *(rf"$^{{{mark}}}$~{escape(why)}.\par" for why, mark in marks.items()),
        r"\end{minipage}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(LETTERS.get(character, character) for character in text)


def _upright(result: "TableResult", marks: dict[str, str]) -> tuple[list[int], list[str]]:
    """One row for each method. Returns the width of each declared column (1 or 2) and the lines."""
    columns = result.table.columns
    widths = [2 if column.printed else 1 for column in columns]
    titles = [escape(layout.title(result, column)) for column in columns]
    names = [escape(", ".join(layout.stand_ins(result, column))) for column in columns]
    body = []
    for line in result.lines:
        label = escape(layout.label(result, line.row)) + _mark(line.reason, marks)
        body.append(_row([label, *(cell for entry in line.entries for cell in _cells(result, line, entry, marks))]))
    return widths, [*_head("Method", widths, titles, names), *body]


def _transposed(result: "TableResult", marks: dict[str, str]) -> tuple[list[int], list[str]]:
    """One row for each declared column, under the name of its group; one or two columns for each method."""
    columns = result.table.columns
    widths = [2 if line.row.printed else 1 for line in result.lines]
    titles = [escape(layout.label(result, line.row)) + _mark(line.reason, marks) for line in result.lines]
    body = []
    for group, places in layout.groups(columns):
        if group:
            body.append(_row([rf"\multicolumn{{{1 + sum(widths)}}}{{l}}{{\textbf{{{escape(group)}}}}}"]))
        for place in places:
            names = "".join(f" ({name})" for name in layout.stand_ins(result, columns[place]))
            row = [escape(layout.title(result, columns[place]) + names)]
            for line, width in zip(result.lines, widths, strict=True):
                cells = _cells(result, line, line.entries[place], marks)
                row += [*[""] * (width - len(cells)), *cells]
            body.append(_row(row))
    return widths, [*_head("", widths, titles, []), *body]


def _head(stub: str, widths: Sequence[int], titles: Sequence[str], names: Sequence[str]) -> list[str]:
    """Titles over the columns that they span, names of stand-ins, a rule, and 'paper' or 'here' for each column."""
    starts = [2 + sum(widths[:place]) for place in range(len(widths))]
    rules = [rf"\cmidrule(lr){{{start}-{start + width - 1}}}" for start, width in zip(starts, widths, strict=True)]
    under = [word for width in widths for word in (("paper", "here") if width == 2 else ("here",))]
    spans = [
        _row(["", *(rf"\multicolumn{{{width}}}{{c}}{{{text}}}" for width, text in zip(widths, texts, strict=True))])
        for texts in (titles, names)
        if texts
    ]
    return [*spans, "".join(rules), _row([stub, *under]), r"\midrule"]


def _cells(result: "TableResult", line: "Line", entry: "Entry", marks: dict[str, str]) -> list[str]:
    """The printed number, if the place has one, and the measured number."""
    text = escape(layout.number(entry))
    text = (rf"\textbf{{{text}}}" if entry.best else text) + _mark(entry.measured.reason, marks)
    return [escape(layout.printed(entry)), text] if layout.both(result, line, entry.column) else [text]


def _legend(result: "TableResult") -> list[str]:
    """The legend as text."""
    sentences = []
    for title, metric, paper, judge, _, over, protocol in layout.legend(result):
        facts = {"here by": judge, "in the paper by": paper, "over": over, "protocol:": protocol}
        known = [f"{what} {fact}" for what, fact in facts.items() if fact not in (layout.NONE, layout.SAME)]
        sentences.append(f"{title}: {'; '.join([metric, *known])}.")
    return sentences


def _mark(reason: str, marks: dict[str, str]) -> str:
    return rf"$^{{{marks[reason]}}}$" if reason else ""


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"
