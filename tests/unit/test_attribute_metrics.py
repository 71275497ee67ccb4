"""Metrics of attributes, computed by hand."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score

from masquerade.core import discovery
from masquerade.core.errors import ProtocolError
from masquerade.metrics import Evidence
from masquerade.pipeline import evaluation
from metric_evidence import compute, table


def attributes(labels, **columns):
    """{attribute: [(label, probability), ...]} of images p0, p1, ... as predictions."""
    rows = [
        (f"p{row}", labels, name, bool(label), probability)
        for name, values in columns.items()
        for row, (label, probability) in enumerate(values)
    ]
    frame = pd.DataFrame(rows, columns=["id", "labels", "attribute", "label", "probability"])
    return frame.assign(learned_from=16)


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
    assert accuracies["combined"].note == "threshold 0.5; learned from 16 faces"


def test_balanced_accuracy_leaves_out_attributes_that_do_not_vary():
    accuracies = accuracy(KNOWN_FRAME)
    assert accuracies["inner.balanced"].value == 0.75
    assert accuracies["combined.balanced"].value == pytest.approx((0.75 + 1.0) / 2)
    assert accuracies["combined.balanced"].note.endswith("2 of 3 attributes vary")
    assert math.isnan(accuracies["outer.balanced"].value)


def test_pseudo_labels_have_their_own_values_and_an_agreement_with_annotations():
    pseudo = attributes("pseudo_b", Male=[(1, 0.9), (0, 0.9), (0, 0.1), (0, 0.1)])
    accuracies = accuracy(KNOWN_FRAME, pseudo)
    assert (accuracies["Male"].value, accuracies["pseudo_b.Male"].value) == (0.75, 0.75)
    assert accuracies["pseudo_b.combined"].note.endswith("0.750 of the labels are right")


def test_attribute_that_is_not_labeled_has_a_reason():
    accuracies = accuracy(KNOWN_FRAME)
    assert math.isnan(accuracies["Sideburns"].value)
    assert accuracies["Sideburns"].note == "these faces have no such label"
    assert (accuracies["Sideburns"].over, accuracies["Sideburns"].of) == (0, 4)


def test_predictions_are_read_and_a_bad_file_is_named(tmp_path):
    from masquerade.core.errors import ArchiveError
    from masquerade.pipeline import evaluation

    path = tmp_path / "0.parquet"
    with pytest.raises(ArchiveError, match=f"{path} is missing"):
        evaluation.read_predictions(path)
    path.write_bytes(b"no parquet")
    with pytest.raises(ArchiveError, match=f"{path} is damaged"):
        evaluation.read_predictions(path)
    table(["a"]).to_parquet(path)  # parquet, but measurements
    with pytest.raises(ArchiveError, match="holds no predictions of attributes"):
        evaluation.read_predictions(path)
    KNOWN_FRAME.to_parquet(path)
    assert repr(accuracy(evaluation.read_predictions(path))) == repr(accuracy(KNOWN_FRAME)), (
        "as text: NaN is not equal to itself"
    )


KEYWORDS = {"gender": ["Male"], "age": ["Young"], "color": ["Blond_Hair", "Black_Hair", "Gray_Hair"]}
NAMES = [name for names in KEYWORDS.values() for name in names]


def make_faces(annotated=None, **shares):
    """Measurements of judge `c`: one row per face, with the probability of each attribute."""
    count = len(next(iter(shares.values())))
    tree = {"id": [f"f{row}" for row in range(count)], "identity": "p", "status": "ok"}
    known = {f"attribute.{name}": np.array(values, float) for name, values in (annotated or {}).items()}
    return pd.DataFrame(tree | {f"c.{name}": np.array(values, float) for name, values in shares.items()} | known)


def rates(original, derived, keywords=KEYWORDS, mean=("gender", "age")):
    cls = discovery.load("metrics", "attribute_preservation_rate")
    metric = cls(cls.Params(keywords=keywords, mean=list(mean)))
    return metric.compute(Evidence(original, derived, original, ("c",)))


def shares(male, young, *hair):
    return dict(zip((name.lower() for name in NAMES), (male, young, *hair), strict=True))


HAIR = ([0.1, 0.2, 0.4, 0.3], [0.8, 0.3, 0.3, 0.9], [0.3, 0.9, 0.2, 0.2])  # the most probable: 1, 2, 0, 1
LABELS = {
    "Male": [1, 1, 0, 0], "Young": [1, 0, 0, 0],
    "Blond_Hair": [0, 0, 1, 0], "Black_Hair": [1, 0, 0, 0], "Gray_Hair": [0, 1, 0, 0],  # the last is bald
}  # fmt: skip
ORIGINAL = make_faces(LABELS, **shares([0.9, 0.4, 0.1, 0.2], [0.9, 0.1, 0.6, 0.2], *HAIR))
DERIVED = make_faces(None, **shares([0.9, 0.9, 0.6, 0.4], [0.1, 0.1, 0.1, 0.5], *HAIR))


def test_rates_of_hand_worked_faces_are_against_their_annotations():
    values = rates(ORIGINAL, DERIVED)
    assert values["c.gender"].value == 3 / 4  # 0.6 is male, and the annotation says no
    assert values["c.age"].value == 2 / 4  # the first is no longer young; 0.5 is young
    assert values["c"].value == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert values["c.color"].value == 1.0
    assert (values["c.color"].over, values["c.color"].of) == (3, 4), "a bald face has no hair color"
    assert values["c.gender"].note == values["c"].note == "against the annotation of the original"
    assert values["c"].spread is None


def test_change_is_measured_against_the_prediction_on_the_original():
    values = rates(ORIGINAL, DERIVED)
    assert values["c.gender.changed"].value == 2 / 4  # the second and the third
    assert values["c.age.changed"].value == 3 / 4  # all but the second
    assert values["c.changed"].value == pytest.approx(5 / 8)
    assert (values["c.color.changed"].value, values["c.color.changed"].over) == (0.0, 4)


def test_balanced_rate_of_originals_with_one_content_is_nan():
    labels = LABELS | {"Male": [1, 1, 1, 1]}
    values = rates(make_faces(labels, **shares([1, 1, 1, 1], [1, 0, 0, 0], *HAIR)), DERIVED)
    assert np.isnan(values["c.gender.balanced"].value)
    assert np.isnan(values["c.balanced"].value)
    assert values["c.balanced"].note == "all originals that count have the same content"
    assert values["c.age.balanced"].value == pytest.approx((0 + 2 / 3) / 2)


def test_without_annotations_the_prediction_on_the_original_counts():
    bare = ORIGINAL[[name for name in ORIGINAL if not name.startswith("attribute.")]]
    values = rates(bare, DERIVED)
    assert values["c.gender"].value == 1 - values["c.gender.changed"].value
    assert (values["c.color"].value, values["c.color"].over) == (1.0, 4)
    assert "has no annotations" in values["c"].note


def test_refused_face_counts_in_the_denominator_only():
    derived = DERIVED.copy()
    derived.loc[0, [f"c.{name.lower()}" for name in NAMES]] = np.nan
    values = rates(ORIGINAL, derived)
    assert (values["c.gender"].value, values["c.gender"].over, values["c.gender"].of) == (2 / 3, 3, 4)
    assert (values["c"].over, values["c"].of, values["c.changed"].over) == (3, 4, 3)


def test_judge_with_only_some_of_the_attributes_has_no_rate():
    assert rates(ORIGINAL, DERIVED.drop(columns="c.young")) == {}


def test_originals_of_an_older_measurement_are_refused_with_advice():
    with pytest.raises(ProtocolError, match=r"no 'c\.young'.*Measure the originals again"):
        rates(ORIGINAL.drop(columns="c.young"), DERIVED)


def test_mean_over_an_unknown_keyword_is_refused():
    with pytest.raises(ValueError, match="mean names length; keywords are gender, age, color"):
        rates(ORIGINAL, DERIVED, mean=("gender", "length"))


def test_recovered_faces_are_compared_with_the_originals():
    """A recovery rate (LReOrg, Table 8): two of three recovered faces have the original's gender."""
    anonymized = DERIVED.assign(source_id=DERIVED["id"], **{"c.male": 1 - ORIGINAL["attribute.Male"]})
    rows = [0, 2, 3]
    tried = anonymized.iloc[rows].assign(attempt="saved", number=0, **{"c.male": [0.9, 0.1, 0.8]})
    cls = discovery.load("metrics", "attribute_preservation_rate")
    metric = {"apr": cls(cls.Params(keywords=KEYWORDS, mean=["gender"]))}
    measurements = Evidence(ORIGINAL, anonymized, ORIGINAL, ("c",))
    assert evaluation.evaluate(metric, measurements)["apr"]["c.gender"]["value"] == 0.0
    values = evaluation.evaluate_attempts(metric, replace(measurements, recoveries=tried))
    value, before = (values[name]["apr"]["c.gender"] for name in ("saved", "anonymized"))
    assert (value["value"], value["over"], value["of"]) == (pytest.approx(2 / 3), 3, 3)
    assert (before["value"], before["over"], before["of"]) == (0.0, 3, 3), "the same three faces before recovery"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 40), present=st.floats(0.1, 0.9))
def test_rates_equal_those_of_scikit_learn(seed, count, present):
    draw = np.random.default_rng(seed)
    labels = {name: (draw.random(count) < present).astype(float) for name in ("Male", "Young")}
    hair = np.eye(3)[draw.integers(0, 3, count)].T
    labels |= dict(zip(NAMES[2:], hair, strict=True))
    before, after = (make_faces(labels, **{name.lower(): draw.random(count) for name in NAMES}) for _ in range(2))
    values = rates(before, after)
    for keyword, names in KEYWORDS.items():
        predicted = np.stack([after[f"c.{name.lower()}"] for name in names])
        true = np.stack([labels[name] for name in names])
        binary = len(names) == 1
        predicted, true = (predicted[0] > 0.5, true[0] > 0.5) if binary else (predicted.argmax(0), true.argmax(0))
        assert values[f"c.{keyword}"].value == pytest.approx(accuracy_score(true, predicted))
        if len(set(true)) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a predicted color may be absent from the originals
                assert values[f"c.{keyword}.balanced"].value == pytest.approx(balanced_accuracy_score(true, predicted))
