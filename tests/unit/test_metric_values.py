"""Metrics: their values equal those of independent implementations and those worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core import discovery
from masquerade.core.errors import ProtocolError
from masquerade.core.statistics import (
    between,
    decoded,
    encoded,
    frechet,
    frechet_draws,
    interval,
    people_weights,
    threshold_at,
    weighted_means,
)
from masquerade.metrics import Evidence
from masquerade.pipeline import evaluation


def table(names, embeddings=None, **columns):
    tree = {"id": [f"f{row}" for row in range(len(names))], "identity": names, "status": ["ok"] * len(names)}
    if embeddings is not None:
        columns["r.embedding"] = list(np.asarray(embeddings, dtype=np.float32))
    return pd.DataFrame({**tree, **columns})


def evidence(original, derived, calibration=None):
    calibration = original if calibration is None else calibration
    return Evidence(original, derived, calibration, tuple({name.split(".")[0] for name in derived if "." in name}))


def compute(metric, measurements, **params):
    cls = discovery.load("metrics", metric)
    return cls(cls.Params(**params)).compute(measurements)


def on_circle(*degrees):
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def test_identity_distance_is_the_chord():
    measurements = evidence(table(["a", "b"], on_circle(0, 90)), table(["a", "b"], on_circle(60, 90)))
    value = compute("identity_distance", measurements)["r"]
    assert value.value == pytest.approx((2 * math.sin(math.radians(30)) + 0) / 2, abs=1e-6)
    assert (value.over, value.of) == (2, 2)


def test_face_that_could_not_be_measured_leaves_the_denominator():
    derived = table(["a", "b"], on_circle(60, 90))
    derived["r.embedding"] = [np.array([0.5, 0.8]), np.array([np.nan, np.nan])]
    value = compute("identity_distance", evidence(table(["a", "b"], on_circle(0, 90)), derived))["r"]
    assert (value.over, value.of) == (1, 2)


def test_identity_similarity_is_the_cosine_of_vectors_of_any_length():
    measurements = evidence(table(["a", "b"], on_circle(0, 90)), table(["a", "b"], 3 * on_circle(60, 90)))
    value = compute("identity_similarity", measurements)["r"]
    assert value.value == pytest.approx((0.5 + 1.0) / 2)
    assert (value.over, value.of) == (2, 2)


def test_identity_l1_is_the_mean_over_coordinates():
    measurements = evidence(table(["a"], [[2.0, 0.0]]), table(["a"], [[0.0, 5.0]]))
    assert compute("identity_l1", measurements)["r"].value == pytest.approx(1.0)  # (|1 - 0| + |0 - 1|) / 2


def test_identity_l1_of_random_directions_agrees_with_the_paper():
    draw = np.random.default_rng(0)
    first, second = draw.normal(size=(2, 200, 512))
    names = ["a"] * 200
    value = compute("identity_l1", evidence(table(names, first), table(names, second)))["r"].value
    assert value == pytest.approx(0.050, abs=0.0005)  # 2 / sqrt(pi 512); the paper prints 0.048


def test_distances_are_in_pixels_of_256_over_faces_detected_in_both():
    boxes = [[10.0, 10.0, 50.0, 50.0], [np.nan] * 4, [0.0, 0.0, 60.0, 60.0]]
    moved = [[12.0, 10.0, 50.0, 46.0], [0.0, 0.0, 60.0, 60.0], [np.nan] * 4]
    measurements = evidence(table("abc", **{"d.box": boxes}), table("abc", **{"d.box": moved}))
    value = compute("box_distance", replace(measurements, size=64))["d"]
    assert value.value == pytest.approx((2 + 4) / 4 * 4)
    assert (value.over, value.of) == (1, 3)
    with pytest.raises(ProtocolError, match="size of the pictures"):
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


def test_errors_of_pixels_are_on_the_scale_of_one():
    measurements = evidence(table("a"), table("a", **{"pixels.mse": [65.025], "pixels.mae": [5.1]}))
    assert compute("mse", measurements)[""].value == pytest.approx(1e-3)
    assert compute("mae", measurements)[""].value == pytest.approx(0.02)


def versions(first, *others, **columns):
    """Pictures under a first key, and the same faces under other keys as attempts."""
    derived = table(["a"] * len(first), on_circle(*first)).assign(source_id=[f"f{row}" for row in range(len(first))])
    tried = [derived.assign(attempt="key", number=number, **{"r.embedding": list(on_circle(*angles))})
             for number, angles in enumerate(others)]  # fmt: skip
    measurements = evidence(derived, derived)
    return replace(
        measurements, attempts=pd.concat([*tried, derived.assign(attempt="wrong", number=0)]) if tried else None
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
    names = measurements.attempts["attempt"].where(measurements.attempts["attempt"] == "wrong", "view.draw.1")
    drawn = replace(measurements, attempts=measurements.attempts.assign(attempt=names))
    assert compute("key_angle", drawn)["r"] == compute("key_angle", measurements)["r"]
    other = replace(measurements, attempts=measurements.attempts.assign(attempt="view.plus.age"))
    assert math.isnan(compute("key_angle", other)["r"].value)


def test_wrong_recoveries_are_compared_with_each_other():
    measurements = versions((0, 10), (30, 10), (90, 40))
    rows = pd.concat([measurements.attempts[measurements.attempts["attempt"] == "key"]], ignore_index=True)
    wrong = replace(measurements, attempts=rows.assign(attempt="wrong"))
    metric = {name: discovery.load("metrics", name)(None) for name in ("key_angle", "true_acceptance_rate")}
    values = evaluation.evaluate_attempts(metric, wrong)
    assert list(values) == ["anonymized", "wrong"]
    assert list(values["wrong"]) == ["key_angle"]
    assert values["wrong"]["key_angle"]["r"]["value"] == pytest.approx((60 + 30) / 2, abs=1e-3)


def test_judge_without_measured_attempts_has_no_angle():
    measurements = versions((0, 10), (30, 10))
    measurements = replace(measurements, attempts=measurements.attempts.drop(columns="r.embedding"))
    assert compute("key_angle", measurements)["r"].note == "no face has two versions"


def test_one_version_of_each_face_has_no_angle():
    for measurements in (versions((0, 10)), replace(versions((0, 10), (5, 5)), attempts=None)):
        value = compute("key_angle", measurements)["r"]
        assert math.isnan(value.value)
        assert (value.over, value.of, value.note) == (0, 2, "no face has two versions")


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


def test_protection_needs_the_threshold_to_be_reached():
    original = table(["a"] * 3, [[0.0], [0.0], [0.0]])
    derived = table(["a"] * 3, [[0.5], [0.7], [np.nan]])
    value = compute("protection_success_rate", evidence(original, derived), thresholds={"r": 0.6})["r"]
    assert value.value == 0.5
    assert (value.over, value.of) == (2, 3)


def test_unmeasured_judge_gives_no_protection_rate():
    measurements = evidence(table(["a"], [[0.0]]), table(["a"], [[1.0]]))
    assert compute("protection_success_rate", measurements, thresholds={"other": 0.6}) == {}


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=200, unique=True), st.floats(0.005, 0.9))
def test_threshold_accepts_no_more_impostors_than_the_rate(values, far):
    impostors = np.sort(np.array(values, dtype=float))
    threshold = threshold_at(far, impostors)
    if math.isnan(threshold):
        assert far * len(impostors) < 1
    else:
        allowed = far * len(impostors)  # counts, not shares: 9 / 10 is more than 0.8999999999999999
        assert (impostors < threshold).sum() <= allowed < (impostors <= threshold).sum()


def test_threshold_agrees_with_scikit_learn():
    from sklearn.metrics import roc_curve

    draw = np.random.default_rng(0)
    impostors, genuine = np.sort(draw.normal(1.2, 0.2, 500)), draw.normal(0.6, 0.2, 100)
    scores = -np.concatenate([impostors, genuine])
    truth = np.repeat([0, 1], [500, 100])
    rate, _, cuts = roc_curve(truth, scores, drop_intermediate=False)
    loosest = -cuts[rate <= 0.02].min()  # accepts `score >= cut`, that is `distance <= -cut`
    ours = threshold_at(0.02, impostors)
    assert (impostors < ours).mean() == 0.02
    assert (genuine < ours).mean() == pytest.approx((genuine <= loosest).mean(), abs=0.011)


def test_rate_that_the_pairs_cannot_resolve_has_a_note():
    original = table(["a", "b", "c"], on_circle(0, 90, 180))
    value = compute("protection_success_rate_at_far", evidence(original, original), far=0.01)["r"]
    assert math.isnan(value.value)
    assert value.note == "3 impostor pairs of calibration cannot resolve a false-accept rate of 0.01"


def test_protection_at_a_rate_uses_other_people_for_its_threshold():
    calibration = table(["x", "y", "z"], on_circle(0, 20, 60))  # impostor chords of 20, 40 and 60 degrees
    original, derived = table(["a", "b"], on_circle(0, 0)), table(["a", "b"], on_circle(30, 50))
    value = compute("protection_success_rate_at_far", evidence(original, derived, calibration), far=0.5)["r"]
    assert value.value == 0.5  # the threshold is the chord of 40 degrees
    assert "FAR 0.5 of 3 impostor pairs" in value.note


def test_true_acceptance_of_hand_worked_pairs():
    """Four people, two folds, two pictures each; impostors of the other fold are 90 degrees and more apart."""
    names = ["a", "a", "b", "b", "c", "c", "d", "d"]
    original = table(names, on_circle(0, 5, 0, 5, 120, 125, 120, 125))
    derived = table(names, on_circle(0, 10, 0, 170, 120, 130, 120, 300))
    measurements = evidence(original, derived)
    value = compute("true_acceptance_rate", measurements, far=0.3, folds=2, most_pictures=100)["r"]
    # fold 0 holds a and c, whose second pictures are near; fold 1 holds b and d, whose second pictures are far
    assert value.value == 0.5
    assert value.spread == 0.5
    assert (value.over, value.of) == (4, 4)


def test_true_acceptance_on_published_pairs_by_hand():
    """Two folds of one genuine and one impostor pair each; a pair without its second picture does not count."""
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


def test_true_acceptance_without_pairs_has_a_note():
    measurements = evidence(table(["a", "b"], on_circle(0, 90)), table(["a", "b"], on_circle(0, 90)))
    value = compute("true_acceptance_rate", measurements, far=0.3, folds=2, most_pictures=100)["r"]
    assert math.isnan(value.value)
    assert value.note == "nobody has two pictures"


def test_re_identification_counts_faces_below_the_threshold_without_refused_ones():
    calibration = table(["x", "y", "z"], on_circle(0, 20, 60))  # impostor chords of 20, 40 and 60 degrees
    names = ["a", "b", "c", "d"]
    original = table(names, on_circle(0, 0, 0, 0))
    derived = table(names, np.vstack([on_circle(30, 39, 50), [[np.nan, np.nan]]]))
    value = compute("re_identification_rate", evidence(original, derived, calibration), far=0.5)["r"]
    assert value.value == pytest.approx(2 / 3)  # the threshold is the chord of 40 degrees
    assert (value.over, value.of) == (3, 4)
    assert "FAR 0.5 of 3 impostor pairs" in value.note


def test_re_identification_and_protection_at_one_rate_are_complements():
    draw = np.random.default_rng(5)
    measurements = evidence(
        table(list("abcdefgh"), draw.normal(size=(8, 3))), table(list("abcdefgh"), draw.normal(size=(8, 3)))
    )
    protected = compute("protection_success_rate_at_far", measurements, far=0.3)["r"]
    assert compute("re_identification_rate", measurements, far=0.3)["r"].value == pytest.approx(1 - protected.value)


def test_rank1_leaves_out_the_source_of_each_face():
    """a's face equals its source, and b's picture is the nearest other one; b's second face is nearest to b."""
    names = ["a", "a", "b", "b", "c"]
    original = table(names, on_circle(0, 90, 10, 30, 200))
    derived = table(names, on_circle(0, 91, 12, 28, 90))
    value = compute("rank1_identification_rate", evidence(original, derived))["r"]
    # 0 -> b at 10; 91 -> b at 30 (its own at 90 is left out); 12 -> a at 0; 28 -> b at 10. c has one picture.
    assert value.value == 0.25
    assert (value.over, value.of) == (4, 4)
    assert value.note == "chance 0.250, nearest of 5 originals without its own"


