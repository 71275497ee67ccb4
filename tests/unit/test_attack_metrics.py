"""Metrics of attackers who know the method, and of networks that learned from anonymized images: values by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from masquerade.core import discovery
from masquerade.core import face_tables as core_measurements
from masquerade.core.statistics import people_weights
from masquerade.metrics._examples import attack_evidence
from masquerade.metrics._examples import evidence as example
from masquerade.metrics.attacks import equal_error_rates
from masquerade.pipeline import evaluation
from metric_evidence import compute

OF_ATTACKS = [
    name for name in discovery.list_names("metrics") if name.startswith(("attack_", "poisoning_", "restored_"))
]
OF_TWINS = [name for name in discovery.list_names("metrics") if name.startswith("twin_")]
DRAWS = 200


def answers(ranks, **columns):
    """Evidence with the ranks of each attacker's probes; every attacker has the same probes."""
    count = len(next(iter(ranks.values())))
    rows = {
        "attacker": [name for name in ranks for _ in range(count)],
        "id": [f"f{row}" for _ in ranks for row in range(count)],
        "identity": [f"person {row}" for _ in ranks for row in range(count)],
        "rank": [rank for part in ranks.values() for rank in part],
    }
    return replace(attack_evidence(rows | columns), draws=DRAWS)


def samples(people):
    return people_weights(np.array([f"person {row}" for row in range(people)]), DRAWS)


@pytest.mark.parametrize("name", [*OF_ATTACKS, *OF_TWINS])
def test_cell_without_these_measurements_has_no_values(name):
    assert compute(name, example({"id": ["a"]}, {"id": ["a"]})) == {}


@pytest.mark.parametrize("name", OF_ATTACKS)
def test_metric_without_an_attack_of_its_kind_has_no_values(name):
    asks = "naming" if name.startswith("poisoning") else "protecting"
    for group in ("tested", "held_out"):
        assert compute(name, answers({"one": [1, 2]}, asks=[asks] * 2, group=[group] * 2)) == {}


class TestRanks:
    @pytest.mark.parametrize(
        ("places", "people", "share", "chance"), [(1, 10, 0.25, 0.1), (5, 10, 0.75, 0.5), (5, 3, 0.75, 1)]
    )
    def test_person_among_the_first_counts_beside_chance(self, places, people, share, chance):
        value = compute(f"attack_rank{places}_rate", answers({"naive": [1, 2, 5, 6]}, people=[people] * 4))["naive"]
        assert (value.value, value.note, value.spread) == (share, f"chance {chance:.3f}, recognizer net", None)

    def test_held_out_people_count_apart(self):
        measurements = answers({"naive": [1, 1, 9, 2]}, group=["tested", "tested", "held_out", "held_out"])
        assert compute("attack_rank1_rate", measurements)["naive"].value == 1.0
        held_out = compute("attack_held_out_rate", measurements)
        assert list(held_out) == ["naive"]
        assert (held_out["naive"].value, held_out["naive"].over) == (0.0, 2)

    def test_refused_faces_and_people_with_one_picture_are_in_the_denominator(self):
        status, people = ["ok", "refused", "ok", "ok"], [9.0, np.nan, 9.0, 9.0]
        value = compute("attack_rank1_rate", answers({"naive": [1, np.nan, np.nan, 2]}, status=status, people=people))
        assert (value["naive"].value, value["naive"].over, value["naive"].of) == (0.5, 2, 4)

    def test_attack_without_a_measured_probe_has_a_reason(self):
        values = compute("attack_rank1_rate", answers({"naive": [np.nan, np.nan]}, people=[np.nan] * 2))
        for part in ("naive", "strongest", "strongest_naming"):
            assert math.isnan(values[part].value)
            assert (values[part].over, values[part].of, values[part].note) == (0, 2, "no face could be measured")

    def test_strongest_recognizer_counts(self):
        measurements = answers({"one": [1, 2, 3], "two": [1, 1, 3]}, attacker=["naive"] * 6,
                               recognizer=["a"] * 3 + ["b"] * 3)  # fmt: skip
        value = compute("attack_rank1_rate", measurements)["naive"]
        assert value.value == pytest.approx(2 / 3)
        assert value.note == "chance 0.100, recognizer b"

    def test_trainings_are_averaged(self):
        measurements = answers({"one": [1, 1, 1, 2], "two": [1, 2, 2, 2]}, attacker=["adapted"] * 8,
                               trial=[0] * 4 + [1] * 4)  # fmt: skip
        value = compute("attack_rank1_rate", measurements)["adapted"]
        assert (value.value, value.over, value.of) == (0.5, 4, 4)
        assert (value.spread, value.spread_of) == (pytest.approx(0.5 / math.sqrt(2)), "trainings")
        weights = samples(4)
        with np.errstate(invalid="ignore"):
            both = (weights @ [1, 1, 1, 0] + weights @ [1, 0, 0, 0]) / 2 / weights.sum(axis=1)
        assert np.allclose(value.draws, both, equal_nan=True)

    def test_training_that_failed_is_in_the_note(self):
        measurements = answers({"one": [1, 2], "two": [2, 2]}, attacker=["adapted"] * 4, trial=[0, 0, 1, 1],
                               learned=[1.0, 1.0, 0.0, 0.0])  # fmt: skip
        values = compute("attack_rank1_rate", measurements)
        note = "chance 0.100, recognizer net; 1 of 2 trainings did not learn: they attack untrained"
        assert values["adapted"].note == note
        assert values["strongest"].note == f"adapted: {note}"


