"""What the papers assert, as checks on metrics: ``reference/claims.yaml``, typed and closed.

A claim says which numbers are greater than which; `verdicts` says whether it holds here. Imports neither torch nor
matplotlib: the graph asks `load` and `needs` while it is built.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import yaml
from pydantic import ValidationError, model_validator

from masquerade.errors import ReferenceFileError
from masquerade.papers import mistakes
from masquerade.papers.reference import FOLDER, Declared, Measure, Named, Need

FILE = FOLDER / "claims.yaml"


class Compared(Declared):
    """One side of a comparison: a number of one cell."""

    method: str
    variant: str
    attempt: str = ""
    """Of which pictures of the cell: what was recovered, or a wrong key brought back, ...; '' = the anonymized ones."""
    measure: Measure | None = None
    """Which number, where not that of the claim."""

    @model_validator(mode="after")
    def _attempts_once(self) -> "Compared":
        _without_attempt(self.measure)
        return self


class Claim(Declared):
    """Every number of ``greater`` is greater than every one of ``than``, or each of ``descending`` than the next."""

    paper: str
    """Its folder in reference/."""
    name: str
    """Short and of its own within the paper; it names the claim in the CSV."""
    says: str
    """The claim, in one sentence of ours."""
    source: str
    """Where the paper says so: table, figure or equation, and section."""
    dataset: Named
    """On whose faces."""
    measure: Measure | None = None
    """Which number is compared; left out where every cell names its own."""
    greater: tuple[Compared, ...] = ()
    than: tuple[Compared, ...] = ()
    paired: bool = False
    """Each of ``greater`` is compared with its counterpart of ``than`` alone, of which there are as many."""
    descending: tuple[Compared, ...] = ()
    note: str = ""
    """What a reader must know of this check: how it differs from what the paper did."""

    @property
    def sides(self) -> tuple[Compared, ...]:
        """Everything that is compared, in the order of the file."""
        return self.descending or (*self.greater, *self.than)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Which of ``sides`` must be greater than which, by their places."""
        first, places = len(self.greater), range(len(self.sides))
        if self.descending:
            return list(pairwise(places))
        if self.paired:
            return list(zip(places[:first], places[first:], strict=True))
        return [(one, other) for one in places[:first] for other in places[first:]]

    def measure_of(self, side: Compared) -> Measure:
        """Which number of a side is compared."""
        return side.measure or self.measure

    @model_validator(mode="after")
    def _compares(self) -> "Claim":
        if bool(self.descending) == bool(self.greater or self.than):
            raise ValueError("a claim has either 'greater' and 'than', or 'descending'")
        if self.descending and len(self.descending) < 2:
            raise ValueError("'descending' needs two cells or more")
        if not self.descending and not (self.greater and self.than):
            raise ValueError(f"'{'than' if self.greater else 'greater'}' is missing: greater than what?")
        if self.paired and len(self.greater) != len(self.than):
            raise ValueError(
                f"'paired' compares counterparts, and there are {len(self.greater)} greater and {len(self.than)} than"
            )
        _without_attempt(self.measure)
        for side in self.sides:
            if self.measure_of(side) is None:
                raise ValueError(f"what is compared of {side.method}/{side.variant}? The claim has no 'measure'")
        for one, other in self.pairs:
            if self._place(self.sides[one]) == self._place(self.sides[other]):
                raise ValueError(f"{self.sides[one].method}/{self.sides[one].variant} is compared with itself")
        return self

    def _place(self, side: Compared) -> tuple[str, str, str, Measure]:
        return side.method, side.variant, side.attempt, self.measure_of(side)


def _without_attempt(measure: Measure | None) -> None:
    if measure and measure.attempt:
        raise ValueError("an 'attempt' stands beside method and variant, not in the measure")


def load(path: Path = FILE) -> list[Claim]:
    """Read every claim, in the order of the file.

    Raises ReferenceFileError naming the file, the claim and the key, for the person who wrote it.
    """
    try:
        tree = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CBaseLoader)  # noqa: S506 - text only
    except OSError as error:
        raise ReferenceFileError(f"{path} cannot be read: {error.strerror}.") from error
    except yaml.YAMLError as error:
        raise ReferenceFileError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise ReferenceFileError(f"{path} must be a list of claims, each with its keys.")
    claims = [_claim(path, number, item) for number, item in enumerate(tree, 1)]
    known: set[tuple[str, str]] = set()
    for claim in claims:
        if (claim.paper, claim.name) in known:
            raise ReferenceFileError(f"{path}: {claim.paper} has two claims with the name '{claim.name}'.")
        known.add((claim.paper, claim.name))
    return claims


def _claim(path: Path, number: int, item: dict) -> Claim:
    try:
        return Claim(**item)
    except ValidationError as error:
        which = f"{path}: claim {number}" + (f" ('{item['name']}')" if "name" in item else "")
        lines = [f"{which}: {line.removeprefix('the file: ')}" for line in mistakes.told(error, Claim)]
        raise ReferenceFileError("\n".join(lines)) from error


def of_papers(claims: Iterable[Claim], papers: Sequence[str]) -> list[Claim]:
    """The claims of these papers, paper by paper."""
    claims = list(claims)
    return [claim for paper in papers for claim in claims if claim.paper == paper]


def needs(claims: Iterable[Claim]) -> list[Need]:
    """The (dataset role, method, variant) of every number that the claims compare, each once."""
    return list(dict.fromkeys(
        (claim.dataset.role, side.method, side.variant) for claim in claims for side in claim.sides
    ))  # fmt: skip


def attempted(claims: Iterable[Claim]) -> list[tuple[Need, str]]:
    """Of `needs`, those of which an attempt is compared, with the attempt: they must be under ``recovery.cells``."""
    return list(dict.fromkeys(
        ((claim.dataset.role, side.method, side.variant), side.attempt)
        for claim in claims for side in claim.sides if side.attempt
    ))  # fmt: skip
