"""Prepares what the template shows, and renders the report as one HTML file that needs no network."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from masquerade.core import discovery, fingerprints
from masquerade.lineage.address import list_addresses, make_slug
from masquerade.papers import cautions, claims_page, layout, reference
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Table
from masquerade.papers.figure_declarations import Figure
from masquerade.papers.measured import Order, Results
from masquerade.papers.report import boards, chain
from masquerade.papers.report.boards import Methods, sort_settings
from masquerade.papers.report.chain import Files
from masquerade.papers.tables import Entry, Line, TableResult
from masquerade.papers.verdicts import FAILS, HOLDS, UNDECIDED, Verdict
from masquerade.params import sharing
from masquerade.params.matrix import Setting

MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True)
class Place:
    """One place of a table as the page shows it."""

    entry: Entry
    address: str
    setting: Setting
    sentence: str
    difference: str
    verdict: str


@dataclass(frozen=True)
class Head:
    """The header of a column or row. ``line``: the line of a method; None for a measure."""

    title: str
    group: str = ""
    stand_ins: str = ""
    line: Line | None = None


@dataclass(frozen=True)
class ReportTable:
    """A table of a paper: heads of columns and rows, the places between them, and the texts around it."""

    table: Table
    columns: tuple[Head, ...]
    rows: tuple[Head, ...]
    places: tuple[tuple[Place, ...], ...]
    orders: tuple[Order, ...]
    """One for each declared column. The declared columns are the rows of a transposed table."""
    file: str
    md5: str
    preamble: list[str]
    legend: list[list[str]]
    notes: list[str]

    @property
    def order(self) -> Order:
        return sum(self.orders, Order())

    @property
    def measured(self) -> tuple[int, int]:
        """(places with a number, all places)."""
        values = [place.entry.measured.value for row in self.places for place in row]
        return sum(value is not None for value in values), len(values)


@dataclass(frozen=True)
class Paper:
    """Everything of one paper, or of one folder of our own tables. ``figures``: each with its image, a data URL.

    ``missing``: reason -> how many places have no number for that reason.
    """

    name: str
    cites: str
    tables: tuple[ReportTable, ...]
    figures: tuple[tuple[Figure, str], ...]
    claims: tuple[Verdict, ...]
    missing: Mapping[str, int]

    @property
    def ours(self) -> bool:
        return self.name in reference.OURS

    @property
    def title(self) -> str:
        return reference.OURS.get(self.name, self.name)

    @property
    def order(self) -> Order:
        return sum((table.order for table in self.tables), Order())

    @property
    def measured(self) -> tuple[int, int]:
        """(places with a number, all places) of all tables."""
        counts = [table.measured for table in self.tables]
        return sum(count for count, _ in counts), sum(places for _, places in counts)


def arrange_table(result: TableResult, csv: Path) -> ReportTable:
    """A table as the page shows it. ``csv``: the file that holds its numbers, too."""
    result = replace(result, lines=tuple(map(_share_reason, result.lines)))
    declared, context = result.table, result.context
    records = result.list_records()
    named = iter(zip(list_addresses(declared.key, records), records, strict=True))
    places = tuple(
        tuple(_place(entry, *next(named), line.reason, context) for entry in line.entries) for line in result.lines
    )
    columns = tuple(_column(result, column) for column in declared.columns)
    rows = tuple(Head(layout.label(result, line.row), line=line) for line in result.lines)
    return ReportTable(
        table=declared,
        columns=rows if declared.transpose else columns,
        rows=columns if declared.transpose else rows,
        places=tuple(zip(*places, strict=True)) if declared.transpose else places,
        orders=tuple(_sum_orders(line.entries[at] for line in result.lines) for at in range(len(columns))),
        file=str(csv),
        md5=fingerprints.md5(csv),
        preamble=layout.preamble(result)[1:],  # the page shows the scale's caution once, at its top
        legend=layout.legend(result),
        # without the commit: the table may be of another commit than this page, and `lineage show` prints it
        notes=[note.partition(" Code: commit")[0] for note in layout.notes(result)],
    )


def _share_reason(line: Line) -> Line:
    """The line; if all of its places lack a number for one reason, it stands once, beside the label."""
    reasons = {entry.measured.reason for entry in line.entries}
    if line.reason or len(reasons) > 1 or any(entry.measured.seeds for entry in line.entries):
        return line
    return replace(line, reason=reasons.pop())


def _sum_orders(entries: Iterable[Entry]) -> Order:
    """Every pair of rows of one column, each once: a pair stands at both of its rows."""
    total = sum((entry.order for entry in entries), Order())
    return Order(total.concordant // 2, total.discordant // 2, total.undecided // 2)


def _place(entry: Entry, address: str, record: Mapping[str, str], reason: str, context: Context) -> Place:
    setting = record["dataset"], record["method"], record["variant"]
    return Place(entry, address, setting, describe_entry(entry, reason, context), *compare_with_printed(entry))


def _column(result: TableResult, column: Column) -> Head:
    title = layout.title(result, column).removeprefix(f"{column.group}: ")
    return Head(title, column.group, ", ".join(layout.stand_ins(result, column)))


def compare_with_printed(entry: Entry) -> tuple[str, str]:
    """(measured minus printed with its sign, in the unit and digits of the column; 'better', 'worse' or 'equal').

    '' stands for a missing number, and for the word where no direction is better.
    """
    if entry.printed is None or entry.measured.value is None:
        return "", ""
    value = round(entry.measured.value * entry.unit - entry.printed.value * entry.unit, entry.column.digits)
    if not value:
        return "±0", "equal"
    good = {"higher": value > 0, "lower": value < 0}.get(entry.column.direction)
    return f"{value:+.{entry.column.digits}f}".replace("-", "−"), {True: "better", False: "worse", None: ""}[good]


def describe_entry(entry: Entry, reason: str, context: Context) -> str:
    """The comparison of the two numbers of a place in words, from the direction of its column and nothing else."""
    column, number = entry.column, layout.number(entry)
    rule = {"higher": "Higher is better.", "lower": "Lower is better.", "none": ""}[column.direction]
    if entry.measured.value is None:
        paper = f" The paper prints {entry.printed.text}." if entry.printed else ""
        return f"No number here: {reason or entry.measured.reason or 'it was not measured'}.{paper}"
    if entry.printed is None:
        what = "no such number" if column.printed else "no such column"
        return f"This was measured only here: the paper prints {what}. {rule}".strip()
    difference, word = compare_with_printed(entry)
    if word == "equal":
        compared = f"Here {number}, the same as printed at these digits."
    else:
        way = f"{difference[1:]} {'more' if difference[0] == '+' else 'less'} than the printed {entry.printed.text}"
        compared = f"Here {number}: {way}{f', which is {word}' if word else ''}."
    counts = {"as in the paper": entry.order.concordant, "otherwise": entry.order.discordant,
              "undecided": entry.order.undecided}  # fmt: skip
    listed = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    order = f"Comparisons with the other rows: {listed}." if listed else ""
    replaced = column.judge if context.is_replaced(column.judge) else None
    judge = f"The evaluator is {context.judge(replaced)}, in the place of {replaced.name}." if replaced else ""
    return " ".join(filter(None, [compared, rule, order, judge]))


def arrange_paper(
    name: str, tables: Iterable[tuple[TableResult, Path]], figures: Iterable[tuple[Figure, Path]],
    verdicts: Iterable[Verdict],
) -> Paper:  # fmt: skip
    """A paper from its tables, figures and claims. Each table comes with its .csv file, each figure with its .png."""

    def order(item: tuple) -> list[int | str]:
        stem = item[1].stem
        return [int(word) if word.isdigit() else word for word in re.split(r"(\d+)", stem)]

    arranged = tuple(arrange_table(result, path) for result, path in sorted(tables, key=order))
    missing: dict[str, int] = {}
    for line in (head.line for table in arranged for head in (*table.rows, *table.columns) if head.line):
        for entry in line.entries:
            if entry.measured.value is None:
                why = line.reason or entry.measured.reason
                missing[why] = missing.get(why, 0) + 1
    return Paper(
        name=name,
        cites=discovery.load("methods", name).paper if name in discovery.list_names("methods") else "",
        tables=arranged,
        figures=tuple((item, boards.encode_figure(path)) for item, path in sorted(figures, key=order)),
        claims=tuple(verdict for verdict in verdicts if verdict.claim.paper == name),
        missing=dict(sorted(missing.items(), key=lambda item: -item[1])),
    )


@dataclass(frozen=True)
class Build:
    """What the page shows of a build beside its papers.

    ``methods``: method -> variant -> its knobs. ``claims``: the CSV file of the papers' claims. ``further``: Markdown
    pages. ``private``: the datasets of which the page shows no image.
    """

    files: Files
    results: Results
    methods: Methods
    claims: Path
    further: Sequence[Path] = ()
    private: Collection[str] = ()


def render(papers: Sequence[Paper], build: Build) -> str:
    """The whole page. Raises ArchiveError when an archive is damaged."""
    files, methods, context = build.files, build.methods, build.results.context
    chains = {}
    for setting in sort_settings(files.settings, methods):
        knobs = methods.get(setting[1], {}).get(setting[2], {})
        chains[setting] = chain.list_links(setting, files, build.results.measurements(setting), knobs)
    shown = {cell.dataset for cell in files.cells}
    return (
        _make_environment(context)
        .get_template("page.html")
        .render(
            papers=papers,
            context=context,
            boards=boards.make_boards(files, methods, build.results.skipped, build.private),
            withheld=[sharing.explain_withheld(name) for name in build.private if name in shown],
            chains=chains,
            claims=(build.claims, fingerprints.md5(build.claims)),
            further={path: _remove_links(path.read_text(encoding="utf-8")) for path in build.further},
            stand_ins=cautions.explain_stand_ins(((name, name) for name in methods), context.latent_stand_ins),
            verdicts=(HOLDS, FAILS, UNDECIDED),
            chance=claims_page.describe_chance([verdict for paper in papers for verdict in paper.claims]),
            legend=layout.LEGEND,
        )
    )


def _remove_links(text: str) -> str:
    """Markdown with the text of each link in its place: the report may be read without the files beside it."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def _make_environment(context: Context) -> jinja2.Environment:
    loader = jinja2.PackageLoader("masquerade.papers.report", "look")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "inline": lambda text: Markup(MARKDOWN.renderInline(text)),
        "markdown": lambda text: Markup(MARKDOWN.render(text)),
        "slug": make_slug,
        "number": layout.number,
        "short": lambda value: "–" if value is None else f"{value:.4g}".replace("-", "−"),
        "fact": lambda value: f"{value:.6g}" if isinstance(value, float) else str(value),
        "anchor": lambda setting: f"from-{'-'.join(setting)}",
        "groupby_neighbors": lambda heads: [(group, len(places)) for group, places in layout.groups(heads)],
        "claim_name": claims_page.name_claim,
        "stand_in": lambda name: cautions.mark_title(name, name, context.latent_stand_ins),
        "stand_in_mark": lambda method: cautions.mark_title("", method, context.latent_stand_ins),
    }
    environment.globals["asset"] = lambda name: Markup(loader.get_source(environment, name)[0])
    return environment
