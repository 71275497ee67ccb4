"""What networks that learned from anonymized faces do on unprotected faces: attributes, detection and landmarks."""

import math
from typing import ClassVar

import numpy as np
import pandas as pd

from masquerade.core.annotations import ANNOTATED, INNER, OUTER
from masquerade.core.statistics import compute_weighted_ratios, count_people, people_of
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import fewest_people, mean, mean_of_draws, share

THRESHOLD = 0.5


class AttributeAccuracy(Metric):
    """Mean over real test images and attributes of [(probability >= 0.5) = label], in [0, 1]; higher is better.

    Probabilities and labels: (images, attributes). Parts: ``combined`` (all attributes), ``inner`` and ``outer``
    (regions of the face), each attribute by its name, and ``<region>.balanced``. The balanced part is the mean over
    attributes of (true positive rate + true negative rate) / 2. It leaves out attributes that all test images have or
    that none has. A classifier that always says no to a rare attribute has 0.5 in it. Parts of pseudo-labels begin with
    their labeler: ``pseudo_a.combined``. An image without a prediction is missing from ``over``. There is no value
    without a classifier.
    Reference: Barattin et al. 2023 (FALCO), sections 4.1 and 4.2.2.

    >>> from masquerade.metrics._examples import evidence, values
    >>> predicted = {"labels": ["annotated"] * 4, "learned_from": [16] * 4, "attribute": ["Male"] * 4}
    >>> predicted |= {"label": [1, 1, 0, 0], "probability": [0.9, 0.2, 0.1, 0.3]}  # the second is wrong
    >>> values(AttributeAccuracy, evidence({"id": ["a"]}, {"id": ["a"]}, attributes=predicted))["combined"]
    0.75
    """

    name = "attribute_accuracy"
    title = "attribute accuracy"
    direction = "higher"
    unit = "share of images and attributes"

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        if evidence.attributes is None:
            return {}
        annotated = _matrix(evidence.attributes[evidence.attributes["labels"] == ANNOTATED], "label")
        values: dict[str, Value] = {}
        for labels, frame in evidence.attributes.groupby("labels", sort=False):
            if labels == ANNOTATED:
                values |= _parts(evidence, frame, "") | _absent(frame)
            else:
                parts = _parts(evidence, frame, _agreement(_matrix(frame, "label"), annotated))
                values |= {f"{labels}.{part}": value for part, value in parts.items()}
        return values


