"""Ranks the methods of a leaderboard in each column, and writes it as Markdown and CSV.

The rank of a method is an interval, because differences have intervals: it begins after the methods that are
significantly better, and ends before those that are significantly worse (Mogstad et al. 2024). Methods that do not
differ significantly share a rank. Controls have none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from masquerade.core import files
from masquerade.core.discovery import IMPORTED
from masquerade.core.statistics import COVERED
from masquerade.papers import documents, layout, measured
from masquerade.papers.measured import Measured
from masquerade.papers.tables import Entry, Line, TableResult, find_best

SECONDS = "Seconds a face"
RANKS = "A rank a–b: at least a − 1 methods are significantly better, and at most b − 1 may be better."
EXPLAINED = (
    f"{RANKS} Two methods differ significantly if the bootstrap interval of their difference, over the same people, "
    "excludes 0; the intervals of one method's differences together cover 95 % (Bonferroni). Methods that do not "
    "differ significantly share a rank.",
    "In a share where higher is better, a face that a method refuses, or in which an evaluator finds no face, counts "
    "as a failure. Elsewhere it is missing, and the number of faces is shown.",
    f"{SECONDS}: the time of the whole job, which loads its networks first, over its faces; on the machine that ran "
    "it, beside other jobs. Compare only rows of the same build. The inversion, which methods with latent codes share, "
    "is a job of its own and not counted.",
)
FRONT = "figures/attackers/tradeoff.png"
"""The Pareto front, from the folder of the leaderboard."""
STRONGEST = "Name of the strongest attacker"
FEWEST = 4
"""The fewest methods whose orders by two composites are compared."""
Seconds = Mapping[tuple[str, str], float]
"""(method, variant) -> seconds a face."""


@dataclass(frozen=True)
class Rank:
    """The best and the worst place that a method can have in a column, from 1."""

    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.first}" if self.first == self.last else f"{self.first}–{self.last}"


def read_seconds(cells: Iterable[Mapping[str, Any]], benchmarks: str) -> Seconds:
    """The seconds a face of the first job of each method that ran on this machine, from Snakemake's benchmarks.

    ``cells``: the metrics of the cells. ``benchmarks``: the path of the benchmark of a cell, with its wildcards. What
    another program made has no time.
    """
    seconds: dict[tuple[str, str], float] = {}
    for tree in cells:
        cell = tree["cell"]
        file, key = Path(benchmarks.format(**cell)), (cell["method"], cell["variant"])
        if key in seconds or cell["method"] == IMPORTED or not file.is_file():
            continue
        head, values = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[:2])
        seconds[key] = float(values[head.index("s")]) / max(tree["statement"]["faces"], 1)
    return seconds


@dataclass(frozen=True)
class Leaderboard:
    """``result``: its rows in the order of the first column. ``ranks``: by line and column, None without a rank.
    ``left_out``: the methods of which nothing was measured.
    """

    result: TableResult
    ranks: tuple[tuple[Rank | None, ...], ...]
    seconds: Seconds
    left_out: tuple[str, ...] = ()


def build(result: TableResult, seconds: Seconds) -> Leaderboard:
    """The ranks of a table, and its rows in the order of their ranks and values in the first column.

    Rows of which nothing was measured are left out, unless there is no other.
    """
    run = [line for line in result.lines if not line.reason] or result.lines
    lines = [replace(line, entries=tuple(map(_count_failures, line.entries))) for line in run]
    columns = list(zip(*(line.entries for line in lines), strict=True))
    best = [find_best([entry for entry, line in zip(column, lines, strict=True) if not line.row.control])
            for column in columns]  # fmt: skip
    lines = [
        replace(line, entries=tuple(
            replace(entry, best=entry.rounded in values and not line.row.control)
            for entry, values in zip(line.entries, best, strict=True)
        ))
        for line in lines
    ]  # fmt: skip
    ranks = list(zip(*(rank(lines, column) for column in columns), strict=True))

    def place(number: int) -> tuple[bool, bool, int, float]:
        entry, given = lines[number].entries[0], ranks[number][0]
        value = entry.measured.value
        worse = -1 if entry.column.direction == "higher" else 1
        return lines[number].row.control, given is None, given.first if given else 0, worse * (value or 0.0)

    order = sorted(range(len(lines)), key=place)
    sorted_result = replace(result, lines=tuple(lines[number] for number in order))
    left_out = tuple(line.row.title for line in result.lines if line.reason)
    return Leaderboard(sorted_result, tuple(ranks[number] for number in order), seconds, left_out)


def _count_failures(entry: Entry) -> Entry:
    """The entry; a share where higher is better becomes one of all faces."""
    if entry.column.direction != "higher" or entry.measured.of_all is None:
        return entry
    value, draws = entry.measured.of_all
    return replace(entry, measured=replace(entry.measured, value=value, draws=draws, over=entry.measured.of))


def rank(lines: Sequence[Line], column: Sequence[Entry]) -> list[Rank | None]:
    """The rank of each entry of a column; None for a control and for a place without a number."""
    ranked = [number for number, (line, entry) in enumerate(zip(lines, column, strict=True))
              if not line.row.control and entry.measured.value is not None]  # fmt: skip
    if column[0].column.direction == "none":
        ranked = []
    better = {number: [0, 0] for number in ranked}  # methods that are significantly better, and worse
    level = 1 - (1 - COVERED) / max(len(ranked) - 1, 1)
    for number in ranked:
        for other in ranked:
            if number < other:
                winner = _find_better(column[number].measured, column[other].measured, level)
                if column[0].column.direction == "lower":
                    winner = -winner
                if winner:
                    better[number][winner > 0] += 1
                    better[other][winner < 0] += 1
    return [Rank(better[number][0] + 1, len(ranked) - better[number][1]) if number in better else None
            for number in range(len(column))]  # fmt: skip


def _find_better(first: Measured, second: Measured, level: float) -> int:
    """1 if the first number is significantly larger, -1 if the second one is, 0 if they do not differ significantly.

    The tails beyond ``level`` hold too few draws. So the 95 % interval of the difference is widened as that of a normal
    number would be.
    """
    from scipy.special import ndtri

    value, interval = measured.combine((first, second), measured.DIFFERENCE)
    if interval is None:
        return 0
    wider = ndtri((1 + level) / 2) / ndtri((1 + COVERED) / 2)
    low, high = (value + wider * (end - value) for end in interval)
    return int(low > 0) - int(high < 0)


def csv(board: Leaderboard) -> str:
    """The records of the table, each with its rank, and one with the seconds a face of each method."""
    ranks = [given for line in board.ranks for given in line]
    records = [
        {**record, "rank_first": given.first if given else "", "rank_last": given.last if given else ""}
        for record, given in zip(board.result.list_records(), ranks, strict=True)
    ]
    for line in board.result.lines:
        seconds = board.seconds.get((line.row.method, line.row.variant))
        about = {"row": line.row.title, "method": line.row.method, "variant": line.row.variant, "column": SECONDS}
        records.append({**dict.fromkeys(records[0], ""), **about, "measured": "" if seconds is None else seconds})
    return files.format_csv(list(records[0]), records)


def markdown(board: Leaderboard) -> str:
    """The page: the ranks of all columns, then a table of numbers for each group of columns, legend and notes.

    Columns in which nothing was measured are only named.
    """
    strongest = [_name_strongest(line) for line in board.result.lines]
    board, unmeasured = _drop_unmeasured(board)
    result, table = board.result, board.result.table
    groups = layout.groups(table.columns)
    left_out = [
        f"{what}: {', '.join(names)}."
        for what, names in (("Methods that were not run here", board.left_out), ("Not measured here", unmeasured))
        if names
    ]
    parts = [
        f"# {table.title}. {table.caption}",
        f"*{table.source}*",
        "\n".join(f"> {line}" for line in layout.preamble(result)),
        "## Ranks",
        documents.markdown_grid(*_list_ranks(board, strongest), left=1),
        f"The Pareto front of protection and utility, after `snakemake all`: [{FRONT}]({FRONT}).",
    ]
    for group, places in groups:
        parts += [f"## {group}", documents.markdown_grid(*documents.cells(select_columns(result, places)), left=1)]
    parts += [
        "## What was measured",
        documents.markdown_grid(layout.LEGEND, layout.legend(result), left=len(layout.LEGEND)),
        "## Notes",
        "\n".join(
            f"- {note}"
            for note in [
                *compare_composites(result),
                *EXPLAINED,
                *left_out,
                *layout.notes(result),
                *documents.reasons(result),
            ]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _drop_unmeasured(board: Leaderboard) -> tuple[Leaderboard, list[str]]:
    """The leaderboard without the columns in which nothing was measured, and their titles."""
    result = board.result
    measured_here = [
        any(line.entries[place].measured.value is not None for line in result.lines)
        for place in range(len(result.table.columns))
    ]
    places = [place for place, kept in enumerate(measured_here) if kept]
    ranks = tuple(tuple(line[place] for place in places) for line in board.ranks)
    titles = [column.title for column, kept in zip(result.table.columns, measured_here, strict=True) if not kept]
    return replace(board, result=select_columns(result, places), ranks=ranks), titles


def _name_strongest(line: Line) -> str:
    """The name of the strongest attacker of a method; a dash without one."""
    for entry in line.entries:
        if (entry.column.metric, entry.column.part) == ("attack_rank1_rate", "strongest") and entry.measured.note:
            return entry.measured.note.partition(":")[0]
    return layout.NONE


def _list_ranks(board: Leaderboard, strongest: Sequence[str]) -> documents.Grid:
    """``strongest``: the name of the strongest attacker of each line."""
    result = board.result
    head = ["Method", *(layout.title(result, column) for column in result.table.columns), SECONDS, STRONGEST]
    body = []
    for line, ranks, name in zip(result.lines, board.ranks, strongest, strict=True):
        seconds = board.seconds.get((line.row.method, line.row.variant))
        places = [str(given) if given else layout.NONE for given in ranks]
        shown = layout.NONE if seconds is None else f"{seconds:.2g}"
        body.append([layout.label(result, line.row), *places, shown, name])
    return head, body


def compare_composites(result: TableResult) -> list[str]:
    """Whether the ranking by HiFD survives the strongest attacker, as one sentence.

    None if too few methods have both numbers, or if all have the same one.
    """
    from scipy.stats import kendalltau

    places = {column.part: place for place, column in enumerate(result.table.columns) if column.metric == "hifd"}
    if not {"balanced", "balanced.attacked"} <= places.keys():
        return []
    pairs, titles = {}, {}
    for line in result.lines:
        plain, attacked = (line.entries[places[part]].measured.value for part in ("balanced", "balanced.attacked"))
        if plain is not None and attacked is not None and not line.row.control:
            pairs[line.row.method, line.row.variant] = plain, attacked
            titles[line.row.method, line.row.variant] = line.row.title
    if len(pairs) < FEWEST or any(len(set(values)) == 1 for values in zip(*pairs.values(), strict=True)):
        return []
    plain, attacked = zip(*pairs.values(), strict=True)
    tau = float(kendalltau(plain, attacked).statistic)
    first, then = (max(pairs, key=lambda row: pairs[row][which]) for which in (0, 1))
    top = f"{titles[first]} ranks first by HiFD, and {titles[then]} with the strongest attacker"
    if first == then:
        top = f"{titles[first]} ranks first in both"
    return [
        f"Kendall's tau between the rankings of {len(pairs)} methods by HiFD, and by HiFD with the strongest attacker "
        f"as its privacy term, is {tau:.2f} (1: the same ranking, 0: unrelated, −1: reversed). {top}."
    ]


def select_columns(result: TableResult, places: Sequence[int]) -> TableResult:
    """The table with some of its columns."""
    table = result.table.model_copy(update={"columns": tuple(result.table.columns[place] for place in places)})
    lines = (replace(line, entries=tuple(line.entries[place] for place in places)) for line in result.lines)
    return replace(result, table=table, lines=tuple(lines))
