"""Computes which claims of the papers hold here, from the smallest difference of the compared numbers in each seed."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from masquerade.papers.claims import Claim, Compared
from masquerade.papers.context import Context
from masquerade.papers.measured import Cells, Measured
from masquerade.params import matrix
from masquerade.params.matrix import Setting

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "cannot be told"


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
    """The smallest difference (greater - than) of one seed, and the places of its pair among the sides."""

    value: float
    pair: tuple[int, int]


@dataclass(frozen=True)
class Verdict:
    """One claim with its numbers. ``margins``: seed -> its margin, for the seeds in which no number is missing."""

    claim: Claim
    dataset: str
    sides: tuple[Side, ...]
    margins: Mapping[int, Margin]
    seeds: tuple[int, ...]

    @property
    def word(self) -> str:
        """'holds' (margin above 0 in every seed), 'does not hold' (not in every seed), or 'cannot be told'."""
        if any(margin.value <= 0 for margin in self.margins.values()):
            return FAILS
        return HOLDS if len(self.margins) == len(self.seeds) else UNDECIDED

    @property
    def held(self) -> int:
        """The number of seeds in which the margin is above 0."""
        return sum(margin.value > 0 for margin in self.margins.values())

    @property
    def smallest(self) -> Margin | None:
        """The margin of the worst seed, or None when no seed has a margin."""
        return min(self.margins.values(), key=lambda margin: margin.value, default=None)

    @property
    def reason(self) -> str:
        """Why a number is missing: each reason once, with its cells. '' if no number is missing."""
        cells: dict[str, list[str]] = {}
        for side in self.sides:
            name = f"`{side.compared.method}/{side.compared.variant}`"
            if side.reason and name not in cells.setdefault(side.reason, []):
                cells[side.reason].append(name)
        return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in cells.items())

    @property
    def over(self) -> tuple[int, int] | None:
        """(counted, of how many) behind the numbers, or None when they differ or there is no number."""
        counts = {(value["over"], value["of"]) for side in self.sides for value in side.by_seed.values()
                  if value["value"] is not None}  # fmt: skip
        return counts.pop() if len(counts) == 1 else None


def judge(
    claims: Iterable[Claim], cells: Iterable[Mapping[str, Any]], skipped: Mapping[Setting, str], context: Context
) -> list[Verdict]:
    """The verdict on every claim, from the metrics of all cells, all seeds.

    ``skipped`` gives the reason for each (dataset, method, variant) that was not run. A claim never holds while one of
    its numbers is missing.
    """
    measured = Cells(cells)
    return [_verdict(claim, measured, skipped, context) for claim in claims]


def _verdict(claim: Claim, cells: Cells, skipped: Mapping[Setting, str], context: Context) -> Verdict:
    sides = tuple(_side(claim, compared, cells, skipped, context) for compared in claim.sides)
    margins = {seed: margin for seed in context.seeds if (margin := _margin(claim, sides, seed))}
    return Verdict(claim, context.dataset(claim.dataset), sides, margins, context.seeds)


def _side(claim: Claim, compared: Compared, cells: Cells, skipped: Mapping[Setting, str], context: Context) -> Side:
    key, measure = (context.dataset(claim.dataset), compared.method, compared.variant), claim.measure_of(compared)
    if key not in cells:
        reason = skipped.get(key, "it has no metrics").rstrip(".")
        return Side(compared, Measured(reason=reason), {}, reason)
    values = cells.by_seed(key, measure, context, compared.attempt)
    if list(values) == [context.seeds[0]] and matrix.runs_once(compared.method):
        values = dict.fromkeys(context.seeds, values[context.seeds[0]])
    missing = [value["note"].rstrip(".") or "not a number" for value in values.values() if value["value"] is None]
    missing += [f"seed {seed} was not measured" for seed in context.seeds if seed not in values]
    reason = "; ".join(dict.fromkeys(missing))
    return Side(compared, cells.measured(key, measure, context, compared.attempt), values, reason)


def _margin(claim: Claim, sides: Sequence[Side], seed: int) -> Margin | None:
    """The margin of one seed, with what the claim allows (``within``), or None when one of its numbers is missing."""
    values = [side.by_seed.get(seed, {"value": None})["value"] for side in sides]
    if None in values:
        return None
    margins = (Margin(values[one] - values[other] + claim.within, (one, other)) for one, other in claim.pairs)
    return min(margins, key=lambda each: each.value)
