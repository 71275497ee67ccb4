"""The kernel distances between two sets of features, against the sums over pairs written out, and their mean of 0."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.metrics import Evidence
from masquerade.metrics.frechet import KernelDistance, KernelDistanceToTarget
from metric_evidence import compute, evidence, table


def measured(names: list[str], original: np.ndarray, derived: np.ndarray, draws: int = 0) -> Evidence:
    first, second = (table(names, **{"r.features": list(part)}) for part in (original, derived))
    return replace(evidence(first, second), draws=draws)


def sum_over_pairs(faces: Evidence, counts: np.ndarray) -> float:
    """The weighted mean over ordered pairs of faces of different people, one by one."""
    original, derived = faces.pair("r.features")
    kernel = lambda a, b: (a @ b / len(a) + 1) ** 3  # noqa: E731
    total = pairs = 0.0
    for i, person in enumerate(faces.people):
        for j, other in enumerate(faces.people):
            if person != other and np.isfinite([original[i], original[j], derived[i], derived[j]]).all():
                part = kernel(original[i], original[j]) + kernel(derived[i], derived[j])
                part -= kernel(original[i], derived[j]) + kernel(original[j], derived[i])
                total += counts[i] * counts[j] * part
                pairs += counts[i] * counts[j]
    return total / pairs if pairs else math.nan


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), people=st.integers(2, 6))
def test_value_and_samples_are_means_over_pairs_of_different_people(seed, people):
    draw = np.random.default_rng(seed)
    names = [f"p{person}" for person in range(people) for _ in range(draw.integers(1, 4))]
    original, derived = draw.normal(size=(2, len(names), 5))
    derived[draw.random(len(names)) < 0.1] = np.nan
    faces = measured(names, original, derived, draws=5)
    value = compute("kernel_distance", faces)["r"]
    expected = [sum_over_pairs(faces, counts) for counts in (np.ones(len(names)), *faces.weights)]
    assert value.value == pytest.approx(expected[0], nan_ok=True)
    if value.over:
        assert value.draws == pytest.approx(expected[1:], nan_ok=True)


def test_the_number_of_images_compared_at_once_changes_nothing(monkeypatch):
    from masquerade.metrics import frechet

    original, derived = np.random.default_rng(0).normal(size=(2, 20, 5))
    faces = measured([f"p{row // 2}" for row in range(20)], original, derived, draws=9)
    whole = compute("kernel_distance", faces)["r"]
    monkeypatch.setattr(frechet, "ROWS", 7)
    parts = compute("kernel_distance", faces)["r"]
    assert parts.value == pytest.approx(whole.value)
    assert parts.draws == pytest.approx(whole.draws)


@pytest.mark.parametrize("kept", [0.0, 0.8])
def test_mean_of_samples_of_one_distribution_is_zero(kept):
    """Few faces in many dimensions, where a Frechet distance is mostly bias; also if each face resembles its source."""
    draw, values = np.random.default_rng(5), []
    for _ in range(120):
        original = draw.normal(size=(12, 8))
        derived = kept * original + math.sqrt(1 - kept**2) * draw.normal(size=(12, 8))
        values.append(compute("kernel_distance", measured([*"abcdefghijkl"], original, derived))["r"].value)
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(len(values))


def test_images_themselves_have_no_distance_and_other_ones_do():
    original = np.random.default_rng(6).normal(size=(40, 8))
    names = [f"p{row}" for row in range(40)]
    assert compute("kernel_distance", measured(names, original, original))["r"].value == 0.0
    value = compute("kernel_distance", measured(names, original, original + 1.0, draws=200))["r"]
    assert value.interval is not None
    assert 0 < value.interval[0] < value.value < value.interval[1]


def test_faces_of_one_person_have_no_value():
    faces = measured(["a", "a"], np.zeros((2, 3)), np.ones((2, 3)))
    value = KernelDistance(KernelDistance.Params()).compute(faces)["r"]
    assert math.isnan(value.value)
    assert (value.over, value.of, value.note) == (0, 2, "a pair of images needs two people")


def to_target(names: list[str], derived: np.ndarray, others: list[str], target: np.ndarray, draws: int = 0) -> Evidence:
    """Anonymized faces of the people ``names``, and a target of ``others``."""
    faces, compared = (
        table(people, **{"r.features": list(part)}) for people, part in ((names, derived), (others, target))
    )
    return replace(evidence(faces, faces), target=compared, draws=draws)


def weighted_mean(numbers: list[float], counts: list[float]) -> float:
    return float(np.average(numbers, weights=counts)) if np.sum(counts) else math.nan


def distance_to_target(faces: Evidence, counts: np.ndarray) -> float:
    """Three weighted means over pairs, one pair at a time. The target's images count once."""
    assert faces.target is not None
    derived, target = (np.stack(table["r.features"]) for table in (faces.derived, faces.target))
    kernel = lambda a, b: (a @ b / len(a) + 1) ** 3  # noqa: E731
    names, others = faces.people, faces.target["identity"]
    kept, known = (np.flatnonzero(np.isfinite(part).all(axis=1)) for part in (derived, target))
    own = [(i, j) for i in kept for j in kept if names[i] != names[j]]
    foreign = [(i, j) for i in known for j in known if others[i] != others[j]]
    between = [(i, j) for i in kept for j in known]
    return (
        weighted_mean([kernel(derived[i], derived[j]) for i, j in own], [counts[i] * counts[j] for i, j in own])
        + float(np.mean([kernel(target[i], target[j]) for i, j in foreign]))
        - 2 * weighted_mean([kernel(derived[i], target[j]) for i, j in between], [counts[i] for i, _ in between])
    )


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), people=st.integers(2, 6))
def test_distance_to_a_target_and_its_samples_are_means_over_pairs(seed, people):
    draw = np.random.default_rng(seed)
    names = [f"p{person}" for person in range(people) for _ in range(draw.integers(1, 4))]
    others = ["q0", *(f"q{person}" for person in draw.integers(1, 4, size=8))]
    derived, target = draw.normal(size=(len(names), 5)), draw.normal(size=(9, 5))
    derived[2:][draw.random(len(names) - 2) < 0.2] = np.nan
    target[-1] = np.nan
    faces = to_target(names, derived, others, target, draws=5)
    value = compute("kernel_distance_to_target", faces)["r"]
    if not value.over:
        return  # only images of one person were measured
    expected = [distance_to_target(faces, counts) for counts in (np.ones(len(names)), *faces.weights)]
    assert value.value == pytest.approx(expected[0])
    assert value.draws == pytest.approx(expected[1:], nan_ok=True)


