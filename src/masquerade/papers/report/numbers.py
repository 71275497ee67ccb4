"""What the page says of one number: its address, and the comparison of the measured number with the printed one."""

from collections.abc import Sequence

from masquerade.lineage.address import make_slug
from masquerade.papers import layout
from masquerade.papers.context import Context
from masquerade.papers.ordering import Order
from masquerade.papers.report.reading import Record
from masquerade.papers.tables import Entry

NamedRecord = tuple[Record, list[str]]
"""A record and the names of its column."""


def list_addresses(item: str, records: Sequence[Record]) -> list[str]:
    """The address of every record of a table."""
    rows: dict[str, list[NamedRecord]] = {}
    named = [(record, _names(record)) for record in records]
    for one in named:
        rows.setdefault(_row(one[0]), []).append(one)
    return [f"{item}:{_row(one[0])}:{_column(one, rows[_row(one[0])])}" for one in named]


def address_of_claim(paper: str, name: str) -> str:
    """The address of a claim."""
    return f"claims:{paper}:{name}"


def _column(one: NamedRecord, row: Sequence[NamedRecord]) -> str:
    """The first name of a column that no other number of its row has, except numbers on other datasets."""
    record, names = one
    for name in names:
        same = [other["dataset"] for other, theirs in row if name in theirs]
        if len(set(same)) == len(same):
            return name + (f":{record['dataset']}" if len(same) > 1 else "")
    return names[-1]


def _row(record: Record) -> str:
    return f"{record['method']}/{record['variant']}"


def _names(record: Record) -> list[str]:
    """The names of a column, readable ones first, exact ones last."""
    titled = ": ".join(filter(None, (record["group"], record["column"])))
    further = [record[key] for key in ("part", "judge", "attempt") if record.get(key)]
    metric = record["metric"]
    names = [titled, record["column"], metric, *(f"{metric} {word}" for word in further), " ".join([metric, *further])]
    return list(dict.fromkeys(map(make_slug, names)))


MORE_IS_BETTER = {"higher": True, "lower": False}


def difference(entry: Entry) -> str:
    """Measured minus printed with its sign, in the unit and digits of the column; '' if a number is missing."""
    if entry.printed is None or entry.measured.value is None:
        return ""
    value = round(entry.measured.value * entry.unit - entry.printed.value * entry.unit, entry.column.digits) + 0.0
    return f"{value:+.{entry.column.digits}f}".replace("-", "−") if value else "±0"


def verdict(entry: Entry) -> str:
    """'better', 'worse' or 'equal' than printed, by the direction of the column; '' if there is no direction."""
    text, direction = difference(entry), MORE_IS_BETTER.get(entry.column.direction)
    if not text:
        return ""
    if text == "±0":
        return "equal"
    return "" if direction is None else ("better" if (text[0] == "+") == direction else "worse")


def sentence(entry: Entry, reason: str, context: Context) -> str:
    """The comparison of the two numbers of a place in words, from the direction of its column and nothing else."""
    column = entry.column
    rule = {"higher": "Higher is better. ", "lower": "Lower is better. ", "none": ""}[column.direction]
    if entry.measured.value is None:
        paper = f" The paper prints {entry.printed.text}." if entry.printed else ""
        return f"No number here: {reason or entry.measured.reason or 'it was not measured'}.{paper}"
    if entry.printed is None:
        what = "no such number" if column.printed else "no such column"
        return f"Measured here alone: the paper prints {what}. {rule}".strip()
    return " ".join([
        _compare(entry), rule.strip(), *_describe_order(entry.order),
        *([_name_judge(entry, context)] if column.judge else []),
    ]).replace("  ", " ").strip()  # fmt: skip


def _compare(entry: Entry) -> str:
    text, word = difference(entry), verdict(entry)
    if text == "±0":
        return f"Here {layout.number(entry)}, the same as printed at these digits."
    assert entry.printed is not None  # or there is no difference
    way = f"{text[1:]} {'more' if text[0] == '+' else 'less'} than the printed {entry.printed.text}"
    return f"Here {layout.number(entry)}: {way}" + (f", which is {word}." if word else ".")


def _describe_order(order: Order) -> list[str]:
    """How many comparisons with the other rows come out as in the paper."""
    if not order.pairs:
        return []
    counts = {"as in the paper": order.concordant, "otherwise": order.discordant, "undecided": order.undecided}
    listed = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return [f"Comparisons with the other rows: {listed}."]


def _name_judge(entry: Entry, context: Context) -> str:
    judge = entry.column.judge
    if judge is None or not context.is_replaced(judge):
        return ""
    return f"{context.judge(judge)} judges in the place of {judge.name}."
