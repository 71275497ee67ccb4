"""How a table looks: Markdown for people who browse, LaTeX for people who write."""

from itertools import count, product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from masquerade.papers import independence
from masquerade.papers.measured import said

if TYPE_CHECKING:
    from masquerade.papers.tables import Entry, Line, TableResult

NONE, SAME = "–", "the same"
LEGEND = ["Column", "Metric", "In the paper", "Here", "Better", "Over", "Protocol"]
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "ε": r"$\varepsilon$", "σ": r"$\sigma$", "Δ": r"$\Delta$", "×": r"$\times$", "±": r"$\pm$", "≥": r"$\geq$",
    "≤": r"$\leq$", "↑": r"$\uparrow$", "↓": r"$\downarrow$", "†": r"$^{\dagger}$", "–": "--", "√": r"$\surd$",
    "·": r"$\cdot$", "`": "", "…": r"\dots{}",
}  # fmt: skip


def markdown(result: "TableResult") -> str:
    """The whole page: caption, caution, table, what stands for what, notes."""
    table, marks = result.table, _marks(result)
    head = ["Method", *(_header(result, place) for place in range(len(table.columns)))]
    body = [[_label(line), *(_cell(line, entry, marks) for entry in line.entries)] for line in result.lines]
    parts = [
        f"# {table.title}. {table.caption}",
        f"*{table.source}*",
        "\n".join(f"> {line}" for line in _preamble(result)),
        grid(head, body, right_from=1),
        "## What was measured",
        grid(LEGEND, _legend(result), right_from=len(LEGEND)),
        "## Notes",
        "\n".join(f"- {note}" for note in [*_notes(result), *(f"[{mark}] {why}." for why, mark in marks.items())]),
    ]
    return "\n\n".join(parts) + "\n"


def latex(result: "TableResult") -> str:
    """A ``table*`` that needs the packages booktabs and graphicx; what stands for what is in the text below it."""
    table, marks = result.table, _marks(result, rows=True)
    widths = [2 if column.printed else 1 for column in table.columns]
    starts = [2 + sum(widths[:place]) for place in range(len(widths))]
    titles = [rf"\multicolumn{{{width}}}{{c}}{{{escape(_title(result, place))}}}" for place, width in enumerate(widths)]
    judges = [
        rf"\multicolumn{{{width}}}{{c}}{{{escape(result.context.judge(column.judge))}}}"
        for column, width in zip(table.columns, widths, strict=True)
    ]
    rules = [rf"\cmidrule(lr){{{start}-{start + width - 1}}}" for start, width in zip(starts, widths, strict=True)]
    under = [word for width in widths for word in (("paper", "here") if width == 2 else ("here",))]
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{escape(f'{table.caption} ({table.source}).')}}}",
        rf"\label{{tab:{table.paper}-{table.name}}}",
        r"\resizebox{\textwidth}{!}{%",
        rf"\begin{{tabular}}{{l{'r' * sum(widths)}}}",
        r"\toprule",
        _row("", titles),
        _row("", judges),
        "".join(rules),
        _row("Method", under),
        r"\midrule",
        *(_row(*_latex_line(line, marks)) for line in result.lines),
        r"\bottomrule",
        r"\end{tabular}}",
        r"\par\smallskip\begin{minipage}{\textwidth}\footnotesize",
        *(escape(sentence) + r"\par" for sentence in [*_preamble(result), *_sentences(result), *_notes(result)]),
        *(rf"$^{{{mark}}}$~{escape(why)}.\par" for why, mark in marks.items()),
        r"\end{minipage}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Plain text as LaTeX."""
    return "".join(LATEX.get(character, character) for character in text)


def _preamble(result: "TableResult") -> list[str]:
    """What must be read before the numbers."""
    table, context = result.table, result.context
    here = context.dataset(table)
    faces = f"`{here}` stands in the place of {table.dataset.name}: these are not the paper's data."
    return [
        f"Scale `{context.scale}`. {context.caution}".rstrip(),
        faces if here != table.dataset.role else f"Measured on {table.dataset.name}.",
        "Printed in the paper / measured here. Bold: the best measured value of a column, controls excepted.",
    ]


def _notes(result: "TableResult") -> list[str]:
    table, context = result.table, result.context
    ours = [line.row for line in result.lines if not line.row.printed]
    several = len(context.seeds) > 1
    seeds = f"{'Seeds' if several else 'Seed'} {', '.join(map(str, context.seeds))}" + (
        ": mean ± standard deviation over them, for methods that the seed changes." if several else "."
    )
    notes = [f"† is not in the paper. {' '.join(f'{row.title}: {row.note}.' for row in ours)}".rstrip()]
    notes += [f"{line.row.title}: {line.row.note}." for line in result.lines if line.row.printed and line.row.note]
    notes += [table.note] if table.note else []
    notes += [f"{line.row.title}: {_facts(line.facts)}." for line in result.lines if line.facts]
    for line in result.lines:
        if line.refused[0]:
            notes.append(f"{line.row.title}: {line.refused[0]} of {line.refused[1]} faces were refused.")
    spreads = {f"{entry.column.title}: ± is the standard deviation over {entry.spread[1]}."
               for line in result.lines for entry in line.entries
               if entry.column.spread == "metric" and entry.spread[0] is not None}  # fmt: skip
    return [*notes, *sorted(spreads), independence.sentence(table, context), f"{seeds} Code: commit {context.commit}."]