class TestStrongest:
    def test_strongest_is_the_highest_without_controls(self):
        ranks = {"naive": [1, 2, 2, 2], "parrot": [1, 1, 1, 2], "adapted": [2, 2, 1, 1], "shuffled": [1, 1, 1, 1]}
        asks = [name for name in ("naming", "linking", "naming", "naming") for _ in range(4)]
        measurements = answers(ranks, asks=asks, control=[False] * 12 + [True] * 4)
        values = compute("attack_rank1_rate", measurements)
        assert list(values) == ["strongest", "strongest_naming", "naive", "parrot", "adapted", "shuffled"]
        assert values["strongest"].value == 0.75
        assert values["strongest"].note == "parrot: chance 0.100, recognizer net"
        assert values["strongest_naming"].value == 0.5
        assert values["strongest_naming"].note == "adapted: chance 0.100, recognizer net"
        assert values["shuffled"].value == 1.0

    def test_draws_of_the_strongest_are_the_highest_in_each_sample(self):
        """Two attackers who find one person each: the other one is the strongest in half of the samples."""
        values = compute("attack_rank1_rate", answers({"one": [1, 2, 2], "two": [2, 1, 2]}))
        weights = samples(3)
        with np.errstate(invalid="ignore"):
            expected = weights[:, :2].max(axis=1) / weights.sum(axis=1)
        assert np.allclose(values["strongest"].draws, expected, equal_nan=True)
        assert not np.allclose(values["strongest"].draws, values["one"].draws, equal_nan=True)

    def test_controls_alone_have_no_strongest(self):
        values = compute("attack_rank1_rate", answers({"shuffled": [1, 2]}, control=[1.0, 1.0]))
        assert list(values) == ["shuffled"]

    def test_attacker_without_a_value_is_not_the_strongest(self):
        values = compute("attack_rank1_rate", answers({"none": [np.nan, np.nan], "naive": [2, 2]}))
        assert (values["strongest"].value, values["strongest"].over) == (0.0, 2)
        assert values["strongest"].note.startswith("naive: ")


def test_pictures_that_no_restoration_changed_are_not_compared():
    similarity = {"similarity": [0.5, 0.2], "before_similarity": [0.5, 0.2]}
    measurements = answers({"restoring": [1, 2]}, ssim=[0.5, 0.5], **similarity)
    (value,) = compute("restored_nearer", measurements).values()
    assert (value.over, value.note) == (0, "the attacker left every image as it was")


class TestAcceptance:
    def test_distance_below_the_threshold_is_accepted(self):
        measurements = answers({"naive": [1] * 4}, distance=[0.2, 0.5, 0.7, np.inf], threshold=[0.5] * 4)
        value = compute("attack_true_acceptance_rate", measurements)["naive"]
        assert (value.value, value.over, value.of) == (pytest.approx(1 / 3), 3, 4)
        assert value.note == "threshold 0.500 of 500 comparisons of the attacker's held-out people, recognizer net"

    def test_too_few_strangers_give_no_value(self):
        measurements = answers({"naive": [1, 1]}, distance=[0.2, 0.5], threshold=[np.nan] * 2)
        for value in compute("attack_true_acceptance_rate", measurements).values():
            assert (value.over, value.of) == (0, 2)
            assert value.note.startswith("too few pairs of strangers")

    def test_each_training_has_its_threshold(self):
        measurements = answers({"one": [1, 1], "two": [1, 1]}, attacker=["adapted"] * 4, trial=[0, 0, 1, 1],
                               distance=[0.2, 0.5, 0.2, 0.5], threshold=[0.3, 0.3, 0.6, 0.6])  # fmt: skip
        value = compute("attack_true_acceptance_rate", measurements)["adapted"]
        assert value.value == 0.75
        assert value.note.startswith("threshold 0.300 to 0.600 of")


