"""Functions that the metrics of attackers who know the method share: attacks, trainings, and the strongest attacker.

The results of attacks have one row for each probe of an attack, as pipeline/informed.py writes them:

    attacker  asks    recognizer  trial  group   id    identity  rank  people  distance  threshold  strangers
    naive     naming  arcface     0      tested  f012  Aaron     3     120     0.71      0.64       [0.93, 1.02, ...]
    parrot    linking own         0      tested  f012  Aaron     1     120     0.38      0.51       [0.77, 0.69, ...]
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from masquerade.core.statistics import people_of
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import mean, mean_of_draws, share

NAMES_OR_LINKS = ("naming", "linking")
"""What the attackers ask who look for the person in an anonymized image."""


class AttackMetric(Metric):
    """A metric of attackers who know the method: of one image a face, and mostly a share that should be low."""

    direction = "lower"
    unit = "share of probes"
    repeats = False


@dataclass(frozen=True)
class Probes:
    """The probes of one training of an attacker. ``weights``: how often each counts in each sample, (draws, N)."""

    rows: pd.DataFrame
    weights: np.ndarray

    def numbers(self, column: str) -> np.ndarray:
        """One column, float64 (N,). Infinite values stay."""
        return self.rows[column].to_numpy(dtype=np.float64)


@dataclass(frozen=True)
class Attack:
    """One attacker with one recognizer. ``trainings``: the same probes after each training of the attacker."""

    attacker: str
    recognizer: str
    asks: str
    control: bool
    failed: int
    """Trainings that did not make it better: it then attacks untrained."""
    trainings: tuple[Probes, ...]

    def over_trainings(self, measure: Callable[[Probes], Value]) -> Value:
        """The mean of ``measure`` over the trainings that have a value; several of them have a spread."""
        values = [measure(probes) for probes in self.trainings]
        measured = [value for value in values if value.over]
        if len(measured) < 2:
            return (measured or values)[0]
        numbers, draws = [value.value for value in measured], [value.draws for value in measured]
        return replace(
            measured[0], value=float(np.mean(numbers)), spread=float(np.std(numbers, ddof=1)),
            spread_of="deals of the names" if self.control else "trainings",
            draws=mean_of_draws([part for part in draws if part is not None]),
        )  # fmt: skip


def list_attacks(evidence: Evidence, asks: tuple[str, ...], group: str = "tested") -> list[Attack]:
    """Every attacker that asks one of ``asks`` with each of its recognizers, in the order of the rows.

    ``group``: whose probes: ``tested`` people, or those of the attacker who were ``held_out``.
    """
    frame = evidence.attack_results
    if frame is None:
        return []
    frame = frame[frame["asks"].isin(asks) & (frame["group"] == group)].reset_index(drop=True)
    people, numbers = np.unique(
        people_of(frame["identity"].to_numpy(), frame["id"].to_numpy()), return_inverse=True
    )  # many rows show few people
    weights, attacks = evidence.weights_of(people), []
    for (attacker, recognizer), rows in frame.groupby(["attacker", "recognizer"], sort=False):
        parts = [part for _, part in rows.groupby("trial")]
        about = rows.iloc[0]
        attacks.append(
            Attack(
                str(attacker), str(recognizer), str(about["asks"]), bool(about["control"]),
                sum(not part["learned"].all() for part in parts),
                tuple(Probes(part, weights[:, numbers[part.index]]) for part in parts),
            )
        )  # fmt: skip
    return attacks


def find_strongest(values: Mapping[str, Value], extreme: Literal["highest", "lowest"]) -> tuple[str, Value]:
    """The name and the value that is the highest or the lowest. Values that are missing do not count.

    The draws are the extreme of all values in each bootstrap sample, so that the interval is that of the extreme.
    Without any value, the first one is returned.
    """
    measured = {name: value for name, value in values.items() if value.over}
    if not measured:
        return next(iter(values.items()))
    choose, over_draws = (max, np.fmax) if extreme == "highest" else (min, np.fmin)
    name = choose(measured, key=lambda each: measured[each].value)
    draws = [value.draws for value in measured.values() if value.draws is not None]
    return name, replace(measured[name], draws=over_draws.reduce(draws) if draws else None)


def measure_attackers(
    evidence: Evidence,
    measure: Callable[[Probes], Value],
    remark: Callable[[Attack], str],
    extreme: Literal["highest", "lowest"] = "highest",
) -> dict[str, Value]:
    """The value of each attacker that names or links people, and of the strongest one.

    ``extreme``: whether the highest or the lowest value is that of the strongest attacker. ``strongest`` is over all
    attackers that are no controls, ``strongest_naming`` over those of them that name people.
    """
    kinds, values = measure_each_attacker(evidence, measure, remark, extreme)
    real = {attacker: value for attacker, value in values.items() if not kinds[attacker].control}
    naming = {attacker: value for attacker, value in real.items() if kinds[attacker].asks == "naming"}
    sets = {"strongest": real, "strongest_naming": naming}
    return {part: name_strongest(members, extreme) for part, members in sets.items() if members} | values


def measure_each_attacker(
    evidence: Evidence,
    measure: Callable[[Probes], Value],
    remark: Callable[[Attack], str],
    extreme: Literal["highest", "lowest"] = "highest",
    group: str = "tested",
) -> tuple[dict[str, Attack], dict[str, Value]]:
    """One attack and the value of each attacker that names or links people; its strongest recognizer counts.

    ``remark``: what the note says of an attack.
    """
    by_attacker: dict[str, dict[str, Value]] = {}
    kinds: dict[str, Attack] = {}
    for attack in list_attacks(evidence, NAMES_OR_LINKS, group):
        value = add_note(attack, attack.over_trainings(measure), f"{remark(attack)}, recognizer {attack.recognizer}")
        by_attacker.setdefault(attack.attacker, {})[attack.recognizer] = value
        kinds[attack.attacker] = attack
    return kinds, {attacker: find_strongest(values, extreme)[1] for attacker, values in by_attacker.items()}


def name_strongest(values: Mapping[str, Value], extreme: Literal["highest", "lowest"]) -> Value:
    """The value of `find_strongest`. Its note begins with the name."""
    name, value = find_strongest(values, extreme)
    return replace(value, note=f"{name}: {value.note}") if value.over else value


def add_note(attack: Attack, value: Value, note: str) -> Value:
    """``value`` with a note, which also says if a training failed. A missing value keeps its reason."""
    if not value.over:
        return value
    return replace(value, note="; ".join([part for part in (note, describe_untrained(attack)) if part]))


def describe_untrained(attack: Attack) -> str:
    """Which trainings of an attack failed, as a text; '' if none did."""
    every = len(attack.trainings)
    if not attack.failed:
        return ""
    if attack.failed == every:
        return "did not learn: it attacks untrained"
    return f"{attack.failed} of {every} trainings did not learn: they attack untrained"


def count_first(places: int) -> Callable[[Probes], Value]:
    """Measures the share of the probes whose person is among the first ``places`` people of the gallery."""

    def measure(probes: Probes) -> Value:
        ranks = probes.numbers("rank")
        return share(np.where(np.isfinite(ranks), ranks <= places, np.nan), probes.weights)

    return measure


def describe_chance(attack: Attack, places: int) -> str:
    """The share of probes that a guess finds among the first ``places`` people, as a text."""
    people = attack.trainings[0].numbers("people")  # NaN for a refused probe
    sizes = people[np.isfinite(people)]
    return f"chance {min(1.0, places / sizes[0]):.3f}" if sizes.size else ""


def list_restorations(evidence: Evidence) -> list[Attack]:
    """The attacks in which images were restored and measured."""
    if evidence.attack_results is None or "ssim" not in evidence.attack_results:
        return []
    restored = evidence.attack_results[evidence.attack_results["ssim"].notna()]["attacker"].unique()
    return [attack for attack in list_attacks(evidence, NAMES_OR_LINKS) if attack.attacker in restored]


def measure_restored(evidence: Evidence, quantity: str) -> dict[str, Value]:
    """The mean of a quantity of the images of each attacker, and of the ``anonymized`` ones before.

    Recognizers do not change the images, so that of the first one counts.
    """
    attacks, values = list_restorations(evidence), {}
    for attack in attacks:
        if attack.attacker not in values:
            values[attack.attacker] = mean_of_restored(attack, quantity)
    return values | ({"anonymized": mean_of_restored(attacks[0], f"before_{quantity}")} if attacks else {})


def mean_of_restored(attack: Attack, column: str) -> Value:
    """The mean of the finite numbers of a column over the probes. Those before a restoration need no training."""

    def measure(probes: Probes) -> Value:
        numbers = probes.numbers(column)
        return mean(numbers, probes.weights, "infinite: the images are identical" if np.isinf(numbers).any() else "")

    if column.startswith("before_"):
        return measure(attack.trainings[0])
    value = attack.over_trainings(measure)
    return add_note(attack, value, value.note)


def refuse(probes: Probes, reason: str) -> Value:
    """The value of probes that have none."""
    return Value(math.nan, 0, len(probes.rows), note=reason)