def test_distance_to_a_target_of_a_few_images_is_the_one_worked_by_hand():
    """In one dimension k(a, b) = (ab + 1)^3. Between the people a and b: k(1, 2) = 27 and k(0, 2) = 1, so 14.

    Within the target, of c and d: k(0, 1) = 1. Between the sets: k(1, .) = 1 and 8, k(0, .) = 1 and 1, k(2, .) = 1 and
    27, whose mean is 39 / 6. 14 + 1 - 2 * 6.5 = 2.
    """
    faces = to_target(["a", "a", "b"], np.array([[1.0], [0.0], [2.0]]), ["c", "d"], np.array([[0.0], [1.0]]))
    value = compute("kernel_distance_to_target", faces)["r"]
    assert value.value == pytest.approx(2.0)
    assert (value.over, value.of, value.note) == (3, 3, "from 3 faces to 2")


def test_the_number_of_images_compared_at_once_does_not_change_the_distance_to_a_target(monkeypatch):
    from masquerade.metrics import frechet

    derived, target = np.random.default_rng(0).normal(size=(2, 20, 5))
    names, others = ([f"{letter}{row // 2}" for row in range(20)] for letter in "pq")
    faces = to_target(names, derived, others, target, draws=9)
    whole = compute("kernel_distance_to_target", faces)["r"]
    monkeypatch.setattr(frechet, "ROWS", 7)
    parts = compute("kernel_distance_to_target", faces)["r"]
    assert parts.value == pytest.approx(whole.value)
    assert parts.draws == pytest.approx(whole.draws)


def test_mean_distance_to_a_target_of_the_same_distribution_is_zero():
    """Also if the images of a person resemble each other, and if the sets differ in size."""
    draw, values = np.random.default_rng(5), []
    for _ in range(150):
        derived, target = (
            0.8 * np.repeat(draw.normal(size=(people, 8)), 3, axis=0) + 0.6 * draw.normal(size=(3 * people, 8))
            for people in (4, 7)
        )
        names, others = ([f"{letter}{row // 3}" for row in range(count)] for letter, count in (("p", 12), ("q", 21)))
        values.append(compute("kernel_distance_to_target", to_target(names, derived, others, target))["r"].value)
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(len(values))


def test_samples_deviate_as_the_distances_of_other_people_do():
    draw, target = np.random.default_rng(7), np.random.default_rng(8).normal(size=(200, 8))
    names, others = [f"p{row // 2}" for row in range(60)], [f"q{row}" for row in range(200)]
    distances, deviations = [], []
    for _ in range(60):
        derived = 0.3 + 0.8 * np.repeat(draw.normal(size=(30, 8)), 2, axis=0) + 0.6 * draw.normal(size=(60, 8))
        value = compute("kernel_distance_to_target", to_target(names, derived, others, target, draws=100))["r"]
        distances.append(value.value)
        deviations.append(value.draws.std())
    assert 0.75 < np.mean(deviations) / np.std(distances) < 1.5


@pytest.mark.parametrize(("names", "others"), [(["a", "a"], ["c", "d"]), (["a", "b"], ["c", "c"])])
def test_one_person_in_either_set_has_no_distance_to_a_target(names, others):
    faces = to_target(names, np.zeros((2, 3)), others, np.ones((2, 3)))
    value = compute("kernel_distance_to_target", faces)["r"]
    assert math.isnan(value.value)
    assert (value.over, value.of, value.note) == (0, 2, "a pair of images needs two people")


def test_without_a_measured_target_there_is_no_distance_to_it():
    faces = to_target(["a", "b"], np.zeros((2, 3)), ["c", "d"], np.ones((2, 3)))
    metric = KernelDistanceToTarget(KernelDistanceToTarget.Params())
    assert faces.target is not None
    assert metric.compute(replace(faces, target=None)) == {}
    assert metric.compute(replace(faces, target=faces.target.drop(columns="r.features"))) == {}