class TestEqualErrorRate:
    @pytest.mark.parametrize(
        ("own", "strangers", "expected"),
        [
            ([1.0, 2.0], [[3.0], [4.0]], 0.0),  # told apart
            ([3.0, 4.0], [[1.0], [2.0]], 1.0),  # always wrong
            ([1.0, 3.0], [[2.0], [4.0]], 0.5),  # just above 2 both rates are 1/2
            # Up to 2: G = 1/3, FAR = 1/4. Up to 3: G = 2/3, FAR = 1/2. Their sum is 1 at 5/7 of the way.
            ([1.0, 3.0, 6.0], [[2.0, 3.0], [5.0], [7.0]], 0.25 + 5 / 7 * 0.25),
            ([1.0, 1.0], [[1.0], [1.0]], 0.5),  # all are alike
        ],
    )
    def test_rate_of_hand_worked_distances(self, own, strangers, expected):
        parts = [np.array(part) for part in strangers]
        assert equal_error_rates(np.array(own), parts, np.ones((1, len(own)))) == pytest.approx([expected])

    def test_draw_is_the_rate_of_the_drawn_people(self):
        """A sample equals a set that holds each probe, with its strangers, as often as its person was drawn."""
        draw = np.random.default_rng(0)
        own, others = draw.normal(0.8, 0.3, 40).round(2), draw.normal(1.0, 0.3, (40, 30)).round(2)
        measurements = answers({"naive": [1] * 40}, distance=own, strangers=list(others))
        value = compute("attack_equal_error_rate", measurements)["naive"]
        for times, rate in zip(samples(40)[:20].astype(int), value.draws[:20], strict=True):
            rows = np.repeat(np.arange(40), times)
            assert rate == pytest.approx(self.plain(own[rows], others[rows].ravel()))
        low, high = value.interval
        assert low < value.value < high

    @staticmethod
    def plain(own, others):
        """The rate by a loop over all thresholds."""
        rates = [(0.0, 1.0)]
        for step in np.unique(np.concatenate([own, others])):
            rates.append(((others <= step).mean(), (own > step).mean()))
            (far, frr), (next_far, next_frr) = rates[-2:]
            if next_far >= next_frr:
                way = (frr - far) / (frr - far + next_far - next_frr)
                return far + way * (next_far - far)
        raise AssertionError

    def test_strongest_is_the_lowest(self):
        columns = {"distance": [1.0, 3.0, 1.0, 2.0], "strangers": [[2.0], [4.0], [3.0], [4.0]]}
        values = compute("attack_equal_error_rate", answers({"naive": [1, 1], "adapted": [1, 1]}, **columns))
        assert {name: value.value for name, value in values.items()} == {
            "strongest": 0.0, "strongest_naming": 0.0, "naive": 0.5, "adapted": 0.0
        }  # fmt: skip
        assert values["strongest"].note == "adapted: chance 0.500, recognizer net"
        assert np.nanmax(values["strongest"].draws) == 0.0

    def test_sample_without_a_probe_has_no_rate(self):
        rates = equal_error_rates(np.array([1.0]), [np.array([2.0])], np.array([[0.0], [2.0]]))
        assert np.isnan(rates[0])
        assert rates[1] == 0.0


class TestPoisoning:
    def measurements(self, **columns):
        ranks = {"identity": [3, 2, 1, np.nan], "recognizer_a": [1, 1, 2, np.nan], "adaptive": [1, 1, 1, np.nan]}
        recognizers = [name for name in ranks for _ in range(4)]
        return answers(ranks, attacker=["poisoned"] * 12, recognizer=recognizers, asks=["protecting"] * 12, **columns)

    def test_protection_is_the_share_that_is_not_found(self):
        values = compute("poisoning_protection_rate", self.measurements())
        assert {name: value.value for name, value in values.items()} == pytest.approx(
            {"strongest": 0.0, "identity": 2 / 3, "recognizer_a": 1 / 3, "adaptive": 0.0}
        )
        assert values["strongest"].note == "adaptive: found by chance 0.100"
        assert (values["identity"].over, values["identity"].of) == (3, 4)
        weights = samples(4)[:, :3]
        with np.errstate(invalid="ignore"):
            assert np.allclose(values["identity"].draws, weights @ [1, 1, 0] / weights.sum(axis=1), equal_nan=True)

    def test_training_concerns_the_adaptive_recognizer_alone(self):
        values = compute("poisoning_protection_rate", self.measurements(learned=[0.0] * 12))
        assert [name for name, value in values.items() if "did not learn" in value.note] == ["strongest", "adaptive"]


