"""Prepares what the template shows, and renders the report as one HTML file that needs no network."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markdown_it import MarkdownIt
from markupsafe import Markup

from masquerade.core import discovery, fingerprints
from masquerade.papers import latent_stand_ins, layout, reference
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Item, Table
from masquerade.papers.measured import Cells
from masquerade.papers.ordering import Order
from masquerade.papers.report import boards, chain, numbers, reading
from masquerade.papers.report.chain import Files
from masquerade.papers.report.variants import Methods, in_order
from masquerade.papers.tables import Entry, Line, TableResult
from masquerade.papers.verdicts import FAILS, HOLDS, UNDECIDED
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
    order: Order


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
    preamble: tuple[str, ...]
    legend: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]

    @property
    def order(self) -> Order:
        return sum(self.orders, Order())

    @property
    def measured(self) -> tuple[int, int]:
        """(places with a number, all places)."""
        every = [place for row in self.places for place in row]
        return sum(place.entry.measured.value is not None for place in every), len(every)


@dataclass(frozen=True)
class Paper:
    """Everything of one paper, or of one folder of our own tables.

    ``missing``: reason -> how many places have no number for that reason.
    """

    name: str
    cites: str
    tables: tuple[ReportTable, ...]
    figures: tuple[tuple[Item, str], ...]
    claims: tuple[reading.Assertion, ...]
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


def report_table(declared: Table, csv: Path, cells: Cells, context: Context) -> ReportTable:
    """A table from its declaration and its CSV file."""
    records = reading.records(csv.read_text(encoding="utf-8"))
    result = reading.table(declared, records, cells, context)
    named = iter(zip(numbers.list_addresses(declared.key, records), records, strict=True))
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
        orders=tuple(_of_column([line.entries[at].order for line in result.lines]) for at in range(len(columns))),
        file=str(csv),
        md5=fingerprints.md5(csv),
        preamble=tuple(layout.preamble(result)[1:]),  # the page shows the scale's caution once, at its top
        legend=tuple(map(tuple, layout.legend(result))),
        # without the commit: the table may be of another commit than this page, and `lineage show` prints it
        notes=tuple(note.partition(" Code: commit")[0] for note in layout.notes(result)),
    )


def _of_column(orders: Iterable[Order]) -> Order:
    """Every pair of rows of one column, each once: a pair stands at both of its rows."""
    total = sum(orders, Order())
    return Order(total.concordant // 2, total.discordant // 2, total.undecided // 2)


def _place(entry: Entry, address: str, record: reading.Record, reason: str, context: Context) -> Place:
    return Place(
        entry=entry,
        address=address,
        setting=(record["dataset"], record["method"], record["variant"]),
        sentence=numbers.sentence(entry, reason, context),
        difference=numbers.difference(entry),
        verdict=numbers.verdict(entry),
        order=entry.order,
    )


def _column(result: TableResult, column: Column) -> Head:
    title = layout.title(result, column).removeprefix(f"{column.group}: ")
    return Head(title, column.group, ", ".join(layout.stand_ins(result, column)))


def paper(
    name: str,
    items: Sequence[tuple[Item, Path]],
    claims: Sequence[reading.Assertion],
    cells: Cells,
    context: Context,
) -> Paper:
    """A paper from its declared tables and figures, each with its file: the .csv of a table, the .png of a figure."""
    items = sorted(items, key=lambda item: [int(word) if word.isdigit() else word
                                            for word in re.split(r"(\d+)", item[0].name)])  # fmt: skip
    tables = tuple(report_table(item, path, cells, context) for item, path in items if isinstance(item, Table))
    missing: dict[str, int] = {}
    for line in (head.line for table in tables for head in (*table.rows, *table.columns) if head.line):
        for entry in line.entries:
            if entry.measured.value is None:
                why = line.reason or entry.measured.reason
                missing[why] = missing.get(why, 0) + 1
    return Paper(
        name=name,
        cites=discovery.load("methods", name).paper if name in discovery.list_names("methods") else "",
        tables=tables,
        figures=tuple((item, boards.figure(path)) for item, path in items if not isinstance(item, Table)),
        claims=tuple(claim for claim in claims if claim.claim.paper == name),
        missing=dict(sorted(missing.items(), key=lambda item: -item[1])),
    )


def all_papers(
    names: Sequence[str],
    folder: Path,
    built: Sequence[Path],
    claims: Sequence[reading.Assertion],
    cells: Cells,
    context: Context,
) -> list[Paper]:
    """The papers of these ``names``, declared in ``folder``. ``built``: the .csv or .png of every table or figure."""
    papers = []
    for name in names:
        declared = {item.name: item for item in reference.find(name, folder, context.latent_stand_ins)}
        items = [(declared[path.stem], path) for path in built if path.parent.name == name]
        papers.append(paper(name, items, claims, cells, context))
    return papers


@dataclass(frozen=True)
class Build:
    """What the page shows of a build beside its papers.

    ``methods``: method -> variant -> its knobs. ``skipped``: (dataset, method, variant) -> why it was not run.
    ``claims``: the CSV file of the papers' claims. ``further``: Markdown pages. ``private``: the datasets of which the
    page shows no image.
    """

    files: Files
    cells: Cells
    methods: Methods
    skipped: Mapping[Setting, str]
    claims: Path
    further: Sequence[Path] = ()
    private: Collection[str] = ()


def render(papers: Sequence[Paper], build: Build, context: Context) -> str:
    """The whole page. Raises ArchiveError when an archive is damaged."""
    files, methods = build.files, build.methods
    chains = {}
    for setting in in_order(files.settings, methods):
        knobs = methods.get(setting[1], {}).get(setting[2], {})
        chains[setting] = chain.chain_of(setting, files, build.cells.measurements(setting), knobs)
    shown = {cell.dataset for cell in files.cells}
    return (
        _environment(context)
        .get_template("page.html")
        .render(
            papers=papers,
            context=context,
            boards=boards.boards(files, methods, build.skipped, build.private),
            withheld=[sharing.explain_withheld(name) for name in build.private if name in shown],
            chains=chains,
            claims=(build.claims, fingerprints.md5(build.claims)),
            further={path: path.read_text(encoding="utf-8") for path in build.further},
            stand_ins=latent_stand_ins.note(((name, name) for name in methods), context.latent_stand_ins),
            verdicts=(HOLDS, FAILS, UNDECIDED),
            legend=layout.LEGEND,
        )
    )


def _environment(context: Context) -> jinja2.Environment:
    loader = jinja2.PackageLoader("masquerade.papers.report", "look")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {
        "inline": lambda text: Markup(MARKDOWN.renderInline(text)),
        "markdown": lambda text: Markup(MARKDOWN.render(text)),
        "slug": numbers.make_slug,
        "number": layout.number,
        "printed": layout.format_printed,
        "short": lambda value: "–" if value is None else f"{value:.4g}".replace("-", "−"),
        "fact": lambda value: f"{value:.6g}" if isinstance(value, float) else str(value),
        "anchor": lambda setting: f"from-{'-'.join(setting)}",
        "groupby_neighbors": lambda heads: [(group, len(places)) for group, places in layout.groups(heads)],
        "stand_in": lambda name: latent_stand_ins.mark_title(name, name, context.latent_stand_ins),
        "stand_in_mark": lambda method: latent_stand_ins.mark_title("", method, context.latent_stand_ins),
        "claim_address": lambda claim: numbers.address_of_claim(claim.paper, claim.name),
    }
    environment.globals["asset"] = lambda name: Markup(loader.get_source(environment, name)[0])
    return environment
