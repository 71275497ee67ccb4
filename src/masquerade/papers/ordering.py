"""Compares the order of measured rows with the order that a paper prints: concordant, discordant, undecided pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from masquerade.core.statistics import compute_interval
from masquerade.papers.measured import Measured
from masquerade.papers.printed import Printed


@dataclass(frozen=True)
class Order:
    """Of the pairs of rows that the paper orders and that were measured, how many agree with it.

    ``concordant``: the interval of the measured difference lies on the printed side of 0. ``discordant``: on the other
    side. ``undecided``: it contains 0, or there is none. Chance gives as many discordant pairs as concordant ones.
    """

    concordant: int = 0
    discordant: int = 0
    undecided: int = 0

    @property
    def pairs(self) -> int:
        """All pairs that were compared."""
        return self.concordant + self.discordant + self.undecided

    @property
    def decided(self) -> int:
        """The pairs whose measured order is known."""
        return self.concordant + self.discordant

    def __add__(self, other: "Order") -> "Order":
        return Order(
            self.concordant + other.concordant, self.discordant + other.discordant, self.undecided + other.undecided
        )


def difference(greater: Measured, than: Measured, within: float = 0.0) -> tuple[float, tuple[float, float] | None]:
    """The difference of two values plus ``within``, and its interval; both must have a value.

    The interval is that of the differences in each bootstrap sample of the same people.
    """
    assert greater.value is not None
    assert than.value is not None
    value = greater.value - than.value + within
    if greater.draws is None or than.draws is None:
        return value, None
    return value, compute_interval(greater.draws - than.draws + within)


def orders(rows: Sequence[tuple[Printed | None, Measured]]) -> list[Order]:
    """For each row of one column: its comparisons with the other rows. Equal printed numbers are not compared."""
    every = [Order() for _ in rows]
    known = {
        place: (printed.value, measured)
        for place, (printed, measured) in enumerate(rows)
        if printed and measured.value is not None
    }
    for one, other in combinations(known, 2):
        printed = np.sign(known[one][0] - known[other][0])
        if printed:
            comparison = _compare(printed, difference(known[one][1], known[other][1])[1])
            every[one] += comparison
            every[other] += comparison
    return every


def _compare(printed: float, ends: tuple[float, float] | None) -> Order:
    if ends is None or ends[0] <= 0 <= ends[1]:
        return Order(undecided=1)
    return Order(concordant=1) if np.sign(ends[0]) == printed else Order(discordant=1)
