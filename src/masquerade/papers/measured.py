"""The measured side of tables and figures: the metrics of cells, joined over seeds, each with its denominator."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from masquerade.papers.reference import Measure, Named, stand_in
from masquerade.params import StandIns

COUNTS = ("faces", "refused")
"""Keys of a cell's statement that count; every other key is a fact that the method states about itself."""


@dataclass(frozen=True)
class Context:
    """What a reader must know of a run beside its numbers.

    ``caution`` is said above every table ('' = nothing to say); ``commit`` is the code that made the numbers.
    """

    scale: str
    seeds: tuple[int, ...]
    stand_ins: StandIns
    commit: str
    caution: str = ""

    def dataset(self, named: Named) -> str:
        """The dataset that stands in the place of the paper's."""
        return stand_in(named, self.stand_ins.datasets)

    def judge(self, named: Named | None) -> str:
        """The judge that stands in the place of the paper's; '' where the metric needs nobody."""
        return stand_in(named, self.stand_ins.judges) if named else ""

    def replaced(self, named: Named | None) -> bool:
        """Whether another judge than the paper's gives the measured value."""
        return named is not None and self.judge(named) != named.role


@dataclass(frozen=True)
class Measured:
    """One metric of one (dataset, method, variant): the mean over the seeds that gave a number.

    ``seed_spread`` is the standard deviation (n - 1) over seeds, None for one seed. ``own_spread`` is the one that the
    metric's protocol reports (``own_spread_of``: folds, faces), pooled over seeds as the root of the mean variance.
    ``over`` of ``of`` faces or pairs are counted, summed over seeds. ``value`` is None where no seed gave a number;
    ``reason`` then says why, and else why some seeds gave none.
    """

    value: float | None = None
    seed_spread: float | None = None
    own_spread: float | None = None
    own_spread_of: str = ""
    over: int = 0
    of: int = 0
    seeds: int = 0
    note: str = ""
    reason: str = ""


class Cells:
    """The metrics of every cell of a run, found by dataset, method and variant."""

    def __init__(self, cells: Iterable[Mapping[str, Any]]):
        self._found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
        for cell in sorted(cells, key=lambda cell: cell["cell"]["seed"]):
            where = cell["cell"]
            self._found.setdefault((where["dataset"], where["method"], where["variant"]), []).append(cell)

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        return key in self._found

    def variants(self, dataset: str, method: str) -> list[tuple[str, str]]:
        """The (method, variant) pairs of one method that were measured on one dataset."""
        return [(key[1], key[2]) for key in self._found if key[:2] == (dataset, method)]

    def facts(self, *keys: tuple[str, str, str]) -> dict[str, list[Any]]:
        """What a method states about itself: fact -> its different values over datasets and seeds, in their order."""
        facts: dict[str, list[Any]] = {}
        for cell in (cell for key in keys for cell in self._found.get(key, ())):
            for name, value in cell["statement"].items():
                if name not in COUNTS and value not in facts.setdefault(name, []):
                    facts[name].append(value)
        return facts

    def refused(self, *keys: tuple[str, str, str]) -> tuple[int, int]:
        """(refused, all) faces over all datasets and seeds."""
        statements = [cell["statement"] for key in keys for cell in self._found.get(key, ())]
        return tuple(sum(said.get(name, 0) for said in statements) for name in reversed(COUNTS))

    def measured(
        self, key: tuple[str, str, str], measure: Measure, context: Context, attempt: str | None = None
    ) -> Measured:
        """One metric over all seeds of one (dataset, method, variant), of the pictures of ``attempt`` ('' = the
        anonymized ones; None = what the measure says)."""
        given = list(self.by_seed(key, measure, context, attempt).values())
        numbers = [value for value in given if value["value"] is not None]
        missing = [value["note"].rstrip(".") or "not a number" for value in given if value["value"] is None]
        if not numbers:
            return Measured(reason="; ".join(dict.fromkeys(missing)) or "no seed was measured")
        values = [value["value"] for value in numbers]
        spreads = [value["spread"] for value in numbers if value.get("spread") is not None]
        few = f"{len(missing)} of {len(given)} seeds gave no number: {'; '.join(dict.fromkeys(missing))}"
        return Measured(
            value=fmean(values),
            seed_spread=stdev(values) if len(values) > 1 else None,
            own_spread=math.sqrt(fmean(spread**2 for spread in spreads)) if spreads else None,
            own_spread_of=numbers[0].get("spread_of", "") if spreads else "",
            over=sum(value["over"] for value in numbers),
            of=sum(value["of"] for value in numbers),
            seeds=len(numbers),
            note="; ".join(dict.fromkeys(value["note"] for value in numbers if value.get("note"))),
            reason=few if missing else "",
        )

    def by_seed(
        self, key: tuple[str, str, str], measure: Measure, context: Context, attempt: str | None = None
    ) -> dict[int, Mapping[str, Any]]:
        """One metric of each seed, in their order, as its file has it (value, over, of, spread, ...); where a seed gave
        no number, ``value`` is None and ``note`` says why."""
        name = ".".join(filter(None, [context.judge(measure.judge), measure.part]))
        tried = measure.attempt if attempt is None else attempt
        cells = self._found.get(key, ())
        return {cell["cell"]["seed"]: _value(_metrics(cell, tried), measure.metric, name) for cell in cells}


def _metrics(cell: Mapping[str, Any], attempt: str) -> Mapping[str, Any] | str:
    """The metrics of one kind of pictures of a cell, or why there are none."""
    if not attempt:
        return cell["metrics"]
    return cell.get("attempts", {}).get(attempt, f"{cell['cell']['method']} has no attempt '{attempt}'")


def _value(metrics: Mapping[str, Any] | str, metric: str, name: str) -> Mapping[str, Any]:
    """The value of one metric by its name (judge and part); one without a number, and the reason as its note, where
    there is none."""
    if isinstance(metrics, str):
        return {"value": None, "note": metrics}
    if metric not in metrics:
        return {"value": None, "note": f"{metric} was not computed at this scale"}
    if not metrics[metric]:
        return {"value": None, "note": f"{metric} was not measured here"}
    if name not in metrics[metric]:
        return {"value": None, "note": f"{metric} has no value by {name or 'itself'}"}
    value = metrics[metric][name]
    if value["value"] is None or not math.isfinite(value["value"]):
        return {**value, "value": None}
    return value


def said(values: Sequence[Any]) -> str:
    """The different values of a stated fact, for people: a range where they are numbers."""
    shown = list(dict.fromkeys(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    if len(shown) > 1 and all(isinstance(value, int | float) for value in values):
        return f"{min(values):.4g} to {max(values):.4g}"
    return " or ".join(shown) or "not stated"