def test_rank1_leaves_out_refused_faces_and_people_without_another_picture():
    names = ["a", "a", "b", "b"]
    original = table(names, on_circle(0, 1, 90, 91))
    original.at[3, "r.embedding"] = np.array([np.nan, np.nan])  # b's other picture shows no face
    derived = table(names, on_circle(2, 2, 90, 91))
    derived.at[0, "r.embedding"] = np.array([np.nan, np.nan])
    value = compute("rank1_identification_rate", evidence(original, derived))["r"]
    # left: a's second picture (nearest 0: a) and b's second picture (nearest 90: b); b's first has no other picture
    assert (value.value, value.over, value.of) == (1.0, 2, 4)


def test_rank1_does_not_depend_on_the_block_size(monkeypatch):
    from masquerade.metrics import rank1_identification_rate

    draw = np.random.default_rng(2)
    names = [f"p{row // 3}" for row in range(30)]
    people = np.repeat(draw.normal(size=(10, 4)), 3, axis=0)
    measurements = evidence(table(names, people + 0.4 * draw.normal(size=people.shape)), table(names, people + 0.8))
    whole = compute("rank1_identification_rate", measurements)["r"]
    monkeypatch.setattr(rank1_identification_rate, "AT_ONCE", 7)
    assert compute("rank1_identification_rate", measurements)["r"] == whole
    assert 0 < whole.value < 1


