"""What Markdown and LaTeX say alike of a table: its headers, labels, numbers, legend and notes."""

from collections.abc import Iterable
from itertools import count, product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from masquerade.papers import independence
from masquerade.papers.measured import said

if TYPE_CHECKING:
    from masquerade.papers.measured import Context
    from masquerade.papers.reference import Column, Named, Row
    from masquerade.papers.tables import Entry, Line, TableResult

NONE, SAME = "–", "the same"
LEGEND = ["Column", "Metric", "In the paper", "Here", "Better", "Over", "Protocol"]
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}
DAGGER = " †"
FEW = 6
"""Titles that one line of the legend names in full."""


def preamble(result: "TableResult") -> list[str]:
    """What must be read before the numbers."""
    table, context = result.table, result.context
    numbers = "Measured here: the paper has no such table." if table.ours else "Printed in the paper / measured here."
    return [
        f"Scale `{context.scale}`. {context.caution}".rstrip(),
        *places(table.datasets, context),
        f"{numbers} Bold: the best measured value of a {'row' if table.transpose else 'column'}, controls excepted.",
    ]


def places(datasets: Iterable["Named"], context: "Context") -> list[str]:
    """Which datasets stand in the places of the paper's."""
    datasets = list(datasets)
    faces = [(named.name, context.dataset(named)) for named in datasets if context.dataset(named) != named.role]
    instead = " and ".join(f"`{here}` stands in the place of {name}" for name, here in faces)
    own = " and ".join(named.name for named in datasets if context.dataset(named) == named.role)
    return [
        *([f"{instead}: these are not the paper's data."] if faces else []),
        *([f"Measured on {own}."] if own else []),
    ]


def notes(result: "TableResult") -> list[str]:
    """What may be read after the numbers."""
    table, context = result.table, result.context
    ours = [f"{line.row.title}: {line.row.note}." for line in result.lines if not line.row.printed]
    several = len(context.seeds) > 1
    seeds = f"{'Seeds' if several else 'Seed'} {', '.join(map(str, context.seeds))}" + (
        ": mean ± standard deviation over them, for methods that the seed changes." if several else "."
    )
    found = ours if table.ours else [f"† is not in the paper. {' '.join(ours)}".rstrip()]
    found += [f"{line.row.title}: {line.row.note}." for line in result.lines if line.row.printed and line.row.note]
    found += [table.note] if table.note else []
    once = {(line.row.method, line.row.variant): line for line in reversed(result.lines)}.values()  # several attempts
    lines = [line for line in result.lines if any(line is first for first in once)]
    found += [f"{line.row.title}: {_facts(line.facts)}." for line in lines if line.facts]
    for line in lines:
        if line.refused[0]:
            found.append(f"{line.row.title}: {line.refused[0]} of {line.refused[1]} faces were refused.")
    spreads = {f"{entry.column.title}: ± is the standard deviation over {entry.spread[1]}."
               for line in result.lines for entry in line.entries
               if entry.column.spread == "metric" and entry.spread[0] is not None}  # fmt: skip
    strangers = independence.strangers((line.row.method, line.row.title) for line in lines if not line.reason)
    trained = f"{independence.sentence(table, context)} {strangers}".rstrip()
    return [*found, *sorted(spreads), trained, f"{seeds} Code: commit {context.commit}."]


def _facts(facts: dict[str, list[Any]]) -> str:
    return ", ".join(f"{name} = {said(values).rstrip('.')}" for name, values in facts.items())


def legend(result: "TableResult") -> list[list[str]]:
    """What the paper used, what stands for it here, over how many, by which protocol: columns that agree in one row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for place, column in enumerate(result.table.columns):
        measured = [line.entries[place].measured for line in result.lines]
        counts = sorted({value.of // value.seeds for value in measured if value.seeds})
        over = NONE if not counts else f"{counts[0]}" + (f"–{counts[-1]}" if len(counts) > 1 else "")
        protocol = list(dict.fromkeys(value.note for value in measured if value.note))
        told = (
            f"`{column.metric}`",
            (column.judge.name if column.judge else SAME) if column.printed else NONE,
            f"`{result.context.judge(column.judge)}`" if column.judge else SAME,
            column.direction,
            over,
            (protocol[0] if len(protocol) == 1 else "differs by row: see the CSV") if protocol else NONE,
        )
        rows.setdefault(told, []).append(title(result, column).rstrip(" ↑↓†"))
    return [[_listed(list(dict.fromkeys(titles))), *told] for told, titles in rows.items()]


def _listed(titles: list[str]) -> str:
    """A few titles in full, of many the first."""
    return ", ".join(titles) if len(titles) <= FEW else f"{', '.join(titles[:3])} and {len(titles) - 3} more"


def title(result: "TableResult", column: "Column") -> str:
    """The header of a column with its group, what to call it here, and which values are better."""
    table = result.table
    group = f"{column.group}: " if column.group and not table.transpose else ""
    other = f" / {column.substitute}" if column.substitute and result.context.replaced(column.judge) else ""
    ours = "" if column.printed or table.ours else DAGGER
    return f"{group}{column.title}{other} {ARROWS[column.direction]}".rstrip() + ours


def here(result: "TableResult", column: "Column") -> list[str]:
    """Who stands in a column here: its dataset, where it is not the table's, and its judge."""
    names = [result.context.dataset(column.dataset)] if column.dataset else []
    return [*names, *filter(None, [result.context.judge(column.judge)])]


def label(result: "TableResult", row: "Row") -> str:
    """The label of a method."""
    return row.title + ("" if row.printed or result.table.ours else DAGGER)


def marks(result: "TableResult", rows: bool) -> dict[str, str]:
    """Reason -> its letter, in the order of the table; reasons of whole rows only where asked for."""
    reasons: dict[str, None] = {}
    if result.table.transpose:  # methods are the header, which is read first
        reasons.update(dict.fromkeys(line.reason for line in result.lines if line.reason))
    for line in result.lines:
        found = [line.reason] if rows and line.reason else [entry.measured.reason for entry in line.entries]
        reasons.update(dict.fromkeys(reason for reason in found if reason))
    letters = ("".join(word) for size in count(1) for word in product(ascii_lowercase, repeat=size))
    return dict(zip(reasons, letters, strict=False))


def both(result: "TableResult", line: "Line", column: "Column") -> bool:
    """Whether a place shows the printed number too; a transposed table has no such place for a row of ours."""
    return column.printed and bool(line.row.printed or not result.table.transpose)


def printed(entry: "Entry") -> str:
    """The printed number, or that there is none."""
    return entry.printed.text if entry.printed else NONE


def number(entry: "Entry") -> str:
    """The measured value with its spread and, where some are missing, its denominator; or that there is none."""
    measured, digits = entry.measured, entry.column.digits
    if entry.rounded is None:
        return NONE
    text = f"{entry.rounded + 0.0:.{digits}f}"
    if entry.spread[0] is not None:
        text += f" ± {entry.spread[0] * entry.unit:.{digits}f}"
    return text + (f" ({measured.over}/{measured.of})" if measured.over < measured.of else "")


def groups(columns: Iterable["Column"]) -> list[tuple[str, list[int]]]:
    """Neighbouring columns with one group: (its name, their places)."""
    found: list[tuple[str, list[int]]] = []
    for place, column in enumerate(columns):
        if not found or found[-1][0] != column.group:
            found.append((column.group, []))
        found[-1][1].append(place)
    return found


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