def _facts(facts: dict[str, list[Any]]) -> str:
    return ", ".join(f"{name} = {said(values).rstrip('.')}" for name, values in facts.items())


def _legend(result: "TableResult") -> list[list[str]]:
    """For each column: what the paper used, what stands for it here, over how many, by which protocol."""
    rows = []
    for place, column in enumerate(result.table.columns):
        measured = [line.entries[place].measured for line in result.lines]
        counts = sorted({value.of // value.seeds for value in measured if value.seeds})
        over = NONE if not counts else f"{counts[0]}" + (f"–{counts[-1]}" if len(counts) > 1 else "")
        protocol = list(dict.fromkeys(value.note for value in measured if value.note))
        rows.append([
            _title(result, place).rstrip(" ↑↓†"),
            f"`{column.metric}`",
            (column.judge.name if column.judge else SAME) if column.printed else NONE,
            f"`{result.context.judge(column.judge)}`" if column.judge else SAME,
            column.direction,
            over,
            (protocol[0] if len(protocol) == 1 else "differs by row: see the CSV") if protocol else NONE,
        ])  # fmt: skip
    return rows


def _sentences(result: "TableResult") -> list[str]:
    """The legend as text."""
    sentences = []
    for title, metric, paper, here, _, over, protocol in _legend(result):
        facts = {"here by": here, "in the paper by": paper, "over": over, "protocol:": protocol}
        known = [f"{what} {fact}" for what, fact in facts.items() if fact not in (NONE, SAME)]
        sentences.append(f"{title}: {'; '.join([metric, *known])}.")
    return sentences


def _title(result: "TableResult", place: int) -> str:
    column = result.table.columns[place]
    other = f" / {column.substitute}" if column.substitute and result.context.replaced(column.judge) else ""
    return f"{column.title}{other} {ARROWS[column.direction]}".rstrip() + ("" if column.printed else " †")


def _header(result: "TableResult", place: int) -> str:
    judge = result.context.judge(result.table.columns[place].judge)
    return _title(result, place) + (f"<br>`{judge}`" if judge else "")


def _label(line: "Line") -> str:
    label = line.row.title + ("" if line.row.printed else " †")
    return f"{label}: *{line.reason}*" if line.reason else label


def _marks(result: "TableResult", rows: bool = False) -> dict[str, str]:
    """Reason -> its letter, in the order of the table; reasons of whole rows only where asked for."""
    reasons = {}
    for line in result.lines:
        found = [line.reason] if rows and line.reason else [entry.measured.reason for entry in line.entries]
        reasons.update(dict.fromkeys(reason for reason in found if reason))
    letters = ("".join(word) for size in count(1) for word in product(ascii_lowercase, repeat=size))
    return dict(zip(reasons, letters, strict=False))


def _number(entry: "Entry") -> str:
    """The measured value with its spread and, where some are missing, its denominator."""
    measured, digits = entry.measured, entry.column.digits
    text = f"{entry.rounded + 0.0:.{digits}f}"
    if entry.spread[0] is not None:
        text += f" ± {entry.spread[0]:.{digits}f}"
    return text + (f" ({measured.over}/{measured.of})" if measured.over < measured.of else "")


def _cell(line: "Line", entry: "Entry", marks: dict[str, str]) -> str:
    measured = entry.measured
    here = NONE if measured.value is None else f"**{_number(entry)}**" if entry.best else _number(entry)
    if measured.reason:
        here = f"[{marks[measured.reason]}]" if measured.value is None else f"{here} [{marks[measured.reason]}]"
    if not entry.column.printed:
        return here
    return f"{entry.printed.text if entry.printed else NONE} / {here}"


def _latex_line(line: "Line", marks: dict[str, str]) -> tuple[str, list[str]]:
    label = escape(line.row.title + ("" if line.row.printed else "†"))
    if line.reason:
        label += rf"$^{{{marks[line.reason]}}}$"
    cells = []
    for entry in line.entries:
        if entry.column.printed:
            cells.append(escape(entry.printed.text if entry.printed else NONE))
        here = NONE if entry.measured.value is None else _number(entry)
        here = rf"\textbf{{{escape(here)}}}" if entry.best else escape(here)
        cells.append(here + (rf"$^{{{marks[entry.measured.reason]}}}$" if entry.measured.reason else ""))
    return label, cells


def _row(label: str, cells: list[str]) -> str:
    return " & ".join([label, *cells]) + r" \\"


def grid(head: list[str], body: list[list[str]], right_from: int) -> str:
    """A Markdown table whose columns also line up as plain text."""
    rows = [[cell.replace("|", r"\|") for cell in row] for row in [head, *body]]
    widths = [max(3, *(len(row[place]) for row in rows)) for place in range(len(head))]
    rule = ["-" * (width - 1) + ":" if place >= right_from else "-" * width for place, width in enumerate(widths)]
    pads = [
        [cell.rjust(width) if place >= right_from else cell.ljust(width)
         for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        for row in [rows[0], rule, *rows[1:]]
    ]  # fmt: skip
    return "\n".join(f"| {' | '.join(row)} |" for row in pads)
