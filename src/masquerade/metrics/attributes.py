"""What an anonymized face keeps of its original: attributes such as gender or hair color, and the age."""

import math
from typing import Annotated, Self

import numpy as np
import pandas as pd
from pydantic import Field, model_validator

from masquerade.core.annotations import ANNOTATION
from masquerade.core.errors import ProtocolError
from masquerade.core.face_tables import stack
from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import average_faces, fewest_people, judges_with, share

THRESHOLD = 0.5
Attribute = Annotated[str, Field(min_length=1)]


class AttributePreservationRate(Metric):
    """Mean over faces of [c(X') = c(X)], c the content of a keyword such as gender, in [0, 1]; higher is better.

    Probabilities p: (N,) for each attribute. The content of the anonymized face X' is predicted: [p(X') >= 0.5] for a
    keyword with one attribute, the most probable attribute for a keyword with several. The content of the original X is
    its annotation; without annotations it is predicted too. The note says which. A face is not counted if its original
    has none of several attributes (a bald person has no hair color) or more than one.

    Parts: '' is the mean over the keywords of ``mean``; each keyword has a part of its name (``gender``). Both have two
    further parts. ``.balanced`` is the mean over contents of the share that is kept among the originals with that
    content; a constant answer has 1 / (number of contents). It has no value if all originals have the same content.
    ``.changed`` is the share of faces whose predicted content differs from the predicted content of their original.

    Reference: LReOrg (2024), section 4.1: "we evaluate the attribute preservation rate (APR) by using pre-trained
    classifiers". Its Table 2 gives 92.2 % to the original images, so it compares with annotations.

    >>> from masquerade.metrics._examples import evidence, values
    >>> faces = evidence({"net.male": [0.9, 0.2]}, {"net.male": [0.8, 0.7]})  # kept, changed
    >>> values(AttributePreservationRate, faces, keywords={"gender": ["Male"]}, mean=["gender"])["net.gender"]
    0.5
    """

    name = "attribute_preservation_rate"
    title = "attribute preservation rate"
    direction = "higher"
    unit = "share of faces"

    class Params(Settings):
        """The keywords and their attributes."""

        keywords: Annotated[dict[str, Annotated[list[Attribute], Field(min_length=1)]], Field(min_length=1)]
        """For each keyword, CelebA's names of the attributes that it covers. A single name stands for an attribute and
        its opposite (LReOrg, Table 1)."""
        mean: Annotated[list[str], Field(min_length=1)]
        """The keywords over which the mean is taken (LReOrg, section 4.1: those of the inner face)."""

        @model_validator(mode="after")
        def _check_names(self) -> Self:
            if unknown := sorted(set(self.mean) - set(self.keywords)):
                raise ValueError(f"mean names {', '.join(unknown)}; keywords are {', '.join(self.keywords)}")
            return self

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for judge in self._judges(evidence):
            kept, changed, balanced = {}, {}, {}
            for keyword, attributes in self.params.keywords.items():
                columns = [f"{judge}.{name.lower()}" for name in attributes]
                before, after = _predict(evidence.original, columns), _predict(evidence.derived, columns)
                truth, note = _read_annotation(evidence.original, attributes)
                truth = before if truth is None else truth
                kept[keyword] = _agree(truth, after), note
                changed[keyword] = 1 - _agree(before, after), "against what the judge says of the original"
                balanced[keyword] = _balance(truth, after, evidence.weights, note)
            for ending, rates in (
                ("", _means(kept, self.params.mean, evidence.weights)),
                (".changed", _means(changed, self.params.mean, evidence.weights)),
            ):
                values |= {f"{judge}{part}{ending}": value for part, value in rates.items()}
            values |= {f"{judge}.{keyword}.balanced": value for keyword, value in balanced.items()}
            values[f"{judge}.balanced"] = _mean_of([balanced[keyword] for keyword in self.params.mean])
        return values

    def _judges(self, evidence: Evidence) -> list[str]:
        """The judges that measured every attribute. Raises ProtocolError if one did not measure the originals."""
        quantities = [name.lower() for names in self.params.keywords.values() for name in names]
        judges = [
            judge for judge in evidence.judges if all(judge in judges_with(evidence, name) for name in quantities)
        ]
        for judge in judges:
            if missing := [name for name in quantities if f"{judge}.{name}" not in evidence.original]:
                raise ProtocolError(
                    f"The measurements of the originals have no '{judge}.{missing[0]}', but those of the derived faces "
                    "have it. Both must be of one version. Measure the originals again (`snakemake measure`)."
                )
        return judges


