"""The texts that Markdown and LaTeX share: a table's headers, labels, numbers, legend and notes."""

from collections.abc import Iterable, Mapping
from itertools import count, groupby, product
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any

from masquerade.papers import cautions
from masquerade.papers.measured import Order, fact_text

if TYPE_CHECKING:
    from masquerade.papers.context import Context
    from masquerade.papers.declarations import Column, Named, Row
    from masquerade.papers.tables import Entry, Line, TableResult

NONE, SAME = "–", "the same"
LEGEND = ["Column", "Metric", "In the paper", "Here", "Better", "Over", "Protocol"]
ARROWS = {"higher": "↑", "lower": "↓", "none": ""}
DAGGER = " †"
FEW = 6
"""The most titles that one line of the legend names in full."""


def preamble(result: "TableResult") -> list[str]:
    """The sentences above the numbers."""
    table, context = result.table, result.context
    numbers = (
        "All numbers were measured here: no paper has this table."
        if table.ours
        else "Each place shows the number printed in the paper, and then the one measured here."
    )
    return [
        f"Scale `{context.scale}`. {context.caution}".rstrip(),
        *dataset_sentences(table.datasets, context),
        f"{numbers} Bold: the best measured value of a {'row' if table.transpose else 'column'}, without controls.",
    ]


def dataset_sentences(datasets: Iterable["Named"], context: "Context") -> list[str]:
    """Which datasets take the place of the paper's, and which are the paper's own."""
    datasets = list(datasets)
    replaced = [(named.name, context.dataset(named)) for named in datasets if context.dataset(named) != named.role]
    instead = " and ".join(f"`{stand_in}` takes the place of {name}" for name, stand_in in replaced)
    measured = " and ".join(named.name for named in datasets if context.dataset(named) == named.role)
    return [
        *([f"{instead}, so these are not the paper's data."] if replaced else []),
        *([f"Measured on {measured}."] if measured else []),
    ]


def notes(result: "TableResult") -> list[str]:
    """The sentences below the numbers."""
    table, context = result.table, result.context
    ours = [f"{line.row.title}: {line.row.note}." for line in result.lines if not line.row.printed]
    several = len(context.seeds) > 1
    seeds = f"{'Seeds' if several else 'Seed'} {', '.join(map(str, context.seeds))}" + (
        ": mean ± standard deviation over the seeds, for methods whose results depend on the seed." if several else "."
    )
    intervals = (
        f"[low, high] is the 95 % bootstrap interval over people{' and seeds' if several else ''} (BCa; at a share of "
        "0 or 1, or near it, at least that of Jeffreys for so many people)."
    )
    sentences = ours if table.ours else [f"† marks what is not in the paper. {' '.join(ours)}".rstrip()]
    sentences += [f"{line.row.title}: {line.row.note}." for line in result.lines if line.row.printed and line.row.note]
    sentences += [table.note] if table.note else []
    if cautions.needs_evasion_mark(table):
        sentences += cautions.explain_evasion((line.row.method, line.row.title) for line in result.lines)
    once = {(line.row.method, line.row.variant): line for line in reversed(result.lines)}.values()  # several attempts
    lines = [line for line in result.lines if any(line is first for first in once)]
    sentences += [f"{line.row.title}: {_facts(line.facts)}." for line in lines if line.facts]
    for line in lines:
        if line.refused[0]:
            sentences.append(f"{line.row.title}: {line.refused[0]} of {line.refused[1]} faces were refused.")
    spreads = {f"{entry.column.title}: ± is the standard deviation over {entry.spread[1]}."
               for line in result.lines for entry in line.entries
               if entry.column.spread == "metric" and entry.spread[0] is not None}  # fmt: skip
    sentences += [text for line in lines if (text := _key_spreads(line))]
    sentences += [text for text in [_order(result)] if text]
    unknown = cautions.name_unknown_trainings((line.row.method, line.row.title) for line in lines if not line.reason)
    judges = {context.judge(column.judge) for column in table.columns if column.judge}
    shared = cautions.list_judges_in_training(table, judges, context.stand_ins.datasets.values())
    trained = f"{shared} {unknown}".strip()
    return [
        *sentences,
        *sorted(spreads),
        *filter(None, [trained]),
        f"{intervals} {seeds} Code: commit {context.commit}.",
    ]


def _key_spreads(line: "Line") -> str:
    """The standard deviation over keys of each number of a row; '' for a method without keys."""
    spreads = [
        f"{entry.column.title} {entry.measured.key_spread * entry.unit:.{entry.column.digits}f}"
        for entry in line.entries
        if entry.measured.key_spread is not None
    ]
    text = f"{line.row.title}: the standard deviation over keys, each used for all faces, is {', '.join(spreads)}."
    return text if spreads else ""