def _matrix(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """One column as a table of images x attributes."""
    return frame.pivot(index="id", columns="attribute", values=column).astype("float64")


def _parts(evidence: Evidence, frame: pd.DataFrame, remark: str) -> dict[str, Value]:
    """The accuracy of each region and attribute; ``remark`` ends the note."""
    label, probability = _matrix(frame, "label"), _matrix(frame, "probability")
    labeled = label.notna() & probability.notna()
    right = ((probability >= THRESHOLD) == (label == 1)).astype("float64").where(labeled)
    note = f"threshold {THRESHOLD:g}; learned from {frame['learned_from'].iloc[0]} faces{remark}"
    regions = {
        "combined": list(right.columns),
        "inner": [name for name in INNER if name in right],
        "outer": [name for name in OUTER if name in right],
    }
    weights, values = _weights(evidence, right.index), {}
    for region, names in regions.items():
        values[region] = _value(right[names].to_numpy(), weights, note)
        values[f"{region}.balanced"] = _balance(right[names].to_numpy(), label[names].to_numpy(), weights, note)
    return values | {name: _value(right[[name]].to_numpy(), weights, note) for name in right}


def _weights(evidence: Evidence, pictures: pd.Index) -> np.ndarray:
    """How often each test image counts in each bootstrap sample, (draws, N), from the person in it."""
    person_of = dict(zip(evidence.original["id"], evidence.people, strict=True))
    return evidence.weights_of(np.array([person_of.get(name, name) for name in pictures], dtype=str))


def _value(right: np.ndarray, weights: np.ndarray, note: str) -> Value:
    """The mean of (images, attributes) without NaN; ``over`` counts the images with any number."""
    is_measured = np.isfinite(right)
    if not is_measured.any():
        return Value(math.nan, 0, len(right), note="no test image has a label and a prediction")
    draws = compute_weighted_ratios(np.where(is_measured, right, 0.0).sum(axis=1), is_measured.sum(axis=1), weights)
    is_counted = is_measured.any(axis=1)
    return Value(
        float(right[is_measured].mean()), int(is_counted.sum()), len(right), note=note, draws=draws,
        people=count_people(weights[:, is_counted]),
    )  # fmt: skip


def _balance(right: np.ndarray, label: np.ndarray, weights: np.ndarray, note: str) -> Value:
    """The mean over attributes of the mean of both rates, from (images, attributes) each.

    In a bootstrap sample without images of one kind, an attribute does not count.
    """
    rates, draws, shares = [], [], []
    for answers, truth in zip(right.T, label.T, strict=True):
        kinds = [share(np.where(truth == kind, answers, np.nan), weights) for kind in (1, 0)]
        if all(kind.over for kind in kinds):
            rates.append(sum(kind.value for kind in kinds) / 2)
            draws.append(np.mean([kind.draws for kind in kinds if kind.draws is not None], axis=0))
            shares += kinds
    over = int(np.isfinite(right).any(axis=1).sum())
    if not rates:
        return Value(math.nan, 0, len(right), note="no attribute is there in some test images and not in others")
    some = "" if len(rates) == right.shape[1] else f"; {len(rates)} of {right.shape[1]} attributes vary"
    return Value(
        float(np.mean(rates)), over, len(right), note=note + some, draws=mean_of_draws(draws),
        people=fewest_people(shares),
    )  # fmt: skip


def _absent(frame: pd.DataFrame) -> dict[str, Value]:
    """NaN for the attributes of the paper for which these faces have no label."""
    missing = {*INNER, *OUTER} - set(frame["attribute"])
    pictures = frame["id"].nunique()
    return {name: Value(math.nan, 0, pictures, note="these faces have no such label") for name in sorted(missing)}


def _agreement(pseudo: pd.DataFrame, annotated: pd.DataFrame) -> str:
    """The share of pseudo-labels that equal the annotations, as a text; '' if there is none."""
    names = [name for name in pseudo if name in annotated]
    ids = pseudo.index.intersection(annotated.index)
    first, second = pseudo.loc[ids, names].to_numpy(), annotated.loc[ids, names].to_numpy()
    both = np.isfinite(first) & np.isfinite(second)
    return f"; {(first[both] == second[both]).mean():.3f} of the labels are right" if both.any() else ""


class TwinMetric(Metric):
    """What networks that learned from anonymized images do on average on unprotected test images; {} without any."""

    repeats = False
    quantity: ClassVar[str]

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        results = evidence.downstream_utility
        if results is None or self.quantity not in results:
            return {}
        weights = evidence.weights_of(people_of(results["identity"].to_numpy(), results["id"].to_numpy()))
        return {"": self.average(results[self.quantity].to_numpy(dtype=np.float64), weights)}

    def average(self, values: np.ndarray, weights: np.ndarray) -> Value:
        """The average of ``values`` (N,), with an interval by the bootstrap ``weights``."""
        return mean(values, weights)


class TwinDetectionRate(TwinMetric):
    """Mean over unprotected test images of [the detector's best cell holds the face], in [0, 1]; higher is better.

    ``found``: (N,), 1 or 0. The detector never saw an unprotected image, so a high rate says that anonymized images can
    replace unprotected ones in its training.
    Reference: Klemp et al. 2023 (LDFA) and Hukkelås and Lindseth 2023 (arXiv:2306.05135), networks trained on
    anonymized images.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(TwinDetectionRate, evidence({"id": ["a"]}, {"id": ["a"]}, downstream_utility={"found": [1, 1, 1, 0]}))
    {'': 0.75}
    """

    name = "twin_detection_rate"
    title = "face detection rate after training on anonymized faces"
    direction = "higher"
    unit = "share of faces"
    quantity = "found"

    def average(self, values: np.ndarray, weights: np.ndarray) -> Value:
        return share(values, weights)


class TwinBoxOverlap(TwinMetric):
    """Mean over unprotected test images of |A and B| / |A or B|, in [0, 1]; higher is better.

    A: the detector's box, B: the true one; ``overlap``: (N,), the intersection over union of their areas. The detector
    never saw an unprotected image.
    Reference: Everingham et al. 2010, The PASCAL Visual Object Classes Challenge (overlap); Hukkelås and Lindseth 2023
    (arXiv:2306.05135), networks trained on anonymized images.

    >>> from masquerade.metrics._examples import evidence, values
    >>> values(TwinBoxOverlap, evidence({"id": ["a"]}, {"id": ["a"]}, downstream_utility={"overlap": [0.9, 0.5]}))
    {'': 0.7}
    """

    name = "twin_box_overlap"
    title = "overlap of boxes after training on anonymized faces"
    direction = "higher"
    unit = "intersection over union"
    quantity = "overlap"


class TwinLandmarkError(TwinMetric):
    """Mean over unprotected test images of the mean landmark error in percent of the eye distance; lower is better.

    ``landmark_error``: (N,), at least 0, the mean over points of their Euclidean distance. The network never saw a
    unprotected image, so a small error says that anonymized images can replace unprotected ones in its training.
    Reference: Sagonas et al. 2013, 300 Faces in-the-Wild Challenge (error by eye distance); Hukkelås and Lindseth 2023,
    Does Image Anonymization Impact Computer Vision Training? (arXiv:2306.05135).

    >>> from masquerade.metrics._examples import evidence, values
    >>> errors = {"landmark_error": [4.0, 6.0]}
    >>> values(TwinLandmarkError, evidence({"id": ["a"]}, {"id": ["a"]}, downstream_utility=errors))
    {'': 5.0}
    """

    name = "twin_landmark_error"
    title = "landmark error after training on anonymized faces"
    direction = "lower"
    unit = "% of the eye distance"
    quantity = "landmark_error"
