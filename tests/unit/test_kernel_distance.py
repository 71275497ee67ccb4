"""The kernel distance between two sets of features, against the sum over pairs written out, and its mean of 0."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.metrics import Evidence
from masquerade.metrics.frechet import KernelDistance
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