@pytest.mark.parametrize("names", [["a", "b"], ["", ""]])
def test_rank1_without_a_second_picture_has_a_note(names):
    measurements = evidence(table(names, on_circle(0, 90)), table(names, on_circle(0, 90)))
    value = compute("rank1_identification_rate", measurements)["r"]
    assert math.isnan(value.value)
    assert value.note == "nobody has two pictures"


def test_distance_to_the_target_is_the_frechet_distance_of_the_features():
    draw = np.random.default_rng(1)
    first, second = draw.normal(size=(9, 3)), 2 + draw.normal(size=(12, 3))
    derived = table(["a"] * 10, **{"n.features": [*first, np.full(3, np.nan)]})
    measurements = Evidence(derived, derived, derived, ("n",), target=table(["b"] * 12, **{"n.features": list(second)}))
    value = compute("frechet_distance_to_target", measurements)["n"]
    assert value.value == pytest.approx(frechet(first, second))
    assert (value.over, value.of, value.note) == (9, 10, "from 9 faces to 12")


def test_distance_without_a_target_has_no_values():
    derived = table(["a"] * 3, **{"n.features": list(np.eye(3))})
    assert compute("frechet_distance_to_target", evidence(derived, derived)) == {}


def attributes(labels, **columns):
    """{attribute: [(label, probability), ...]} of pictures p0, p1, ... as predictions."""
    rows = [
        (f"p{row}", labels, name, bool(label), probability)
        for name, values in columns.items()
        for row, (label, probability) in enumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=["id", "labels", "attribute", "label", "probability"])
    return frame.assign(learnt_from=16)


