"""What the papers claim, as comparisons of metrics: reads ``reference/claims.yaml``.

A claim declares which numbers are greater than which. `verdicts` computes whether it holds here. The graph calls `load`
and `needs` while it is built, so this module imports neither torch nor matplotlib.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from pydantic import Field, model_validator

from masquerade.core.errors import ReferenceFileError
from masquerade.papers import reference
from masquerade.papers.declarations import Declared, Measure, Named, Need
from masquerade.papers.reference import FOLDER

FILE = FOLDER / "claims.yaml"


class Compared(Declared):
    """One side of a comparison: a number of one cell."""

    method: str
    variant: str
    attempt: str = ""
    """The images of the cell: ``recovered``, ``wrong`` (a wrong key), ...; '' = the anonymized ones."""
    measure: Measure | None = None
    """The number, if it is not that of the claim."""

    @model_validator(mode="after")
    def _attempts_once(self) -> "Compared":
        _without_attempt(self.measure)
        return self


class Claim(Declared):
    """Every number of ``greater`` is greater than every one of ``than``, or the numbers of ``descending`` fall.

    The margin of a comparison is greater - than + ``within``; that of a sweep (``descending``) is the mean fall per
    step, which ``trend`` gives, plus ``within``.
    """

    paper: str
    """Its folder in reference/."""
    name: str
    """Short and unique within the paper. It names the claim in the CSV."""
    says: str
    """The claim, in one sentence of ours."""
    source: str
    """The place in the paper: table, figure or equation, and section."""
    dataset: Named
    measure: Measure | None = None
    """The number that is compared. Left out if every cell names its own."""
    greater: tuple[Compared, ...] = ()
    than: tuple[Compared, ...] = ()
    paired: bool = False
    """Each of ``greater`` is compared only with the one of ``than`` at the same place. Both have the same length."""
    parts: bool = False
    """The claim says the same of several attributes. Comparisons whose cells or attributes a scale does not have are
    left out, and the verdict says how many there are."""
    descending: tuple[Compared, ...] = ()
    """A sweep of three numbers or more: they fall from the first to the last. Two numbers are a comparison."""
    within: Annotated[float, Field(ge=0)] = 0
    """By how much a number may be smaller than the other and still count, if the paper calls them alike; ``note`` says
    from where it is. In the unit of the measure. Two numbers are alike if each is ``greater`` once, ``paired``."""
    note: str = ""
    """How this check differs from what the paper did."""

    @property
    def sides(self) -> tuple[Compared, ...]:
        """Everything that is compared, in the order of the file."""
        return self.descending or (*self.greater, *self.than)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """(place of the greater one, place of the other) among ``sides``, for every comparison."""
        first, places = len(self.greater), range(len(self.sides))
        if self.descending:
            return list(pairwise(places))
        if self.paired:
            return list(zip(places[:first], places[first:], strict=True))
        return [(one, other) for one in places[:first] for other in places[first:]]

    @property
    def trend(self) -> list[float]:
        """The coefficients, one for each side of a sweep, of minus the least-squares slope of its numbers by place.

        With the places x and their mean m they are (m - x) / sum (x - m)^2, and their sum is 0.
        """
        center = (len(self.sides) - 1) / 2
        offsets = [center - place for place in range(len(self.sides))]
        return [offset / sum(each**2 for each in offsets) for offset in offsets]

    def measure_of(self, side: Compared) -> Measure:
        """The number of a side that is compared."""
        measure = side.measure or self.measure
        assert measure is not None  # `_compares` refuses a claim without one
        return measure

    @model_validator(mode="after")
    def _compares(self) -> "Claim":
        if bool(self.descending) == bool(self.greater or self.than):
            raise ValueError("a claim has either 'greater' and 'than', or 'descending'")
        if self.descending and len(self.descending) < 3:
            raise ValueError("'descending' needs three cells or more: two are 'greater' and 'than'")
        if not self.descending and not (self.greater and self.than):
            raise ValueError(f"'{'than' if self.greater else 'greater'}' is missing: a comparison has both sides")
        if self.paired and len(self.greater) != len(self.than):
            counts = f"there are {len(self.greater)} greater and {len(self.than)} than"
            raise ValueError(f"'paired' needs sides of the same length; {counts}")
        if self.parts and self.descending:
            raise ValueError("'parts' leaves out comparisons, and a sweep has none to spare")
        if self.within and not self.note:
            raise ValueError("'within' counts a smaller number as alike: the 'note' must say from where it is")
        _without_attempt(self.measure)
        for side in self.sides:
            if (side.measure or self.measure) is None:
                raise ValueError(f"{side.method}/{side.variant} has no 'measure', and neither has the claim")
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
    """Read every claim, in the order of the file. Raises ReferenceFileError naming the file, the claim and the key."""
    claims = [_claim(path, number, item) for number, item in enumerate(reference.read_entries(path, "claims"), 1)]
    for (paper, name), count in Counter((claim.paper, claim.name) for claim in claims).items():
        if count > 1:
            raise ReferenceFileError(f"{path}: {paper} has two claims with the name '{name}'.")
    return claims


def _claim(path: Path, number: int, item: dict) -> Claim:
    name = f" ('{item['name']}')" if "name" in item else ""
    return reference.check(Claim, item, f"{path}: claim {number}{name}")


def of_papers(claims: Iterable[Claim], papers: Sequence[str]) -> list[Claim]:
    """The claims of these papers, paper by paper."""
    claims = list(claims)
    return [claim for paper in papers for claim in claims if claim.paper == paper]


def needs(claims: Iterable[Claim]) -> list[Need]:
    """The (dataset role, method, variant) of every number that the claims compare, each once."""
    return list(dict.fromkeys(
        (claim.dataset.role, side.method, side.variant) for claim in claims for side in claim.sides
    ))  # fmt: skip


def list_attempts(claims: Iterable[Claim]) -> list[tuple[Need, str]]:
    """The part of `needs` of which an attempt is compared, with the attempt. ``recovery.cells`` must name them."""
    return list(dict.fromkeys(
        ((claim.dataset.role, side.method, side.variant), side.attempt)
        for claim in claims for side in claim.sides if side.attempt
    ))  # fmt: skip
