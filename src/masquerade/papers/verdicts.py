"""Which claims of the papers hold here: per seed the smallest difference of the numbers that are compared."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from masquerade import matrix
from masquerade.papers.claims import Claim, Compared
from masquerade.papers.measured import Cells, Context, Measured
from masquerade.papers.reference import Need

HOLDS, FAILS, UNTOLD = "holds", "does not hold", "cannot be told"


@dataclass(frozen=True)
class Side:
    """One number of a comparison: over all seeds as the tables have it, and of each seed.

    ``by_seed``: seed -> what the metrics file of that seed says (value, over, of, spread). ``reason`` says why a seed
    has no number; '' where every seed has one.
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
    """One claim with its numbers. ``margins``: seed -> its margin, of the seeds in which no number is missing."""

    claim: Claim
    dataset: str
    sides: tuple[Side, ...]
    margins: Mapping[int, Margin]
    seeds: tuple[int, ...]

    @property
    def word(self) -> str:
        """'holds' (the margin is above 0 in every seed), 'does not hold' (in some seed it is not), 'cannot be told'."""
        if any(margin.value <= 0 for margin in self.margins.values()):
            return FAILS
        return HOLDS if len(self.margins) == len(self.seeds) else UNTOLD

    @property
    def held(self) -> int:
        """In how many seeds the margin is above 0."""
        return sum(margin.value > 0 for margin in self.margins.values())

    @property
    def smallest(self) -> Margin | None:
        """The margin of the worst seed; None where none is known."""
        return min(self.margins.values(), key=lambda margin: margin.value, default=None)

    @property
    def reason(self) -> str:
        """Why a number is missing: each reason once, with the cells that it is about; '' where none is."""
        cells: dict[str, list[str]] = {}
        for side in self.sides:
            name = f"`{side.compared.method}/{side.compared.variant}`"
            if side.reason and name not in cells.setdefault(side.reason, []):
                cells[side.reason].append(name)
        return "; ".join(f"{', '.join(names)}: {reason}" for reason, names in cells.items())

    @property
    def over(self) -> tuple[int, int] | None:
        """(counted, of how many) behind every number of every seed; None where they differ or none is known."""
        found = {(value["over"], value["of"]) for side in self.sides for value in side.by_seed.values()
                 if value["value"] is not None}  # fmt: skip
        return found.pop() if len(found) == 1 else None


def judge(
    claims: Iterable[Claim], cells: Iterable[Mapping[str, Any]], skipped: Mapping[Need, str], context: Context
) -> list[Verdict]:
    """The verdict on every claim, from the metrics of all cells, all seeds.

    ``skipped`` gives the reason of each (dataset, method, variant) that was not run. A claim of which a number is
    missing never holds.
    """
    measured = Cells(cells)
    return [_verdict(claim, measured, skipped, context) for claim in claims]


def _verdict(claim: Claim, cells: Cells, skipped: Mapping[Need, str], context: Context) -> Verdict:
    sides = tuple(_side(claim, compared, cells, skipped, context) for compared in claim.sides)
    margins = {seed: margin for seed in context.seeds if (margin := _margin(claim.pairs, sides, seed))}
    return Verdict(claim, context.dataset(claim.dataset), sides, margins, context.seeds)


def _side(claim: Claim, compared: Compared, cells: Cells, skipped: Mapping[Need, str], context: Context) -> Side:
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


def _margin(pairs: Sequence[tuple[int, int]], sides: Sequence[Side], seed: int) -> Margin | None:
    """None where a number of this seed is missing."""
    values = [side.by_seed.get(seed, {"value": None})["value"] for side in sides]
    if None in values:
        return None
    return min((Margin(values[one] - values[other], (one, other)) for one, other in pairs), key=lambda each: each.value)
