"""Computes which claims of the papers hold here, from the differences of the compared numbers and their intervals."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from masquerade.core.statistics import COVERED
from masquerade.papers import measured
from masquerade.papers.claims import Claim, Compared
from masquerade.papers.context import Context
from masquerade.papers.measured import Measured, Results
from masquerade.params import matrix

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "inconclusive"


@dataclass(frozen=True)
class Side:
    """One number of a comparison: over all seeds as the tables have it, and for each seed.

    ``by_seed``: seed -> the value in the metrics file of that seed (value, over, of, spread). ``reason`` says why a
    seed has no number; '' if every seed has one. ``absent``: the scale has no such cell, or no such part of the metric.
    """

    compared: Compared
    measured: Measured
    by_seed: Mapping[int, Mapping[str, Any]]
    reason: str = ""
    absent: bool = False


@dataclass(frozen=True)
class Margin:
    """The difference (greater - than) of one comparison over all seeds, or the trend of a sweep, with its intervals.

    ``pair``: the places of the two numbers among the sides; for a trend, of the first and the last. ``interval`` covers
    95 %. ``corrected`` covers 1 - 0.05 / m, where m is the number of tests of the claim.
    """

    value: float
    interval: tuple[float, float] | None
    corrected: tuple[float, float] | None
    pair: tuple[int, int]


@dataclass(frozen=True)
class Verdict:
    """One claim with its numbers.

    ``margins``: the comparisons of which no number is missing, in any seed; for a sweep, those of its steps. ``trend``:
    the mean fall of a sweep per step, if none of its numbers is missing. ``repeats``: an earlier claim that compares
    the same numbers at this scale.
    """

    claim: Claim
    dataset: str
    sides: tuple[Side, ...]
    margins: tuple[Margin, ...]
    seeds: tuple[int, ...]
    trend: Margin | None = None
    repeats: Claim | None = None

    @property
    def word(self) -> str:
        """'holds', 'does not hold' or 'inconclusive'.

        It holds if the 95 % interval of every difference lies above 0. This test of several differences at once needs
        no correction: it errs at most as often as that of one of them (an intersection-union test, Berger 1982). It
        does not hold if the corrected interval of one difference lies below 0, which is the first step of Holm (1979).
        A sweep holds if the interval of its trend lies above 0, and it does not hold if the corrected interval of the
        trend or of a step lies below 0. So either word is wrong in at most about 2.5 % of the cases.
        """
        if any(test.corrected and test.corrected[1] < 0 for test in self._tests):
            return FAILS
        decisive = [self.trend] if self.claim.descending else self.margins
        above = bool(decisive) and all(test and test.interval and test.interval[0] > 0 for test in decisive)
        spared = self.claim.parts and all(side.absent for side in self.sides if side.reason)
        return HOLDS if above and (spared or not self.left_out) else UNDECIDED

    @property
    def left_out(self) -> int:
        """The number of comparisons without a number."""
        return len(self.claim.pairs) - len(self.margins)

    @property
    def _tests(self) -> tuple[Margin, ...]:
        return (*self.margins, self.trend) if self.trend else self.margins

    @property
    def is_testable(self) -> bool:
        """Whether the numbers and intervals are there with which the claim could be decided."""
        return any(test.interval for test in self._tests)

    @property
    def smallest(self) -> Margin | None:
        """The difference whose interval begins lowest. None if no comparison has both numbers."""
        return min(
            self.margins,
            key=lambda margin: margin.interval[0] if margin.interval else margin.value,
            default=None,
        )

    @property
    def margin(self) -> Margin | None:
        """The number that decides: the trend of a sweep, else the smallest difference."""
        return self.trend if self.claim.descending else self.smallest

    @property
    def reason(self) -> str:
        """Why the claim is inconclusive, and what is missing: each reason once, with its cells; '' if nothing is."""
        cells: dict[str, list[str]] = {}
        for side in self.sides:
            name = f"`{side.compared.method}/{side.compared.variant}`"
            if side.reason and name not in cells.setdefault(side.reason, []):
                cells[side.reason].append(name)
        missing = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in cells.items())
        if missing and self.claim.parts and self.margins:
            counted = f"{len(self.margins)} of {len(self.claim.pairs)} comparisons; left out: {missing}"
            return "; ".join(filter(None, [self._doubt, counted]))
        return missing or self._doubt

    @property
    def _doubt(self) -> str:
        """Why the numbers that are there do not decide the claim; '' if they do."""
        if self.word != UNDECIDED:
            return ""
        if any(test.interval is None for test in self._tests):
            return "its margin has no interval, which needs several people"
        if all(test.interval and test.interval[0] > 0 for test in self._tests):
            return ""  # a number is missing
        if self.margin and self.margin.interval and self.margin.interval[1] < 0:
            return f"the interval of its margin lies below 0, but not if corrected for {len(self._tests)} tests"
        return "the interval of its margin contains 0"

    @property
    def over(self) -> tuple[int, int] | None:
        """(counted, of how many) behind the numbers, or None when they differ or there is no number."""
        counts = {(value["over"], value["of"]) for side in self.sides for value in side.by_seed.values()
                  if value["value"] is not None}  # fmt: skip
        return counts.pop() if len(counts) == 1 else None


def judge(claims: Iterable[Claim], results: Results) -> list[Verdict]:
    """The verdict on every claim, from the metrics of all cells, all seeds.

    A claim never holds while one of its numbers is missing, unless its comparisons are ``parts``.
    """
    first: dict[Hashable, Claim] = {}
    verdicts = []
    for claim in claims:
        earlier = first.setdefault(_identify_test(claim, results.context), claim)
        verdicts.append(_verdict(claim, results, earlier if earlier is not claim else None))
    return verdicts


def _identify_test(claim: Claim, context: Context) -> Hashable:
    """What two claims have in common that are one test here, where stand-ins replace datasets and evaluators."""

    def identify(place: int) -> tuple[str, ...]:
        side, measure = claim.sides[place], claim.measure_of(claim.sides[place])
        return side.method, side.variant, side.attempt, measure.metric, measure.part, context.judge(measure.judge)

    pairs = frozenset((identify(one), identify(other)) for one, other in claim.pairs)
    return context.dataset(claim.dataset), pairs, bool(claim.descending), claim.within


def count_tests(verdicts: Iterable[Verdict]) -> int:
    """How many different tests could decide a claim. Each errs in at most about 2.5 % of the cases on either side."""
    return sum(verdict.is_testable and verdict.repeats is None for verdict in verdicts)


def _verdict(claim: Claim, results: Results, repeats: Claim | None) -> Verdict:
    sides = tuple(_side(claim, compared, results) for compared in claim.sides)
    pairs = [pair for pair in claim.pairs if not any(sides[place].reason for place in pair)]
    has_trend = bool(claim.descending) and not any(side.reason for side in sides)
    level = 1 - (1 - COVERED) / max(len(pairs) + has_trend, 1)

    def test(places: Sequence[int], coefficients: Sequence[float]) -> Margin:
        numbers = [sides[place].measured for place in places]
        value, interval = measured.combine(numbers, coefficients, claim.within)
        corrected = measured.combine(numbers, coefficients, claim.within, level)[1]
        return Margin(value, interval, corrected, (places[0], places[-1]))

    return Verdict(
        claim,
        results.context.dataset(claim.dataset),
        sides,
        tuple(test(pair, measured.DIFFERENCE) for pair in pairs),
        results.context.seeds,
        test(range(len(sides)), claim.trend) if has_trend else None,
        repeats,
    )


def _side(claim: Claim, compared: Compared, results: Results) -> Side:
    key, measure = (
        (results.context.dataset(claim.dataset), compared.method, compared.variant),
        claim.measure_of(compared),
    )
    if reason := results.explain_missing(key):
        return Side(compared, Measured(reason=reason), {}, reason, absent=True)
    seeds, values = results.context.seeds, results.by_seed(key, measure, compared.attempt)
    if list(values) == [seeds[0]] and matrix.runs_once(compared.method):
        values = dict.fromkeys(seeds, values[seeds[0]])
    missing = [value["note"].rstrip(".") or "not a number" for value in values.values() if value["value"] is None]
    missing += [f"seed {seed} was not measured" for seed in seeds if seed not in values]
    reason = "; ".join(dict.fromkeys(missing))
    absent = bool(values) and all("over" not in value for value in values.values())
    return Side(compared, results.measure(key, measure, compared.attempt), values, reason, absent)
