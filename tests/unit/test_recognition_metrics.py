"""Metrics of recognition: thresholds, protection, verification and identification, worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from masquerade.core.statistics import between, find_threshold, people_weights
from masquerade.metrics._tails import Tail
from metric_evidence import compute, evidence, on_circle, table


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(3, 30))
def test_similarity_between_people_is_the_mean_over_their_pairs(seed, count):
    draw = np.random.default_rng(seed)
    names = np.array([*"ab", *draw.choice(["a", "b", "c", ""], count)])
    embeddings = draw.normal(size=(len(names), 5)).astype(np.float32)
    keys = draw.integers(0, 2, len(names))
    keys[:2] = 0
    derived = table(names, embeddings, number=keys)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    pairs = [unit[i] @ unit[j] for i in range(len(names)) for j in range(i)
             if names[i] and names[j] and names[i] != names[j] and keys[i] == keys[j]]  # fmt: skip
    value = compute("people_similarity", evidence(derived, derived))["r"]
    assert value.value == pytest.approx(np.mean(pairs), abs=1e-5)
    assert value.note == f"{len(pairs)} pairs of different people"


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200, unique=True), st.floats(0.005, 0.9))
def test_threshold_accepts_no_more_impostors_than_the_rate(values, far):
    impostors = np.sort(np.array(values, dtype=float))
    threshold = find_threshold(far, impostors)
    if math.isnan(threshold):
        assert far * len(impostors) < 1
    else:
        allowed = far * len(impostors)  # counts, not shares: 9 / 10 is more than 0.8999999999999999
        assert (impostors < threshold).sum() <= allowed < (impostors <= threshold).sum()


def test_rate_that_the_pairs_cannot_resolve_has_a_note():
    original = table(["a", "b", "c"], on_circle(0, 90, 180))
    value = compute("protection_success_rate_at_far", evidence(original, original), far=0.01)["r"]
    assert math.isnan(value.value)
    assert value.note == "3 impostor pairs of calibration cannot resolve a false-accept rate of 0.01"


def test_true_acceptance_of_hand_worked_pairs():
    """Four people, two folds, two images each; impostors of the other fold are 90 degrees and more apart."""
    names = ["a", "a", "b", "b", "c", "c", "d", "d"]
    original = table(names, on_circle(0, 5, 0, 5, 120, 125, 120, 125))
    derived = table(names, on_circle(0, 10, 0, 170, 120, 130, 120, 300))
    measurements = evidence(original, derived)
    value = compute("true_acceptance_rate", measurements, far=0.3, folds=2, most_pictures=100)["r"]
    # fold 0 holds a and c, whose second images are near; fold 1 holds b and d, whose second images are far
    assert value.value == 0.5
    assert value.spread == 0.5
    assert (value.over, value.of) == (4, 4)


@pytest.mark.parametrize("published", [False, True])
def test_samples_of_the_true_acceptance_rate_have_the_thresholds_of_the_people_in_them(published):
    """Six people with two images each in two folds. The published pairs are all pairs of a fold."""
    draw, people, folds, far = np.random.default_rng(1), "abcdef", ("ace", "bdf"), 0.2
    names = [name for name in people for _ in range(2)]
    places = draw.normal(size=(12, 2))
    pairs = [
        (i, j) for i in range(12) for j in range(i + 1, 12) if any({names[i], names[j]} <= {*fold} for fold in folds)
    ]
    columns = {"fold": [0 if name in folds[0] else 1 for name in names]}
    columns["pairs"] = [[f"f{j}" for first, j in pairs if first == i] for i in range(12)]
    original = table(names, places, **columns if published else {})
    derived = table(names, places + draw.normal(size=(12, 2)))
    measurements = replace(evidence(original, derived), draws=25)
    value = compute("true_acceptance_rate", measurements, far=far, folds=2, most_pictures=100)["r"]
    first, second = (np.stack(faces["r.embedding"]).astype(float) for faces in (original, derived))
    expected = []
    for counts in people_weights(np.array([*people]), 25).astype(int):
        times, rates = dict(zip(people, counts, strict=True)), []
        for fold in folds:
            strangers = np.sort([
                math.dist(first[i], first[j]) for i, j in pairs if names[i] != names[j] and names[i] not in fold
                for _ in range(times[names[i]] * times[names[j]])
            ])  # fmt: skip
            genuine = [
                (math.dist(first[i], second[i + 1]), times[names[i]]) for i in range(0, 12, 2) if names[i] in fold
            ]
            total = sum(count for _, count in genuine)
            if len(strangers) and total:
                threshold = strangers[int(far * len(strangers))]
                rates.append(sum(count for distance, count in genuine if distance < threshold) / total)
        expected.append(np.mean(rates) if rates else math.nan)
    assert value.draws == pytest.approx(expected, nan_ok=True)
    assert "; its rate is 0" in value.note


def test_true_acceptance_on_published_pairs_by_hand():
    """Two folds of one genuine and one impostor pair each; a pair without its second image does not count."""
    names = ["a", "a", "b", "c", "c", "d"]
    columns = {"fold": [1, 1, 1, 2, 2, 2], "pairs": [["f1", "f2"], [], [], ["f4", "f5", "gone"], [], []]}
    original = table(names, on_circle(0, 5, 60, 120, 125, 150), **columns)
    derived = table(names, on_circle(0, 40, 0, 120, 150, 120))
    value = compute("true_acceptance_rate", evidence(original, derived), far=0.9999, folds=7, most_pictures=4)["r"]
    assert (value.over, value.of) == (0, 2), "one impostor pair of the other fold resolves no rate but 1"
    columns["pairs"] = [["f1", "f2", "f2"], [], [], ["f4", "f5", "f5"], [], []]
    original = table(names, on_circle(0, 5, 60, 120, 125, 150), **columns)
    value = compute("true_acceptance_rate", evidence(original, derived), far=0.5, folds=7, most_pictures=4)["r"]
    # fold 1: a at 0 and anonymized at 40, impostors of fold 2 are 30 apart; fold 2: 120 and 150, impostors 60 apart
    assert (value.value, value.spread, value.over, value.of) == (0.5, 0.5, 2, 2)
    assert "at least 2 impostor pairs, 2 folds" in value.note


def test_protected_and_re_identified_faces_add_up_at_the_threshold_of_other_people():
    calibration = table(["x", "y", "z"], on_circle(0, 20, 60))  # impostor chords of 20, 40 and 60 degrees
    original = table(list("abcd"), on_circle(0, 0, 0, 0))
    derived = table(list("abcd"), np.vstack([on_circle(30, 39, 50), [[np.nan, np.nan]]]))
    for metric, share in (("re_identification_rate", 2 / 3), ("protection_success_rate_at_far", 1 / 3)):
        value = compute(metric, evidence(original, derived, calibration), far=0.5)["r"]
        assert (value.value, value.over, value.of) == (pytest.approx(share), 3, 4)  # the threshold: 40 degrees
        assert (
            value.note
            == f"threshold {np.sqrt(2 - 2 * np.cos(np.radians(40))):.3f} at FAR 0.5 of 3 impostor pairs of 3 people"
        )


def test_intervals_hold_the_true_rate_although_few_people_set_the_threshold():
    """Of 60 intervals of a rate that is 0.5 at the true threshold; with a fixed threshold about 36 hold it."""
    far, draw, held = 0.01, np.random.default_rng(2), 0
    true_threshold = np.sqrt(2) * stats.chi(3).ppf(far)  # of two strangers' distance in three dimensions
    tested = [f"p{row}" for row in range(72)]
    for number in range(60):
        strangers = table([f"{number}-{row}" for row in range(24)], draw.normal(size=(24, 3)))
        moved = np.zeros((72, 3))
        moved[:, 0] = draw.uniform(0, 2 * true_threshold, 72)
        measurements = replace(evidence(table(tested, np.zeros((72, 3))), table(tested, moved), strangers), draws=200)
        low, high = compute("re_identification_rate", measurements, far=far)["r"].interval
        held += low <= 0.5 <= high
    assert held >= 52


def test_rank1_leaves_out_the_source_of_each_face():
    """a's face equals its source, and b's image is the nearest other one; b's second face is nearest to b."""
    names = ["a", "a", "b", "b", "c"]
    original = table(names, on_circle(0, 90, 10, 30, 200))
    derived = table(names, on_circle(0, 91, 12, 28, 90))
    value = compute("rank1_identification_rate", evidence(original, derived))["r"]
    # 0 -> b at 10; 91 -> b at 30 (its own at 90 is left out); 12 -> a at 0; 28 -> b at 10. c has one image.
    assert value.value == 0.25
    assert (value.over, value.of) == (4, 4)
    assert value.note == "chance 0.250, nearest of 5 originals without its own"