def _order(result: "TableResult") -> str:
    """How many pairs of rows stand as in the paper; '' if the paper orders none."""
    entries = [entry for line in result.lines for entry in line.entries]
    total = sum((entry.order for entry in entries), Order())  # each pair stands at both of its rows
    if not total.pairs:
        return ""
    concordant, discordant, undecided = (count // 2 for count in (total.concordant, total.discordant, total.undecided))
    return (
        f"Of {total.pairs // 2} pairs of rows that the paper orders, {concordant} have the same order here, "
        f"{discordant} the opposite one, and {undecided} are undecided: the interval of their difference "
        "contains 0. By chance alone, as many pairs would have the opposite order as the same one."
    )


def _facts(facts: Mapping[str, list[Any]]) -> str:
    return ", ".join(f"{name} = {fact_text(values).rstrip('.')}" for name, values in facts.items())


def legend(result: "TableResult") -> list[list[str]]:
    """For each column: its metric, the judge in the paper and here, denominators and protocol.

    Columns that agree in all of these share one row.
    """
    rows: dict[tuple[str, ...], list[str]] = {}
    for place, column in enumerate(result.table.columns):
        measured = [line.entries[place].measured for line in result.lines]
        counts = sorted({value.of // value.seeds for value in measured if value.seeds})
        over = NONE if not counts else f"{counts[0]}" + (f"–{counts[-1]}" if len(counts) > 1 else "")
        protocol = list(dict.fromkeys(value.note for value in measured if value.note))
        facts = (
            f"`{column.metric}`",
            (column.judge.name if column.judge else SAME) if column.printed else NONE,
            f"`{result.context.judge(column.judge)}`" if column.judge else SAME,
            column.direction,
            over,
            (protocol[0] if len(protocol) == 1 else "differs by row: see the CSV") if protocol else NONE,
        )
        rows.setdefault(facts, []).append(title(result, column).rstrip(" ↑↓†"))
    return [[_list_titles(list(dict.fromkeys(titles))), *facts] for facts, titles in rows.items()]


def _list_titles(titles: list[str]) -> str:
    """All titles, or the first three and the number of the others."""
    return ", ".join(titles) if len(titles) <= FEW else f"{', '.join(titles[:3])} and {len(titles) - 3} more"


def title(result: "TableResult", column: "Column") -> str:
    """The header of a column: group, title, the title of a substitute, and an arrow towards better values."""
    table = result.table
    group = f"{column.group}: " if column.group and not table.transpose else ""
    other = f" / {column.substitute}" if column.substitute and result.context.is_replaced(column.judge) else ""
    ours = "" if column.printed or table.ours else DAGGER
    return f"{group}{column.title}{other} {ARROWS[column.direction]}".rstrip() + ours


def stand_ins(result: "TableResult", column: "Column") -> list[str]:
    """The dataset and the judge that are used here for a column; no dataset if it is that of the table."""
    names = [result.context.dataset(column.dataset)] if column.dataset else []
    return [*names, *filter(None, [result.context.judge(column.judge)])]


def label(result: "TableResult", row: "Row") -> str:
    """The label of a method, with the mark of evasion and that of a row which is not in the paper."""
    evades = cautions.measures_evasion(row.method) and cautions.needs_evasion_mark(result.table)
    return row.title + cautions.EVASION * evades + ("" if row.printed or result.table.ours else DAGGER)


def marks(result: "TableResult") -> dict[str, str]:
    """Reason -> its letter, in the order of the table. The reason of a whole row stands beside its label instead."""
    transposed = result.table.transpose  # its methods are the header, which is read first and has no room for reasons
    reasons = [line.reason for line in result.lines if transposed]
    for line in result.lines:
        reasons += [entry.measured.reason for entry in line.entries if not line.reason]
    letters = ("".join(word) for size in count(1) for word in product(ascii_lowercase, repeat=size))
    return dict(zip(dict.fromkeys(filter(None, reasons)), letters, strict=False))


def both(result: "TableResult", line: "Line", column: "Column") -> bool:
    """Whether a place also shows the printed number. In a transposed table, a row of ours has no such place."""
    return column.printed and bool(line.row.printed or not result.table.transpose)


def format_printed(entry: "Entry") -> str:
    """The printed number, or `NONE`."""
    return entry.printed.text if entry.printed else NONE


def number(entry: "Entry") -> str:
    """The measured value with its spread and interval, and its denominator if faces are missing; or `NONE`."""
    measured, digits = entry.measured, entry.column.digits
    if entry.rounded is None:
        return NONE
    text = f"{entry.rounded + 0.0:.{digits}f}"
    if entry.spread[0] is not None:
        text += f" ± {entry.spread[0] * entry.unit:.{digits}f}"
    if measured.interval:
        low, high = (f"{end * entry.unit + 0.0:.{digits}f}" for end in measured.interval)
        text += f" [{low}, {high}]"
    return text + (f" ({measured.over}/{measured.of})" if measured.over < measured.of else "")


def groups(columns: Iterable["Column"]) -> list[tuple[str, list[int]]]:
    """Neighboring columns of one group: (name of the group, places of the columns)."""
    neighbors = groupby(enumerate(columns), key=lambda item: item[1].group)
    return [(group, [place for place, _ in members]) for group, members in neighbors]