def accuracy(*frames):
    nothing = table(["a"])
    measurements = Evidence(nothing, nothing, nothing, (), attributes=pd.concat(frames))
    return compute("attribute_accuracy", measurements)


KNOWN_FRAME = attributes(
    "annotated",
    Male=[(1, 0.5), (1, 0.2), (0, 0.4), (0, 0.1)],  # inner: 3 of 4; balanced (1/2 + 2/2) / 2
    Bald=[(0, 0.1), (0, 0.1), (0, 0.6), (0, 0.2)],  # outer: 3 of 4; no face is bald: no balanced accuracy
    Attractive=[(1, 0.9), (1, 0.9), (0, 0.1), (0, np.nan)],  # neither: 3 of 3
)


def test_attribute_accuracy_of_hand_worked_predictions():
    accuracies = accuracy(KNOWN_FRAME)
    values = {part: accuracies[part].value for part in ("Male", "Bald", "Attractive", "inner", "outer", "combined")}
    assert values == {"Male": 0.75, "Bald": 0.75, "Attractive": 1.0, "inner": 0.75, "outer": 0.75, "combined": 9 / 11}
    assert (accuracies["combined"].over, accuracies["Attractive"].over, accuracies["Attractive"].of) == (4, 3, 4)
    assert accuracies["combined"].note == "threshold 0.5; learnt from 16 faces"