class TestRestored:
    def measurements(self):
        """A restoring attacker with two recognizers and one who does not restore. The last probe was refused."""
        missing = [np.nan] * 3
        columns = {
            "recognizer": ["a"] * 3 + ["b"] * 3 + ["own"] * 3,
            "psnr": [20.0, 30.0, np.nan] * 2 + missing, "before_psnr": [15.0, np.inf, np.nan] * 2 + missing,
            "ssim": [0.5, 0.7, np.nan] * 2 + missing, "before_ssim": [0.4, 1.0, np.nan] * 2 + missing,
            "similarity": [0.8, 0.9, np.nan, 0.1, 0.2, np.nan, *missing],
            "before_similarity": [0.5, 1.0, np.nan, 0.0, 0.1, np.nan, *missing],
        }  # fmt: skip
        ranks = {name: [1, 1, np.nan] for name in ("one", "two", "three")}
        return answers(ranks, attacker=["restoring"] * 6 + ["adapted"] * 3, **columns)

    def values(self, name):
        return {part: value.value for part, value in compute(name, self.measurements()).items()}

    def test_pictures_are_those_of_the_restoring_attackers_and_those_before(self):
        assert self.values("restored_psnr") == {"restoring": 25.0, "anonymized": 15.0}
        assert self.values("restored_ssim") == pytest.approx({"restoring": 0.6, "anonymized": 0.7})
        value = compute("restored_psnr", self.measurements())["anonymized"]
        assert (value.over, value.of, value.note) == (1, 3, "infinite: the images are identical")

    def test_identity_is_that_of_each_recognizer(self):
        assert self.values("restored_similarity") == pytest.approx(
            {"a.restoring": 0.85, "b.restoring": 0.15, "a.anonymized": 0.75, "b.anonymized": 0.05}
        )
        assert self.values("restored_nearer") == {"a.restoring": 0.5, "b.restoring": 1.0}


def test_averages_of_twins_leave_out_what_is_missing():
    people = {"id": ["f0", "f1", "f2"], "identity": ["a", "a", "b"]}
    columns = {"landmark_error": [4.0, 8.0, np.nan], "found": [1.0, 0.0, 1.0], "overlap": [0.8, 0.0, 0.7]}
    measurements = replace(example({"id": ["f0"]}, {"id": ["f0"]}, downstream_utility=people | columns), draws=DRAWS)
    values = {name: compute(name, measurements)[""] for name in OF_TWINS}
    assert {name: value.value for name, value in values.items()} == pytest.approx(
        {"twin_landmark_error": 6.0, "twin_detection_rate": 2 / 3, "twin_box_overlap": 0.5}
    )
    assert (values["twin_landmark_error"].over, values["twin_landmark_error"].of) == (2, 3)
    weights = people_weights(np.array(["a", "a", "b"]), DRAWS)
    with np.errstate(invalid="ignore"):
        draws = weights @ [1, 0, 1] / weights.sum(axis=1)
    assert np.allclose(values["twin_detection_rate"].draws, draws, equal_nan=True)


def test_answers_of_attackers_are_read_from_their_file(tmp_path):
    """The file of pipeline/informed.py, with booleans, lists and refused faces, gives the values of its frame."""
    columns = {"distance": [1.0, 3.0, np.nan], "strangers": [np.float32([2.0]), np.float32([4.0]), None]}
    measurements = answers({"adapted": [1, 3, np.nan]}, learned=[False] * 3, threshold=[2.0] * 3, **columns)
    core_measurements.write_table(measurements.attack_results, tmp_path / "attacked.parquet")
    core_measurements.write_table(
        pd.DataFrame({"id": ["f0"], "identity": ["a"], "found": [True]}), tmp_path / "utility.parquet"
    )
    faces = pd.DataFrame({"id": ["f0"], "source_id": ["f0"], "identity": ["a"], "split": ["test"], "status": ["ok"]})
    table = pa.Table.from_pandas(faces).replace_schema_metadata({"masquerade": json.dumps({"size": 8})})
    pq.write_table(table, tmp_path / "faces.parquet")
    faces, attacked, utility = (tmp_path / f"{name}.parquet" for name in ("faces", "attacked", "utility"))
    measured = evaluation.collect_evidence(
        evaluation.CellFiles(faces, faces, attack_results=attacked, downstream_utility=utility), "test", DRAWS
    )
    for name in ("attack_rank1_rate", "attack_true_acceptance_rate", "attack_equal_error_rate"):
        assert compute(name, measured) == compute(name, measurements)
        assert "did not learn" in compute(name, measured)["strongest"].note
    assert compute("twin_detection_rate", measured)[""].value == 1.0
