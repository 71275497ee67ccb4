"""The measured side of tables and figures: the metrics of cells, joined over seeds, each with its denominator.

It also compares measured numbers: their differences with intervals, and the order of rows with the order that a paper
prints. The metrics of one cell, as step ``evaluate`` writes them::

    {"cell": {"dataset": "synthetic_hq", "method": "identitydp", "variant": "eps_6", "seed": 0},
     "statement": {"faces": 24, "refused": 1, "epsilon": 6.0},
     "metrics": {"protection_success_rate": {"dlib_face": {"value": 0.9, "over": 23, "of": 24, "spread": None, ...}}},
     "attempts": {"recovered": {"protection_success_rate": {...}}},
     "measurements": {"data/mini/measurements/synthetic_hq/identitydp/eps_6/0.parquet": "0f3c..."}}
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

import numpy as np

from masquerade.core import seeding
from masquerade.core.statistics import COVERED, combine_intervals, compute_interval, correlate_draws, decode, is_extreme
from masquerade.papers import shares
from masquerade.papers.context import Context
from masquerade.papers.declarations import Measure, Printed
from masquerade.params.matrix import Setting

COUNTS = ("faces", "refused")
"""Keys of a cell's statement that count faces. Every other key is a fact that the method states about itself."""


@dataclass(frozen=True)
class Measured:
    """One metric of one (dataset, method, variant): the mean over the seeds that gave a number.

    ``seed_spread`` is the standard deviation (n - 1) over seeds, None for one seed. ``own_spread`` is the one that the
    metric's protocol reports (``own_spread_of``: folds, faces), pooled over seeds as the root of the mean variance.
    ``over`` of ``of`` faces or pairs are counted, summed over seeds. ``value`` is None when no seed gave a number.
    ``reason`` says why there is no value, or why some seeds gave none. ``draws``: the value in each bootstrap sample of
    the people and the seeds, (B,). ``people``: how many are behind a share of faces, who are the same in all seeds;
    None for another number. ``key_spread`` is the standard deviation over keys, each one for all faces, for a method
    that takes a key. ``of_all``: of a share, the value and the draws if every face that is not counted is a failure.
    """

    value: float | None = None
    key_spread: float | None = None
    seed_spread: float | None = None
    own_spread: float | None = None
    own_spread_of: str = ""
    over: int = 0
    of: int = 0
    seeds: int = 0
    note: str = ""
    reason: str = ""
    draws: np.ndarray | None = field(default=None, compare=False, repr=False)
    people: int | None = None
    of_all: "tuple[float, np.ndarray | None] | None" = field(default=None, compare=False, repr=False)

    def find_interval(self, covered: float = COVERED) -> tuple[float, float] | None:
        """The interval that covers a share ``covered`` (`compute_interval`); None without a value or without draws."""
        return None if self.value is None else compute_interval(self.value, self.draws, self.people, covered)

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval."""
        return self.find_interval()

    @property
    def is_extreme(self) -> bool:
        """Whether this is a share near 0 or 1, about which bootstrap samples of its people say too little."""
        return self.value is not None and self.people is not None and is_extreme(self.value, self.people)


class Results:
    """The metrics of every cell of a run, by (dataset, method, variant); why others are missing; and the context.

    ``skipped``: (dataset, method, variant) -> why it was not run.
    """

    def __init__(self, cells: Iterable[Mapping[str, Any]], skipped: Mapping[Setting, str], context: Context):
        self.skipped, self.context = skipped, context
        self._cells: dict[Setting, list[Mapping[str, Any]]] = {}
        for tree in sorted(cells, key=lambda tree: tree["cell"]["seed"]):
            cell = tree["cell"]
            self._cells.setdefault((cell["dataset"], cell["method"], cell["variant"]), []).append(tree)

    def explain_missing(self, key: Setting) -> str:
        """Why a setting has no metrics; '' if it has."""
        return "" if key in self._cells else self.skipped.get(key, "it has no metrics").rstrip(".")

    def variants(self, dataset: str, method: str) -> list[tuple[str, str]]:
        """The (method, variant) pairs of one method that were measured on one dataset."""
        return [(key[1], key[2]) for key in self._cells if key[:2] == (dataset, method)]

    def facts(self, *keys: Setting) -> dict[str, list[Any]]:
        """What a method states about itself: fact -> its different values over datasets and seeds, in their order."""
        facts: dict[str, list[Any]] = {}
        for cell in (cell for key in keys for cell in self._cells.get(key, ())):
            for name, value in cell["statement"].items():
                if name not in COUNTS and value not in facts.setdefault(name, []):
                    facts[name].append(value)
        return facts

    def measurements(self, key: Setting) -> dict[str, str]:
        """The files that the numbers of all seeds were computed from: path -> MD5 of its content."""
        return {path: md5 for cell in self._cells[key] for path, md5 in cell["measurements"].items()}

    def count_refused(self, *keys: Setting) -> tuple[int, int]:
        """(refused, all) faces, summed over datasets and seeds."""
        statements = [cell["statement"] for key in keys for cell in self._cells.get(key, ())]
        refused, every = (sum(statement.get(name, 0) for statement in statements) for name in reversed(COUNTS))
        return refused, every

    def measure(self, key: Setting, measure: Measure, attempt: str | None = None) -> Measured:
        """One metric over all seeds of one setting.

        ``attempt`` selects the images: '' = the anonymized ones; None = the attempt of ``measure``.
        """
        values = list(self.by_seed(key, measure, attempt).values())
        counted = [value for value in values if value["value"] is not None]
        missing = [value["note"].rstrip(".") or "not a number" for value in values if value["value"] is None]
        if not counted:
            return Measured(reason="; ".join(dict.fromkeys(missing)) or "no seed was measured")
        numbers = [value["value"] for value in counted]
        spreads = [value["spread"] for value in counted if value.get("spread") is not None]
        of_all = None
        if any(value.get("found") for value in counted):
            whole = _join_draws([_read_draws(value, True) for value in counted])
            of_all = fmean(value["value"] * value["over"] / value["of"] for value in counted), whole
        few = f"{len(missing)} of {len(values)} seeds gave no number: {'; '.join(dict.fromkeys(missing))}"
        key_spreads = [value["key_spread"] for value in counted if value.get("key_spread") is not None]
        return Measured(
            value=fmean(numbers),
            key_spread=math.sqrt(fmean(spread**2 for spread in key_spreads)) if key_spreads else None,
            seed_spread=stdev(numbers) if len(numbers) > 1 else None,
            own_spread=math.sqrt(fmean(spread**2 for spread in spreads)) if spreads else None,
            own_spread_of=counted[0].get("spread_of", "") if spreads else "",
            over=sum(value["over"] for value in counted),
            of=sum(value["of"] for value in counted),
            seeds=len(counted),
            note="; ".join(dict.fromkeys(value["note"] for value in counted if value.get("note"))),
            reason=few if missing else "",
            draws=_join_draws([_read_draws(value) for value in counted]),
            of_all=of_all,
            people=min((value["people"] for value in counted if value.get("people") is not None), default=None),
        )

    def by_seed(self, key: Setting, measure: Measure, attempt: str | None = None) -> dict[int, Mapping[str, Any]]:
        """Seed -> the metric as the metrics file has it (value, over, of, spread, ...), by seed.

        If a seed gave no number, ``value`` is None and ``note`` says why.
        """
        name = ".".join(filter(None, [self.context.judge(measure.judge), measure.part]))
        images = measure.attempt if attempt is None else attempt
        cells = self._cells.get(key, ())
        return {cell["cell"]["seed"]: _with_keys(cell, images, measure.metric, name) for cell in cells}


def _read_draws(value: Mapping[str, Any], of_all: bool = False) -> np.ndarray | None:
    """The draws of a value of one seed; with ``of_all`` those of the share of all faces."""
    if value.get("draws") is None:
        return None
    found = value.get("found") if of_all else None
    return decode(value["draws"]) * (1.0 if found is None else decode(found))


def _join_draws(parts: Sequence[np.ndarray | None]) -> np.ndarray | None:
    """The draws of the mean over seeds, from those of each seed; None if a seed has none.

    Each sample also draws the seeds, with replacement and alike in all cells.
    """
    samples = [part for part in parts if part is not None]
    if not samples or len(samples) < len(parts):
        return None
    draws = np.stack(samples)
    seeds, count = draws.shape
    drawn = seeding.make_generator(0, "bootstrap of seeds", seeds).integers(seeds, size=(seeds, count))
    return np.take_along_axis(draws, drawn, axis=0).mean(axis=0) if seeds > 1 else draws[0]


def _with_keys(cell: Mapping[str, Any], attempt: str, metric: str, name: str) -> Mapping[str, Any]:
    """`_value`; that of the anonymized images takes its spread over keys from those of other keys."""
    attempts = cell.get("attempts", {})
    reason = f"{cell['cell']['method']} has no attempt '{attempt}'"
    value = _value(attempts.get(attempt, reason) if attempt else cell["metrics"], metric, name)
    if attempt or value["value"] is None or "key" not in attempts:
        return value
    return {**value, "key_spread": _value(attempts["key"], metric, name).get("key_spread")}


def _value(metrics: Mapping[str, Any] | str, metric: str, name: str) -> Mapping[str, Any]:
    """The value of one metric by its name (judge and part). ``metrics``: or the reason why there are none.

    Without a number, ``value`` is None and ``note`` says why.
    """
    note = ""
    if isinstance(metrics, str):
        note = metrics
    elif metric not in metrics:
        note = f"{metric} was not computed at this scale"
    elif not metrics[metric]:
        note = f"{metric} was not measured here"
    elif name not in metrics[metric]:
        note = f"{metric} has no value by {name or 'itself'} here"
    if note or isinstance(metrics, str):
        return {"value": None, "note": note}
    value = metrics[metric][name]
    return value if value["value"] is not None and math.isfinite(value["value"]) else {**value, "value": None}


def fact_text(values: Sequence[Any]) -> str:
    """The different values of a stated fact as text. Several numbers become a range."""
    texts = list(dict.fromkeys(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    if len(texts) > 1 and all(isinstance(value, int | float) for value in values):
        return f"{min(values):.4g} to {max(values):.4g}"
    return " or ".join(texts) or "not stated"


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


DIFFERENCE = (1.0, -1.0)
"""The coefficients of the difference of two numbers."""


def combine(
    numbers: Sequence[Measured], coefficients: Sequence[float], within: float = 0.0, covered: float = COVERED
) -> tuple[float, tuple[float, float] | None]:
    """The sum of several numbers, each times its coefficient, plus ``within``; and its interval.

    Every number must have a value; without draws there is no interval. The interval covers a share ``covered``. It is
    that of the sum in each bootstrap sample of the same people. Where all numbers are shares of people, whose bootstrap
    is too narrow for few people and near 0 and 1, it also contains the interval of `shares.combine_shares`. Samples of
    its people say too little about a share near 0 or 1 (`statistics.is_extreme`), so with one and a number of another
    kind the interval is combined from those of the numbers (`combine_intervals`).
    """
    scales, values = np.array(coefficients), np.array([number.value for number in numbers], dtype=np.float64)
    value = float(scales @ values) + within
    samples = [number.draws for number in numbers if number.draws is not None]
    if len(samples) < len(numbers):
        return value, None
    draws = np.stack(samples)
    sampled = compute_interval(value, scales @ draws + within, covered=covered)
    people = [number.people for number in numbers if number.people is not None]
    if len(people) == len(numbers):
        low, high = shares.combine_shares(values, scales, draws, people, covered)
        ends = [low + within, high + within, *(sampled or ())]
        return value, (min(ends), max(ends))
    if not any(number.is_extreme for number in numbers):
        return value, sampled
    intervals = [interval for number in numbers if (interval := number.find_interval(covered))]
    if len(intervals) < len(numbers):
        return value, None
    low, high = combine_intervals(values, scales, np.array(intervals), correlate_draws(draws))
    return value, (low + within, high + within)


def compare_orders(rows: Sequence[tuple[Printed | None, Measured]]) -> list[Order]:
    """For each row of one column: its comparisons with the other rows. Equal printed numbers are not compared."""
    orders = [Order() for _ in rows]
    numbers = [
        (place, printed.value, measured)
        for place, (printed, measured) in enumerate(rows)
        if printed and measured.value is not None
    ]
    for (place, printed, measured), (other_place, other_printed, other_measured) in combinations(numbers, 2):
        if sign := np.sign(printed - other_printed):
            comparison = _compare(sign, combine((measured, other_measured), DIFFERENCE)[1])
            orders[place] += comparison
            orders[other_place] += comparison
    return orders


def _compare(printed_sign: float, interval: tuple[float, float] | None) -> Order:
    if interval is None or interval[0] <= 0 <= interval[1]:
        return Order(undecided=1)
    return Order(concordant=1) if np.sign(interval[0]) == printed_sign else Order(discordant=1)