def test_balanced_accuracy_leaves_out_attributes_that_do_not_vary():
    accuracies = accuracy(KNOWN_FRAME)
    assert accuracies["inner.balanced"].value == 0.75
    assert accuracies["combined.balanced"].value == pytest.approx((0.75 + 1.0) / 2)
    assert accuracies["combined.balanced"].note.endswith("2 of 3 attributes vary")
    assert math.isnan(accuracies["outer.balanced"].value)


def test_constant_prediction_has_a_high_accuracy_and_a_low_balanced_one():
    accuracies = accuracy(attributes("annotated", Bald=[(1, 0.1)] + [(0, 0.1)] * 9))
    assert (accuracies["Bald"].value, accuracies["outer.balanced"].value) == (0.9, 0.5)


def test_pseudo_labels_have_their_own_values_and_an_agreement_with_annotations():
    pseudo = attributes("pseudo_b", Male=[(1, 0.9), (0, 0.9), (0, 0.1), (0, 0.1)])
    accuracies = accuracy(KNOWN_FRAME, pseudo)
    assert (accuracies["Male"].value, accuracies["pseudo_b.Male"].value) == (0.75, 0.75)
    assert accuracies["pseudo_b.combined"].note.endswith("0.750 of the labels are right")


def test_attribute_that_is_not_labelled_has_a_reason():
    accuracies = accuracy(KNOWN_FRAME)
    assert math.isnan(accuracies["Sideburns"].value)
    assert accuracies["Sideburns"].note == "these faces have no such label"
    assert (accuracies["Sideburns"].over, accuracies["Sideburns"].of) == (0, 4)


def test_cell_without_a_classifier_has_no_attribute_accuracy():
    same = table(["a"])
    assert compute("attribute_accuracy", evidence(same, same)) == {}


def test_predictions_are_read_and_a_bad_file_is_named(tmp_path):
    from masquerade.core.errors import ArchiveError
    from masquerade.pipeline.attributes import predictions

    path = tmp_path / "0.parquet"
    with pytest.raises(ArchiveError, match=f"{path} is missing"):
        predictions.read(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(ArchiveError, match=f"{path} is damaged"):
        predictions.read(path)
    table(["a"]).to_parquet(path)  # parquet, but measurements
    with pytest.raises(ArchiveError, match="holds no predictions of attributes"):
        predictions.read(path)
    KNOWN_FRAME.to_parquet(path)
    assert repr(accuracy(predictions.read(path))) == repr(accuracy(KNOWN_FRAME)), "as text: NaN is not equal to itself"


def test_regions_are_those_of_the_drawn_attributes():
    from masquerade.core import annotations
    from masquerade.faces._drawn import attributes as _attributes

    assert set(_attributes.INNER) == set(annotations.INNER)
    assert set(annotations.OUTER) - set(_attributes.OUTER) == {
        "Sideburns", "Wearing_Earrings", "Wearing_Necklace", "Wearing_Necktie"
    }  # fmt: skip


def test_detection_rate_counts_and_leaves_out_refused_faces():
    derived = table(["a"] * 4, **{"hog.detected": [1.0, 0.0, 1.0, np.nan]})
    value = compute("detection_rate", evidence(table(["a"] * 4), derived))["hog"]
    assert value.value == pytest.approx(2 / 3)
    assert (value.over, value.of) == (3, 4)


def test_identical_pictures_have_a_note_instead_of_a_psnr():
    same = table(["a", "b"], **{"pixels.psnr": [np.inf, np.inf]})
    value = compute("psnr", evidence(same, same))[""]
    assert math.isnan(value.value)
    assert value.note == "infinite: the pictures are identical"
    one = table(["a", "b"], **{"pixels.psnr": [np.inf, 30.0]})
    assert compute("psnr", evidence(one, one))[""].value == 30.0


def test_ssim_and_perceptual_distance_are_means():
    derived = table(["a", "b"], **{"pixels.ssim": [0.5, 1.0], "mobilenet_v2.perceptual": [0.2, 0.4]})
    measurements = evidence(derived, derived)
    assert compute("ssim", measurements)[""].value == 0.75
    assert compute("perceptual_distance", measurements)["mobilenet_v2"].value == pytest.approx(0.3)


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
    assert frechet(first, second) == pytest.approx(expected, rel=1e-6)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 12), st.integers(1, 30), st.integers(0, 99))
