"""Compares a measured number with the printed one, and the order of the rows with the order in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from masquerade.papers import layout
from masquerade.papers.context import Context
from masquerade.papers.table_result import Entry

MORE_IS_BETTER = {"higher": True, "lower": False}


@dataclass(frozen=True)
class Order:
    """Of the ``pairs`` of rows that the paper orders, how many have the ``same`` measured order."""

    same: int = 0
    pairs: int = 0

    def __add__(self, other: "Order") -> "Order":
        return Order(self.same + other.same, self.pairs + other.pairs)


def orders(entries: Sequence[Entry]) -> list[Order]:
    """For each entry of one column: its comparisons with the other rows.

    A pair with equal printed numbers is not compared. A pair with equal measured numbers has not the same order.
    """
    every = [Order() for _ in entries]
    known = {
        place: (entry.printed.value, entry.measured.value)
        for place, entry in enumerate(entries)
        if entry.printed and entry.measured.value is not None
    }
    for one, other in combinations(known, 2):
        printed, measured = (first - second for first, second in zip(known[one], known[other], strict=True))
        if printed:
            comparison = Order(int(printed * measured > 0), 1)
            every[one] += comparison
            every[other] += comparison
    return every


def of_column(entries: Sequence[Entry]) -> Order:
    """Every pair of rows of one column, each once."""
    each = orders(entries)
    return Order(sum(order.same for order in each) // 2, sum(order.pairs for order in each) // 2)


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


def sentence(entry: Entry, order: Order, reason: str, context: Context) -> str:
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
        _compared(entry), rule.strip(), *_ordered(order), *([_judged(entry, context)] if column.judge else []),
    ]).replace("  ", " ").strip()  # fmt: skip


def _compared(entry: Entry) -> str:
    text, word = difference(entry), verdict(entry)
    if text == "±0":
        return f"Here {layout.number(entry)}, the same as printed at these digits."
    assert entry.printed is not None  # or there is no difference
    way = f"{text[1:]} {'more' if text[0] == '+' else 'less'} than the printed {entry.printed.text}"
    return f"Here {layout.number(entry)}: {way}" + (f", which is {word}." if word else ".")


def _ordered(order: Order) -> list[str]:
    """How many comparisons with the other rows come out as in the paper."""
    if not order.pairs:
        return []
    if order.pairs == 1:
        return [f"Against the one other row, it stands {'as' if order.same else 'otherwise than'} in the paper."]
    count = "all" if order.same == order.pairs else f"{order.same or 'none'} of"
    return [f"Against the other rows, {count} {order.pairs} comparisons come out as in the paper."]


def _judged(entry: Entry, context: Context) -> str:
    judge = entry.column.judge
    if judge is None or not context.replaced(judge):
        return ""
    return f"{context.judge(judge)} judges in the place of {judge.name}."
