"""Thresholds and their bootstrap over the people who set them, against the pairs written out one by one."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core import thresholds
from masquerade.core.statistics import between, find_threshold, people_weights
from masquerade.core.thresholds import estimate_threshold, list_impostors, pair_strangers

DRAWS = 20


def strangers(seed: int, people: int = 9, most: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Embeddings on a grid, so that distances are tied, and the names of their people; some are '' or not measured."""
    draw = np.random.default_rng(seed)
    names = np.array([f"p{person}" for person in range(people) for _ in range(draw.integers(1, most + 1))] + ["", "p0"])
    embeddings = draw.integers(0, 12, (len(names), 2)).astype(float)
    embeddings[-1] = np.nan
    return embeddings, draw.permutation(names)


def pairs_in_samples(embeddings: np.ndarray, names: np.ndarray, draws: int) -> Iterator[np.ndarray]:
    """The distances of the pairs of strangers in each sample, ascending; each as often as the product of counts."""
    usable = [row for row in range(len(names)) if names[row] and np.isfinite(embeddings[row]).all()]
    pairs = [(i, j) for i in usable for j in usable if i < j and names[i] != names[j]]
    lengths = np.array([math.dist(embeddings[i], embeddings[j]) for i, j in pairs])
    for count in people_weights(names, draws).astype(int):
        yield np.sort(np.repeat(lengths, [count[i] * count[j] for i, j in pairs]))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), far=st.floats(0.005, 0.9))
def test_threshold_of_a_sample_is_that_of_the_pairs_in_it(seed, far):
    embeddings, names = strangers(seed)
    estimate = estimate_threshold(far, pair_strangers(embeddings, names, far), DRAWS)
    usable = np.isfinite(embeddings).all(axis=1)
    all_pairs = np.sort(between(embeddings[usable], names[usable]))
    assert estimate.pairs == len(all_pairs)
    assert np.array_equal(estimate.distance, find_threshold(far, all_pairs), equal_nan=True)
    if math.isnan(estimate.distance):
        return
    assert estimate.rate == np.mean(all_pairs < estimate.distance)
    samples = list(pairs_in_samples(embeddings, names, DRAWS))
    expected = [part[int(far * len(part))] if len(part) else math.nan for part in samples]
    assert estimate.draws == pytest.approx(expected, nan_ok=True)
    shares = [np.mean(part < estimate.distance) if len(part) else math.nan for part in samples]
    assert estimate.rates == pytest.approx(shares, nan_ok=True)


def test_given_pairs_set_the_threshold_that_all_pairs_would():
    embeddings, names = strangers(4)
    usable = np.isfinite(embeddings).all(axis=1) & (names != "")
    embeddings, names = embeddings[usable], names[usable]
    first, second = np.triu_indices(len(names), 1)
    apart = names[first] != names[second]
    first, second = first[apart], second[apart]
    lengths = np.linalg.norm(embeddings[first] - embeddings[second], axis=1)
    lengths, left, right = np.append(lengths, np.nan), np.append(names[first], "x"), np.append(names[second], "y")
    given_pairs = estimate_threshold(0.2, list_impostors(lengths, left, right), DRAWS)
    all_pairs = estimate_threshold(0.2, pair_strangers(embeddings, names, 0.2), DRAWS)
    assert (given_pairs.distance, given_pairs.pairs) == (all_pairs.distance, all_pairs.pairs)
    assert np.allclose(given_pairs.draws, all_pairs.draws, equal_nan=True)
    assert np.allclose(given_pairs.rates, all_pairs.rates, equal_nan=True)


def test_the_nearest_pairs_give_the_thresholds_of_all(monkeypatch):
    draw = np.random.default_rng(1)
    embeddings, names = draw.normal(size=(60, 4)), np.array([f"p{row // 2}" for row in range(60)])
    every = estimate_threshold(0.02, pair_strangers(embeddings, names, 0.02), 200)
    monkeypatch.setattr(thresholds, "LEAST", 150)
    monkeypatch.setattr(thresholds, "AT_ONCE", 500)
    nearest = pair_strangers(embeddings, names, 0.02)
    assert len(nearest.distances) < nearest.count == 60 * 58 // 2
    few = estimate_threshold(0.02, nearest, 200)
    assert np.array_equal(few.draws, every.draws)
    assert np.array_equal(few.rates, every.rates)


def test_thresholds_deviate_as_those_of_other_people_do():
    """The deviation over the samples of the bootstrap, against that over many groups of other people."""
    draw, names = np.random.default_rng(2), np.array([f"p{row}" for row in range(40)])
    estimates = [
        estimate_threshold(0.05, pair_strangers(draw.normal(size=(40, 4)), names, 0.05), 200) for _ in range(40)
    ]
    deviation = np.std([estimate.distance for estimate in estimates])
    assert np.mean([estimate.draws.std() for estimate in estimates]) == pytest.approx(deviation, rel=0.3)


def test_note_states_who_set_the_threshold_and_the_interval_of_its_rate():
    draw = np.random.default_rng(3)
    embeddings, names = draw.normal(size=(60, 4)), np.array([f"p{row}" for row in range(60)])
    estimate = estimate_threshold(0.05, pair_strangers(embeddings, names, 0.05), 400)
    text = estimate.describe()
    assert (
        f"threshold {estimate.distance:.3f} at FAR 0.05 of 1,770 impostor pairs of 60 people; its rate is 0.0" in text
    )
    low, high = (float(word) for word in text.rpartition("is ")[2].split(" to "))
    assert low < 0.05 < high
    assert estimate_threshold(0.05, pair_strangers(embeddings, names, 0.05), 0).describe().endswith("of 60 people")