def test_frechet_distance_is_zero_for_equal_sets_and_the_square_of_a_shift(count, width, seed):
    features = np.random.default_rng(seed).normal(size=(count, width))
    assert frechet(features, features) == pytest.approx(0.0, abs=1e-6)
    assert frechet(features, features + 2.0) == pytest.approx(4.0 * width, rel=1e-6)


def test_age_and_gender_compare_the_same_judge():
    original = table(["a", "b"], **{"g.age": [30.0, 40.0], "g.male": [0.9, 0.2]})
    derived = table(["a", "b"], **{"g.age": [33.0, np.nan], "g.male": [0.4, 0.1]})
    measurements = evidence(original, derived)
    assert compute("age_difference", measurements)["g"].value == 3.0
    assert compute("gender_preservation", measurements)["g"].value == 0.5


def test_faces_without_identity_are_in_no_pair():
    embeddings = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert between(embeddings, np.array(["a", "", "b", ""], dtype=object)).tolist() == [3.0]


def test_true_acceptance_of_faces_without_identity_has_a_note():
    strangers = table([""] * 4, [[0.0], [1.0], [2.0], [3.0]])
    rates = compute("true_acceptance_rate", evidence(strangers, strangers), far=0.5, folds=2, most_pictures=10)
    assert math.isnan(rates["r"].value)
    assert (rates["r"].of, rates["r"].note) == (0, "nobody has two pictures")


@pytest.mark.parametrize(("many", "few"), [(40, 40), (40, 7), (7, 40)])
def test_frechet_distance_agrees_with_eigenvalues_for_few_and_many_faces(many, few):
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(many, 12)), draw.normal(1.0, 2.0, size=(few, 12))
    eigenvalues = np.linalg.eigvals(np.cov(x, rowvar=False) @ np.cov(y, rowvar=False)).real.clip(0)
    shift = x.mean(axis=0) - y.mean(axis=0)
    spreads = x.var(axis=0, ddof=1).sum() + y.var(axis=0, ddof=1).sum()
    expected = shift @ shift + spreads - 2 * np.sqrt(eigenvalues).sum()
    assert frechet(x, y) == pytest.approx(expected, rel=1e-6)


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
            distances.append((frechet(original, derived), frechet(derived, target)))
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
        assert compute("people_similarity", replace(own, attempts=attempts.iloc[:2]))["r"].value == pytest.approx(1.0)
        assert compute("people_similarity", replace(own, attempts=attempts))["r"].value == pytest.approx(0.0, abs=1e-6)

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
        low, high = interval(weighted_means(values, weights))
        half = 1.96 * values.std() / np.sqrt(people)
        assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.012)

    def test_more_pictures_of_the_same_people_do_not_narrow_the_interval(self):
        """The unit is the person: pictures that agree within a person add nothing."""
        offsets = np.random.default_rng(2).normal(size=8)
        widths = []
        for each in (1, 10):
            values = np.repeat(offsets, each)
            people = np.array([f"person {row // each}" for row in range(8 * each)])
            low, high = interval(weighted_means(values, people_weights(people, 500)))
            widths.append(high - low)
        assert widths[0] == pytest.approx(widths[1])

    def test_draws_survive_their_text(self):
        draws = np.array([0.25, np.nan, -1e-3])
        assert np.allclose(decoded(encoded(draws)), draws, rtol=1e-6, equal_nan=True)