def test_rank1_leaves_out_refused_faces_and_people_without_another_picture():
    names = ["a", "a", "b", "b"]
    original = table(names, on_circle(0, 1, 90, 91))
    original.at[3, "r.embedding"] = np.array([np.nan, np.nan])  # b's other image shows no face
    derived = table(names, on_circle(2, 2, 90, 91))
    derived.at[0, "r.embedding"] = np.array([np.nan, np.nan])
    value = compute("rank1_identification_rate", evidence(original, derived))["r"]
    # left: a's second image (nearest 0: a) and b's second image (nearest 90: b); b's first has no other image
    assert (value.value, value.over, value.of) == (1.0, 2, 4)


def test_images_of_a_gallery_are_compared_with_the_anonymized_ones():
    """One image of each person is anonymized; the other one is in the gallery. a and c stay near it, b and d do not."""
    names = [*"abcd"]
    gallery, original = table(names, on_circle(0, 0, 120, 120)), table(names, on_circle(5, 5, 125, 125))
    gallery["id"] = [f"gallery{row}" for row in range(4)]
    measurements = replace(evidence(original, table(names, on_circle(10, 170, 130, 300))), gallery=gallery)
    value = compute("true_acceptance_rate", measurements, far=0.3, folds=2, most_pictures=100)["r"]
    assert (value.value, value.spread, value.over, value.of) == (0.5, 0.5, 4, 4)
    # 10 is nearest to b at 5, as its own source is left out; 170 to d at 125, 130 to d at 125, 300 to a or b at 0
    value = compute("rank1_identification_rate", measurements)["r"]
    assert (value.value, value.over, value.of) == (0.0, 4, 4)
    near = replace(measurements, original=table(names, on_circle(5, 60, 125, 180)))
    # now 10 is nearest to a or b at 0, of which a comes first, and 130 to c or d at 120, of which c comes first
    assert compute("rank1_identification_rate", near)["r"].value == 0.5


