"""Values and intervals of metrics, computed by hand or by another program."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from masquerade.core import discovery
from masquerade.core.errors import ProtocolError
from masquerade.core.statistics import (
    compute_frechet,
    compute_interval,
    compute_weighted_means,
    decode,
    encode,
    frechet_draws,
    people_weights,
)
from masquerade.pipeline import evaluation
from metric_evidence import compute, evidence, on_circle, table


def test_distances_are_in_pixels_of_256_over_faces_detected_in_both():
    boxes = [[10.0, 10.0, 50.0, 50.0], [np.nan] * 4, [0.0, 0.0, 60.0, 60.0]]
    moved = [[12.0, 10.0, 50.0, 46.0], [0.0, 0.0, 60.0, 60.0], [np.nan] * 4]
    measurements = evidence(table("abc", **{"d.box": boxes}), table("abc", **{"d.box": moved}))
    value = compute("box_distance", replace(measurements, size=64))["d"]
    assert value.value == pytest.approx((2 + 4) / 4 * 4)
    assert (value.over, value.of) == (1, 3)
    with pytest.raises(ProtocolError, match="size of the images"):
        compute("box_distance", measurements)


def test_landmark_distances_of_hand_worked_regions():
    still = np.zeros((68, 2))
    moved = still.copy()
    moved[36:48] = (3.0, 4.0)  # eyes: 5 pixels
    moved[27:36] = (0.0, 1.0)  # nose
    moved[48:68] = (6.0, 8.0)  # mouth
    moved[:17] = (1.0, 0.0)  # jaw
    five = np.arange(10.0)
    measurements = evidence(
        table("a", **{"d.landmarks": [still.ravel()], "m.points": [five]}),
        table("a", **{"d.landmarks": [moved.ravel()], "m.points": [five + 2]}),
    )
    distances = {
        name: value.value for name, value in compute("landmark_distance", replace(measurements, size=256)).items()
    }
    assert distances == pytest.approx({
        "d": (12 * 5 + 9 * 1 + 20 * 10 + 17 * 1) / 68, "d.eyes": 5.0, "d.nose": 1.0, "d.mouth": 10.0,
        "d.l1": (12 * 7 + 9 * 1 + 20 * 14 + 17 * 1) / 136, "m": math.sqrt(8), "m.l1": 2.0,
    })  # fmt: skip


def versions(first, *others, **columns):
    """Images under a first key, and the same faces under other keys as attempts."""
    derived = table(["a"] * len(first), on_circle(*first)).assign(source_id=[f"f{row}" for row in range(len(first))])
    tried = [derived.assign(attempt="key", number=number, **{"r.embedding": list(on_circle(*angles))})
             for number, angles in enumerate(others)]  # fmt: skip
    measurements = evidence(derived, derived)
    return replace(
        measurements, recoveries=pd.concat([*tried, derived.assign(attempt="wrong", number=0)]) if tried else None
    )


def test_angle_between_keys_is_the_mean_over_pairs_of_each_face():
    measurements = versions((0, 10), (30, 10), (90, 40))
    angle, similarity = compute("key_angle", measurements)["r"], compute("key_similarity", measurements)["r"]
    assert angle.value == pytest.approx(((30 + 90 + 60) / 3 + (0 + 30 + 30) / 3) / 2, abs=1e-3)
    cosines = [[np.cos(np.radians(x)) for x in face] for face in ((30, 90, 60), (0, 30, 30))]
    assert similarity.value == pytest.approx(np.mean([np.mean(face) for face in cosines]))
    assert (angle.over, angle.of, angle.note) == (2, 2, "3 versions of each")


def test_further_draws_are_versions_and_other_views_are_not():
    measurements = versions((0, 10), (30, 10), (90, 40))
    names = measurements.recoveries["attempt"].where(measurements.recoveries["attempt"] == "wrong", "view.draw.1")
    drawn = replace(measurements, recoveries=measurements.recoveries.assign(attempt=names))
    assert compute("key_angle", drawn)["r"] == compute("key_angle", measurements)["r"]
    other = replace(measurements, recoveries=measurements.recoveries.assign(attempt="view.plus.age"))
    assert math.isnan(compute("key_angle", other)["r"].value)


def test_wrong_recoveries_are_compared_with_each_other():
    measurements = versions((0, 10), (30, 10), (90, 40))
    rows = pd.concat([measurements.recoveries[measurements.recoveries["attempt"] == "key"]], ignore_index=True)
    wrong = replace(measurements, recoveries=rows.assign(attempt="wrong"))
    metric = {name: discovery.load("metrics", name)(None) for name in ("key_angle", "true_acceptance_rate")}
    values = evaluation.evaluate_attempts(metric, wrong)
    assert list(values) == ["anonymized", "wrong"]
    assert list(values["wrong"]) == ["key_angle"]
    assert values["wrong"]["key_angle"]["r"]["value"] == pytest.approx((60 + 30) / 2, abs=1e-3)


def test_faces_without_two_measured_versions_have_no_angle():
    two = versions((0, 10), (30, 10))
    unmeasured = replace(two, recoveries=two.recoveries.drop(columns="r.embedding"))
    for measurements in (unmeasured, versions((0, 10)), replace(two, recoveries=None)):
        value = compute("key_angle", measurements)["r"]
        assert math.isnan(value.value)
        assert (value.over, value.of, value.note) == (0, 2, "no face has two versions")


def test_regions_are_those_of_the_drawn_attributes():
    from drawnpeople import attributes as _attributes
    from masquerade.core import annotations

    assert set(_attributes.INNER) == set(annotations.INNER)
    assert set(annotations.OUTER) - set(_attributes.OUTER) == {
        "Sideburns", "Wearing_Earrings", "Wearing_Necklace", "Wearing_Necktie"
    }  # fmt: skip


def test_frechet_distance_agrees_with_pytorch_fid():
    from masquerade.networks.torchvision_internals import ensure

    ensure()
    from pytorch_fid.fid_score import calculate_frechet_distance

    draw = np.random.default_rng(0)
    first = draw.normal(size=(200, 6))
    second = draw.normal(0.4, 1.3, size=(150, 6)) @ draw.normal(size=(6, 6))
    expected = calculate_frechet_distance(
        first.mean(0), np.cov(first, rowvar=False), second.mean(0), np.cov(second, rowvar=False)
    )
    assert compute_frechet(first, second) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("many", "few"), [(40, 40), (40, 7), (7, 40)])
def test_frechet_distance_agrees_with_eigenvalues_for_few_and_many_faces(many, few):
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(many, 12)), draw.normal(1.0, 2.0, size=(few, 12))
    eigenvalues = np.linalg.eigvals(np.cov(x, rowvar=False) @ np.cov(y, rowvar=False)).real.clip(0)
    shift = x.mean(axis=0) - y.mean(axis=0)
    spreads = x.var(axis=0, ddof=1).sum() + y.var(axis=0, ddof=1).sum()
    expected = shift @ shift + spreads - 2 * np.sqrt(eigenvalues).sum()
    assert compute_frechet(x, y) == pytest.approx(expected, rel=1e-6)


class TestIntervals:
    """Intervals of the numbers: Poisson bootstrap over people."""

    DRAWS = 300

    @staticmethod
    def people(pictures=24, each=3):
        return [f"person {row // each}" for row in range(pictures)]

    def drawn(self, seed=0):
        """Originals and derived faces of eight people with three images each, in four dimensions."""
        draw = np.random.default_rng(seed)
        original = draw.normal(size=(24, 4))
        derived = original + draw.normal(size=(24, 4))
        frames = [
            table(self.people(), part, **{"r.features": list(part), "pixels.mse": list(part[:, 0] ** 2)})
            for part in (original, derived)
        ]
        target = pd.DataFrame({"r.features": list(draw.normal(size=(40, 4)))})
        return replace(evidence(*frames), draws=self.DRAWS, target=target)

    @staticmethod
    def draw_samples(measurements, count):
        """The first samples of the bootstrap: each face as often as its person was drawn."""
        for times in measurements.weights[:count].astype(int):
            rows = np.repeat(np.arange(len(times)), times)
            parts = [frame.iloc[rows].reset_index(drop=True) for frame in (measurements.original, measurements.derived)]
            yield replace(measurements, original=parts[0], derived=parts[1], calibration=parts[0], draws=0)

    def test_weights_follow_from_the_name_of_the_person_alone(self):
        few, many = np.array(["b", "a"]), np.array(["a", "b", "b", "c"])
        first, second = (people_weights(people, self.DRAWS) for people in (few, many))
        assert np.array_equal(first[:, 0], second[:, 1])
        assert np.array_equal(second[:, 1], second[:, 2]), "all images of a person count together"
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
        """Each draw equals the metric of a set that holds each image as often as its person was drawn."""
        measurements = self.drawn()
        value = next(iter(compute(metric, measurements, **params).values()))
        expected = [
            next(iter(compute(metric, sample, **params).values())).value
            for sample in self.draw_samples(measurements, 4)
        ]
        assert value.draws[:4] == pytest.approx(expected, abs=1e-6)
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
        expected = [compute(metric, sample)["r"].value for sample in self.draw_samples(measurements, 60)]
        assert np.corrcoef(value.draws, expected)[0, 1] > 0.9
        assert value.draws.std() == pytest.approx(np.std(expected), rel=0.25)
        assert value.draws.mean() == pytest.approx(value.value)

    def test_draws_of_a_frechet_distance_deviate_as_other_people_do(self):
        """Many dimensions, where copies of images would make the deviation several times too large."""
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
        """Two people with two images each; only those of the first are found."""
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
        low, high = compute_interval(values.mean(), compute_weighted_means(values, weights))
        half = 1.96 * values.std() / np.sqrt(people)
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.012)

    def test_more_pictures_of_the_same_people_do_not_narrow_the_interval(self):
        """The unit is the person: images that agree within a person add nothing."""
        offsets = np.random.default_rng(2).normal(size=8)
        widths = []
        for each in (1, 10):
            values = np.repeat(offsets, each)
            people = np.array([f"person {row // each}" for row in range(8 * each)])
            draws = compute_weighted_means(values, people_weights(people, 500))
            low, high = compute_interval(values.mean(), draws)
            widths.append(high - low)
        assert widths[0] == pytest.approx(widths[1])

    def test_draws_survive_their_text(self):
        draws = np.array([0.25, np.nan, -1e-3])
        assert np.allclose(decode(encode(draws)), draws, rtol=1e-6, equal_nan=True)