def _predict(faces: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Number of the predicted content of each face, float64 (N,). NaN if it was not measured."""
    shares = np.stack([stack(faces[column]) for column in columns], axis=1)
    content = shares.argmax(axis=1) if len(columns) > 1 else shares[:, 0] >= THRESHOLD
    return np.where(np.isfinite(shares).all(axis=1), content, np.nan)


def _read_annotation(originals: pd.DataFrame, attributes: list[str]) -> tuple[np.ndarray | None, str]:
    """The annotated content of each original, as `_predict` gives it, or None without annotations; and the note."""
    columns = [f"{ANNOTATION}{name}" for name in attributes]
    if not all(column in originals for column in columns):
        return None, "against what the judge says of the original: the dataset has no annotations"
    labels = np.stack([stack(originals[column]) for column in columns], axis=1)
    if len(columns) == 1:
        return labels[:, 0], "against the annotation of the original"
    return np.where(labels.sum(axis=1) == 1, labels.argmax(axis=1), np.nan), "against the annotation of the original"


def _agree(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 if both contents are the same, 0 if they differ, NaN if one is missing; (N,)."""
    return np.where(np.isfinite(first) & np.isfinite(second), first == second, np.nan)


def _means(parts: dict[str, tuple[np.ndarray, str]], over: list[str], weights: np.ndarray) -> dict[str, Value]:
    """{'.keyword': its share, '': the mean over faces of a face's mean over the keywords ``over``}."""
    together = (
        np.mean([parts[keyword][0] for keyword in over], axis=0),
        "; ".join(dict.fromkeys(parts[keyword][1] for keyword in over)),
    )
    named = {"": together} | {f".{keyword}": part for keyword, part in parts.items()}
    return {name: share(answers, weights, note) for name, (answers, note) in named.items()}


def _balance(truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray, note: str) -> Value:
    """The mean over contents of the share that is kept among the originals with that content.

    A bootstrap sample without one of the contents has no value.
    """
    agree = _agree(truth, predicted)
    is_measured = np.isfinite(agree)
    contents, numbers = np.unique(truth[is_measured], return_counts=True)
    if len(contents) < 2:
        return Value(
            math.nan, int(is_measured.sum()), len(agree), note="all originals that count have the same content"
        )
    shares = [share(np.where(truth == content, agree, np.nan), weights) for content in contents]
    return Value(
        float(np.mean([part.value for part in shares])),
        int(is_measured.sum()),
        len(agree),
        note=f"{note}; {' and '.join(map(str, numbers))} faces of each content",
        draws=np.mean([part.draws for part in shares if part.draws is not None], axis=0),
        people=fewest_people(shares),
    )


def _mean_of(values: list[Value]) -> Value:
    """The mean of several values, NaN if one of them is NaN."""
    note = next((value.note for value in values if math.isnan(value.value)), "mean over the keywords")
    number = float(np.mean([value.value for value in values]))
    samples = [value.draws for value in values if value.draws is not None]
    draws = np.mean(samples, axis=0) if len(samples) == len(values) else None
    return Value(
        number, min(value.over for value in values), min(value.of for value in values), note=note, draws=draws,
        people=fewest_people(values),
    )  # fmt: skip


class GenderPreservation(Metric):
    """Mean over faces of [(p(X) > 0.5) = (p(X') > 0.5)], in [0, 1]; higher is better.

    p: the judge's probability of "male", (N,).
    Reference: Wen et al. 2022 (IdentityDP), section I, names gender as an attribute to keep; the measure is ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(GenderPreservation, evidence({"net.male": [0.9, 0.2]}, {"net.male": [0.6, 0.7]}))  # kept, changed
    {'net': 0.5}
    """

    name = "gender_preservation"
    title = "gender preservation"
    direction = "higher"
    unit = "share of faces"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "male", _compare_genders, share)


def _compare_genders(original: np.ndarray, derived: np.ndarray) -> np.ndarray:
    """1 if both are male or both are not, 0 if they differ, NaN if one is missing; (N,)."""
    measured = np.isfinite(original) & np.isfinite(derived)
    return np.where(measured, (original > 0.5) == (derived > 0.5), np.nan)


class AgeDifference(Metric):
    """Mean over faces of |age(X) - age(X')| in years, at least 0; lower is better.

    ``age``: (N,), one number a face, by a network that no method is trained with.
    Reference: Wen et al. 2022 (IdentityDP), section I, names age as an attribute to keep; the measure is ours.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(AgeDifference, evidence({"net.age": [30, 40]}, {"net.age": [33, 39]}))  # (3 + 1) / 2
    {'net': 2.0}
    """

    name = "age_difference"
    title = "age difference"
    direction = "lower"
    unit = "years"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return average_faces(evidence, "age", lambda original, derived: np.abs(original - derived))
