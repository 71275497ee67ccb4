"""Intervals of metrics: what the drawn people say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from masquerade.core.statistics import (
    compute_frechet,
    compute_interval,
    compute_weighted_means,
    decode,
    encode,
    frechet_draws,
    people_weights,
)
from metric_evidence import compute, evidence, on_circle, table


class TestIntervals:
    """Intervals of the numbers: Poisson bootstrap over people."""

    DRAWS = 300

    @staticmethod
    def people(pictures=24, each=3):
        return [f"person {row // each}" for row in range(pictures)]

    def drawn(self, seed=0):
        """Originals and derived faces of eight people with three pictures each, in four dimensions."""
        draw = np.random.default_rng(seed)
        original = draw.normal(size=(24, 4))
        derived = original + draw.normal(size=(24, 4))
        frames = [
            table(self.people(), part, **{"r.features": list(part), "pixels.mse": list(part[:, 0] ** 2)})
            for part in (original, derived)
        ]
        target = pd.DataFrame({"r.features": list(draw.normal(size=(40, 4)))})
        return replace(evidence(*frames), draws=self.DRAWS, target=target)

    def test_weights_follow_from_the_name_of_the_person_alone(self):
        few, many = np.array(["b", "a"]), np.array(["a", "b", "b", "c"])
        first, second = (people_weights(people, self.DRAWS) for people in (few, many))
        assert np.array_equal(first[:, 0], second[:, 1])
        assert np.array_equal(second[:, 1], second[:, 2]), "all pictures of a person count together"
        assert second.mean() == pytest.approx(1.0, abs=0.1)
        assert second[:, 0].var() == pytest.approx(1.0, abs=0.3)

    @pytest.mark.parametrize(
        ("metric", "params"),
        [
            ("identity_distance", {}),
            ("identity_similarity", {}),
            ("mse", {}),
            ("protection_success_rate_at_far", {"far": 0.2}),
        ],
    )
    def test_draw_is_the_value_of_the_drawn_pictures(self, metric, params):
        """Each draw equals the metric of a set that holds each picture as often as its person was drawn."""
        measurements = self.drawn()
        value = next(iter(compute(metric, measurements, **params).values()))
        differences = []
        for number in range(4):
            times = people_weights(np.array(self.people()), self.DRAWS)[number].astype(int)
            rows = np.repeat(np.arange(24), times)
            parts = [frame.iloc[rows].reset_index(drop=True) for frame in (measurements.original, measurements.derived)]
            resampled = replace(measurements, original=parts[0], derived=parts[1], draws=0)
            expected = next(iter(compute(metric, resampled, **params).values())).value
            differences.append(value.draws[number] - expected)
        assert differences == pytest.approx([0.0] * 4, abs=1e-6)
        low, high = value.interval
        assert low < value.value < high

    @pytest.mark.parametrize("metric", ["frechet_distance", "frechet_distance_to_target"])
    def test_draws_of_a_frechet_distance_follow_those_of_the_drawn_pictures(self, metric):
        """Few dimensions: nearly the same deviation, and nearly the same order of the samples."""
        width = 4
        draw, people = np.random.default_rng(3), [f"person {row // 3}" for row in range(120)]
        original = draw.normal(size=(120, width))
        derived = original + 0.5 * draw.normal(size=(120, width)) + 0.2
        first, second = (table(people, part, **{"r.features": list(part)}) for part in (original, derived))
        target = pd.DataFrame({"r.features": list(draw.normal(size=(200, width)))})
        measurements = replace(evidence(first, second), draws=60, target=target)
        value = compute(metric, measurements)["r"]
        expected = []
        for times in people_weights(np.array(people), 60):
            rows = np.repeat(np.arange(120), times.astype(int))
            parts = [frame.iloc[rows].reset_index(drop=True) for frame in (first, second)]
            resampled = replace(measurements, original=parts[0], derived=parts[1], draws=0)
            expected.append(compute(metric, resampled)["r"].value)
        assert np.corrcoef(value.draws, expected)[0, 1] > 0.9
        assert value.draws.std() == pytest.approx(np.std(expected), rel=0.25)
        assert value.draws.mean() == pytest.approx(value.value)

    def test_draws_of_a_frechet_distance_deviate_as_other_people_do(self):
        """Many dimensions, where copies of pictures would make the deviation several times too large."""
        draw, weights = np.random.default_rng(4), people_weights(np.array([f"p{row // 3}" for row in range(120)]), 100)
        mixing = draw.normal(size=(60, 60)) / np.sqrt(60)
        target, distances, deviations = draw.normal(size=(300, 60)) @ mixing, [], []
        for _ in range(30):
            people = 0.8 * np.repeat(draw.normal(size=(40, 60)), 3, axis=0) + 0.6 * draw.normal(size=(120, 60))
            original, derived = people @ mixing, (0.7 * people + 0.5 * draw.normal(size=(120, 60))) @ mixing + 0.1
            distances.append((compute_frechet(original, derived), compute_frechet(derived, target)))
            drawn = frechet_draws(original, derived, weights, True), frechet_draws(derived, target, weights, False)
            deviations.append([part.std() for part in drawn])
        ratios = np.mean(deviations, axis=0) / np.std(distances, axis=0)
        assert (ratios > 0.8).all(), "an interval that is too narrow decides too much"
        assert (ratios < 2.0).all()

    def test_draws_of_the_similarity_between_people_count_pairs_of_different_people(self):
        measurements = self.drawn()
        embeddings = np.stack(measurements.derived["r.embedding"])
        embeddings = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
        names, times = np.array(self.people()), people_weights(np.array(self.people()), self.DRAWS)[0]
        pairs = [(i, j) for i in range(24) for j in range(24) if names[i] != names[j]]
        weights = np.array([times[i] * times[j] for i, j in pairs])
        expected = weights @ [embeddings[i] @ embeddings[j] for i, j in pairs] / weights.sum()
        assert compute("people_similarity", measurements)["r"].draws[0] == pytest.approx(expected, abs=1e-6)

    def test_similarity_between_people_is_that_under_one_key(self):
        """Two people: alike under key 0 and opposite under key 1, and anonymized with a key each at a right angle."""
        names = ["a", "b"]
        attempts = pd.concat(
            [
                table(names, on_circle(0, turned)).assign(attempt="key", number=number, source_id=["f0", "f1"])
                for number, turned in enumerate((0, 180))
            ]
        )
        own = evidence(table(names, on_circle(0, 0)), table(names, on_circle(0, 90)))
        assert compute("people_similarity", own)["r"].value == pytest.approx(0.0, abs=1e-6)
        assert compute("people_similarity", replace(own, recoveries=attempts.iloc[:2]))["r"].value == pytest.approx(1.0)
        assert compute("people_similarity", replace(own, recoveries=attempts))["r"].value == pytest.approx(
            0.0, abs=1e-6
        )

    def test_draws_of_the_identification_rate_count_the_probes_of_a_person_together(self):
        """Two people with two pictures each; only those of the first are found."""
        names = ["a", "a", "b", "b"]
        measurements = evidence(table(names, on_circle(0, 2, 90, 180)), table(names, on_circle(1, 1, 1, 1)))
        value = compute("rank1_identification_rate", replace(measurements, draws=self.DRAWS))["r"]
        first, second = people_weights(np.array(["a", "b"]), self.DRAWS).T
        with np.errstate(invalid="ignore"):
            assert np.allclose(value.draws, first / (first + second), equal_nan=True)

    def test_interval_of_a_mean_is_that_of_the_standard_error(self):
        people = 400
        draw = np.random.default_rng(1)
        values = draw.normal(size=people)
        weights = people_weights(np.array([f"p{number}" for number in range(people)]), 2000)
        low, high = compute_interval(compute_weighted_means(values, weights))
        half = 1.96 * values.std() / np.sqrt(people)
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.012)

    def test_more_pictures_of_the_same_people_do_not_narrow_the_interval(self):
        """The unit is the person: pictures that agree within a person add nothing."""
        offsets = np.random.default_rng(2).normal(size=8)
        widths = []
        for each in (1, 10):
            values = np.repeat(offsets, each)
            people = np.array([f"person {row // each}" for row in range(8 * each)])
            low, high = compute_interval(compute_weighted_means(values, people_weights(people, 500)))
            widths.append(high - low)
        assert widths[0] == pytest.approx(widths[1])

    def test_draws_survive_their_text(self):
        draws = np.array([0.25, np.nan, -1e-3])
        assert np.allclose(decode(encode(draws)), draws, rtol=1e-6, equal_nan=True)