def test_rank1_does_not_depend_on_the_block_size(monkeypatch):
    from masquerade.metrics import recognition

    draw = np.random.default_rng(2)
    names = [f"p{row // 3}" for row in range(30)]
    people = np.repeat(draw.normal(size=(10, 4)), 3, axis=0)
    measurements = evidence(table(names, people + 0.4 * draw.normal(size=people.shape)), table(names, people + 0.8))
    whole = compute("rank1_identification_rate", measurements)["r"]
    monkeypatch.setattr(recognition, "AT_ONCE", 7)
    assert compute("rank1_identification_rate", measurements)["r"] == whole
    assert 0 < whole.value < 1


@pytest.mark.parametrize(
    ("metric", "knobs"),
    [("rank1_identification_rate", {}), ("true_acceptance_rate", {"far": 0.5, "folds": 2, "most_pictures": 100})],
)
@pytest.mark.parametrize("names", ["ab", ["", "", "", ""]])
def test_faces_of_nobody_with_two_pictures_have_a_note_instead_of_a_rate(metric, knobs, names):
    faces = table(list(names), on_circle(*range(0, 90 * len(names), 90)))
    value = compute(metric, evidence(faces, faces), **knobs)["r"]
    assert math.isnan(value.value)
    assert (value.of, value.note) == (0, "nobody has two images")


