"""How many faces still show what their original shows, by a classifier of attributes."""

import math
from typing import Annotated, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from masquerade.errors import ProtocolError
from masquerade.measuring import ANNOTATION
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import judges_with, mean, stack
from masquerade.settings import Settings

THRESHOLD = 0.5
Attribute = Annotated[str, Field(min_length=1)]


class AttributePreservationRate(Metric):
    """Share of faces whose predicted content of a keyword is that of their original, in [0, 1].

    The content that is predicted of a picture X': of a keyword with one attribute [p(X') >= 0.5], of one with several
    the most probable. The original's content is what its dataset says, and where the dataset says nothing what the
    judge says of the original; the note tells which. A face whose original has none of several attributes (a bald one
    has no hair colour), or more than one, is not counted.

    Parts: '' is the mean over the keywords of ``mean``, and each keyword by its name (``gender``). Of both,
    ``.balanced``: the mean over the contents of the share among the originals that have it (always answering the same
    gives 1 by their number; no value where all have the same); and ``.changed``: the share of faces whose predicted
    content is not that which is predicted of their original, whatever the annotations.

    Reference: LReOrg (2024), section 4.1: "we evaluate the attribute preservation rate (APR) by using pre-trained
    classifiers"; its Table 2 gives the original pictures 92.2 %, so it is counted against annotations.
    """

    title = "attribute preservation rate"
    direction = "higher"
    unit = "share of faces"

    class Params(Settings):
        keywords: Annotated[dict[str, Annotated[list[Attribute], Field(min_length=1)]], Field(min_length=1)]
        """Keyword -> CelebA's names of its contents; one name stands for itself and its contrary (LReOrg, Table 1)."""
        mean: Annotated[list[str], Field(min_length=1)]
        """The keywords of the mean (LReOrg, section 4.1: those of the inner face)."""

        @model_validator(mode="after")
        def _known(self) -> Self:
            if unknown := sorted(set(self.mean) - set(self.keywords)):
                raise ValueError(f"mean names {', '.join(unknown)}; keywords are {', '.join(self.keywords)}")
            return self

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for judge in self._judges(evidence):
            kept, changed, balanced = {}, {}, {}
            for keyword, attributes in self.params.keywords.items():
                columns = [f"{judge}.{name.lower()}" for name in attributes]
                before, after = _predicted(evidence.original, columns), _predicted(evidence.derived, columns)
                truth, note = _annotated(evidence.original, attributes)
                truth = before if truth is None else truth
                kept[keyword] = _agree(truth, after), note
                changed[keyword] = 1 - _agree(before, after), "against what the judge says of the original"
                balanced[keyword] = _balanced(truth, after, note)
            for ending, rates in (
                ("", _means(kept, self.params.mean)),
                (".changed", _means(changed, self.params.mean)),
            ):
                found |= {f"{judge}{part}{ending}": value for part, value in rates.items()}
            found |= {f"{judge}.{keyword}.balanced": value for keyword, value in balanced.items()}
            found[f"{judge}.balanced"] = _mean_of([balanced[keyword] for keyword in self.params.mean])
        return found

    def _judges(self, evidence: Evidence) -> list[str]:
        """The judges that measured every attribute. Raises ProtocolError where one did not see the originals."""
        quantities = [name.lower() for names in self.params.keywords.values() for name in names]
        judges = [judge for judge in evidence.judges if all(judge in judges_with(evidence, one) for one in quantities)]
        for judge in judges:
            if lost := [name for name in quantities if f"{judge}.{name}" not in evidence.original]:
                raise ProtocolError(
                    f"The measurements of the originals have no '{judge}.{lost[0]}', those of the derived faces have: "
                    "they are of another version. Measure the originals again (`snakemake measure`)."
                )
        return judges


def _predicted(faces: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Number of the predicted content of each face, float64 (N,); NaN where it was not measured."""
    shares = np.stack([stack(faces[column]) for column in columns], axis=1)
    content = shares.argmax(axis=1) if len(columns) > 1 else shares[:, 0] >= THRESHOLD
    return np.where(np.isfinite(shares).all(axis=1), content, np.nan)


def _annotated(originals: pd.DataFrame, attributes: list[str]) -> tuple[np.ndarray | None, str]:
    """The content that the dataset states of each original, as `_predicted`, or None; and what to say of it."""
    columns = [f"{ANNOTATION}{name}" for name in attributes]
    if not all(column in originals for column in columns):
        return None, "against what the judge says of the original: the dataset has no annotations"
    labels = np.stack([stack(originals[column]) for column in columns], axis=1)
    if len(columns) == 1:
        return labels[:, 0], "against the annotation of the original"
    return np.where(labels.sum(axis=1) == 1, labels.argmax(axis=1), np.nan), "against the annotation of the original"


def _agree(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 where both contents are the same, 0 where not, NaN where one is missing; (N,)."""
    return np.where(np.isfinite(first) & np.isfinite(second), first == second, np.nan)


def _means(parts: dict[str, tuple[np.ndarray, str]], over: list[str]) -> dict[str, Value]:
    """{'.keyword': its share, '': the mean of the shares of a face over the keywords of ``over``}."""
    together = (
        np.mean([parts[keyword][0] for keyword in over], axis=0),
        "; ".join(dict.fromkeys(parts[keyword][1] for keyword in over)),
    )
    named = {"": together} | {f".{keyword}": part for keyword, part in parts.items()}
    return {name: _share(*part) for name, part in named.items()}


def _share(values: np.ndarray, note: str) -> Value:
    """The mean over the faces that could be counted; a share has no spread of its own."""
    counted = mean(values, note)
    return Value(counted.value, counted.over, counted.of, note=note if counted.over else "no face could be measured")


def _balanced(truth: np.ndarray, found: np.ndarray, note: str) -> Value:
    """The mean over contents of the share that is kept among the originals that have it."""
    agree = _agree(truth, found)
    counted = np.isfinite(agree)
    contents, numbers = np.unique(truth[counted], return_counts=True)
    told = f"{note}; {' and '.join(map(str, numbers))} faces of each content"
    if len(contents) < 2:
        return Value(math.nan, int(counted.sum()), len(agree), note="all originals that count have the same content")
    shares = [agree[counted & (truth == content)].mean() for content in contents]
    return Value(float(np.mean(shares)), int(counted.sum()), len(agree), note=told)


def _mean_of(values: list[Value]) -> Value:
    """The mean of several values; none where one of them has none."""
    note = next((value.note for value in values if math.isnan(value.value)), "mean over the keywords")
    number = float(np.mean([value.value for value in values]))
    return Value(number, min(value.over for value in values), min(value.of for value in values), note=note)
