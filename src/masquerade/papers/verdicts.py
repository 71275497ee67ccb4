"""Computes which claims of the papers hold here, from the differences of the compared numbers and their intervals."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from masquerade.papers import measured
from masquerade.papers.claims import Claim, Compared
from masquerade.papers.measured import Measured, Results
from masquerade.params import matrix

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "inconclusive"


@dataclass(frozen=True)
class Side:
    """One number of a comparison: over all seeds as the tables have it, and for each seed.

    ``by_seed``: seed -> the value in the metrics file of that seed (value, over, of, spread). ``reason`` says why a
    seed has no number; '' if every seed has one.
    """

    compared: Compared
    measured: Measured
    by_seed: Mapping[int, Mapping[str, Any]]
    reason: str = ""


@dataclass(frozen=True)
class Margin:
    """The difference (greater - than) of one comparison over all seeds, with its interval.

    ``pair``: the places of the two numbers among the sides. ``interval`` covers 95 % of the bootstrap samples.
    """

    value: float
    interval: tuple[float, float] | None
    pair: tuple[int, int]


@dataclass(frozen=True)
class Verdict:
    """One claim with its numbers. ``margins``: the comparisons of which no number is missing, in any seed."""

    claim: Claim
    dataset: str
    sides: tuple[Side, ...]
    margins: tuple[Margin, ...]
    seeds: tuple[int, ...]

    @property
    def word(self) -> str:
        """'holds', 'does not hold' or 'inconclusive'.

        It holds if the interval of every difference lies above 0, and does not hold if that of one lies below 0.
        """
        ends = [margin.interval for margin in self.margins]
        if any(interval and interval[1] < 0 for interval in ends):
            return FAILS
        above = len(ends) == len(self.claim.pairs) and all(interval and interval[0] > 0 for interval in ends)
        return HOLDS if above else UNDECIDED

    @property
    def smallest(self) -> Margin | None:
        """The margin that decides: the one whose interval begins lowest. None if no comparison has both numbers."""
        return min(
            self.margins,
            key=lambda margin: margin.interval[0] if margin.interval else margin.value,
            default=None,
        )

    @property
    def reason(self) -> str:
        """Why the claim is inconclusive: each reason for a missing number once, with its cells; '' if it can."""
        cells: dict[str, list[str]] = {}
        for side in self.sides:
            name = f"`{side.compared.method}/{side.compared.variant}`"
            if side.reason and name not in cells.setdefault(side.reason, []):
                cells[side.reason].append(name)
        missing = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in cells.items())
        if missing or self.word != UNDECIDED:
            return missing
        if any(margin.interval is None for margin in self.margins):
            return "its margin has no interval, which needs several people"
        return "the interval of its margin contains 0"

    @property
    def over(self) -> tuple[int, int] | None:
        """(counted, of how many) behind the numbers, or None when they differ or there is no number."""
        counts = {(value["over"], value["of"]) for side in self.sides for value in side.by_seed.values()
                  if value["value"] is not None}  # fmt: skip
        return counts.pop() if len(counts) == 1 else None


def judge(claims: Iterable[Claim], results: Results) -> list[Verdict]:
    """The verdict on every claim, from the metrics of all cells, all seeds.

    A claim never holds while one of its numbers is missing.
    """
    return [_verdict(claim, results) for claim in claims]


def _verdict(claim: Claim, results: Results) -> Verdict:
    sides = tuple(_side(claim, compared, results) for compared in claim.sides)
    margins = tuple(
        Margin(*measured.subtract(sides[one].measured, sides[other].measured, claim.within), (one, other))
        for one, other in claim.pairs
        if not (sides[one].reason or sides[other].reason)
    )
    return Verdict(claim, results.context.dataset(claim.dataset), sides, margins, results.context.seeds)


def _side(claim: Claim, compared: Compared, results: Results) -> Side:
    key, measure = (
        (results.context.dataset(claim.dataset), compared.method, compared.variant),
        claim.measure_of(compared),
    )
    if reason := results.explain_missing(key):
        return Side(compared, Measured(reason=reason), {}, reason)
    seeds, values = results.context.seeds, results.by_seed(key, measure, compared.attempt)
    if list(values) == [seeds[0]] and matrix.runs_once(compared.method):
        values = dict.fromkeys(seeds, values[seeds[0]])
    missing = [value["note"].rstrip(".") or "not a number" for value in values.values() if value["value"] is None]
    missing += [f"seed {seed} was not measured" for seed in seeds if seed not in values]
    reason = "; ".join(dict.fromkeys(missing))
    return Side(compared, results.measure(key, measure, compared.attempt), values, reason)