def test_faces_without_identity_are_in_no_pair():
    embeddings = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert between(embeddings, np.array(["a", "", "b", ""], dtype=object)).tolist() == [3.0]


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(0, 12))
def test_rank_1_among_drawn_strangers_is_the_mean_over_all_ways_to_draw_them_with_replacement(seed, size):
    """Where every person has strangers that are nearer, the rate is exact: (1 - p)^n."""
    draw = np.random.default_rng(seed)
    names = np.array(["a", "b", "c"])
    original, derived = draw.normal(size=(3, 2)), draw.normal(size=(3, 2))
    strangers = np.concatenate([derived + draw.normal(size=(3, 2)) * 1e-3, draw.normal(size=(9, 2))])
    shown = evidence(table(names, original), table(names, derived))
    value = compute("large_gallery_rate", replace(shown, distractors={"r": strangers}), sizes=[size], tail=0.01)
    own = np.linalg.norm(derived - original, axis=1)
    apart = np.linalg.norm(derived[:, None] - original[None], axis=2)
    first = apart.argmin(axis=1) == np.arange(3)
    nearer = (np.linalg.norm(derived[:, None] - strangers[None], axis=2) < own[:, None]).mean(axis=1)
    assert value[f"r.{size}"].value == pytest.approx((first * (1 - nearer) ** size).mean())


def test_the_tail_of_normal_distances_is_found_in_the_mean_down_to_one_in_a_million():
    true = np.array([0.3, 1e-3, 1e-5, 1e-6])
    strangers = np.random.default_rng(0).normal(1.0, 0.1, (30, 20_000))
    found = [Tail(strangers, np.full(30, 1.0 + 0.1 * deviate), 0.01).estimate() for deviate in stats.norm.ppf(true)]
    assert np.abs(np.log2(found).mean(axis=1) - np.log2(true)).max() < 0.5
    assert Tail(strangers[:, :500], np.zeros(30), 0.01).estimate().tolist() == [0.0] * 30, "too few for a line"


def test_a_sample_of_the_strangers_has_the_chances_of_its_copies():
    draw = np.random.default_rng(3)
    strangers, own = draw.normal(1.0, 0.1, (6, 2000)), np.linspace(0.5, 1.1, 6)
    sample = draw.integers(2000, size=2000)
    counted = Tail(strangers, own, 0.01).estimate(np.bincount(sample, minlength=2000))
    np.testing.assert_allclose(counted, Tail(strangers[:, sample], own, 0.01).estimate(), rtol=1e-6)


def test_a_gallery_that_is_larger_than_the_drawn_strangers_is_called_an_extrapolation():
    names = np.array(["a", "b"])
    shown = evidence(table(names, np.eye(2)), table(names, np.eye(2)))
    strangers = -np.abs(np.random.default_rng(0).normal(size=(800, 2)))
    values = compute("large_gallery_rate", replace(shown, distractors={"r": strangers}), sizes=[800, 801], tail=0.01)
    assert values["r.800"].note == "2 people and 800 strangers"
    assert values["r.801"].note == "2 people and 801 strangers; extrapolation from 800 strangers"
    few = compute("large_gallery_rate", replace(shown, distractors={"r": strangers[:799]}), sizes=[799, 801], tail=0.01)
    assert few["r.799"].value == 1.0
    assert np.isnan(few["r.801"].value)
    assert few["r.801"].note == "799 strangers are too few for the tail of their distances"
    assert compute("large_gallery_rate", shown, sizes=[2], tail=0.01) == {}, "without strangers there is no number"
