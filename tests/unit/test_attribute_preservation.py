"""The attribute preservation rate: hand-worked faces, annotations before predictions, lopsided classes."""

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

KEYWORDS = {"gender": ["Male"], "age": ["Young"], "color": ["Blond_Hair", "Black_Hair", "Gray_Hair"]}
NAMES = [name for names in KEYWORDS.values() for name in names]


def table(annotated=None, **shares):
    """Measurements of judge `c`: a row a face, of each attribute its probability."""
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
ORIGINAL = table(LABELS, **shares([0.9, 0.4, 0.1, 0.2], [0.9, 0.1, 0.6, 0.2], *HAIR))
DERIVED = table(None, **shares([0.9, 0.9, 0.6, 0.4], [0.1, 0.1, 0.1, 0.5], *HAIR))


def test_rates_of_hand_worked_faces_are_against_their_annotations():
    found = rates(ORIGINAL, DERIVED)
    assert found["c.gender"].value == 3 / 4  # 0.6 is male, and the annotation says no
    assert found["c.age"].value == 2 / 4  # the first is no longer young; 0.5 is young
    assert found["c"].value == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert found["c.color"].value == 1.0
    assert (found["c.color"].over, found["c.color"].of) == (3, 4), "a bald face has no hair colour to keep"
    assert found["c.gender"].note == found["c"].note == "against the annotation of the original"
    assert found["c"].spread is None


def test_change_is_against_what_the_judge_says_of_the_original():
    found = rates(ORIGINAL, DERIVED)
    assert found["c.gender.changed"].value == 2 / 4  # the second and the third
    assert found["c.age.changed"].value == 3 / 4  # all but the second
    assert found["c.changed"].value == pytest.approx(5 / 8)
    assert (found["c.color.changed"].value, found["c.color.changed"].over) == (0.0, 4)


def test_originals_against_themselves_have_the_accuracy_of_the_judge_and_no_change():
    found = rates(ORIGINAL, ORIGINAL)
    assert found["c.gender"].value == 3 / 4  # a man of 0.4
    assert found["c.age"].value == 3 / 4
    assert all(value.value == 0 for part, value in found.items() if part.endswith("changed"))


def test_always_saying_no_to_a_rare_attribute_does_not_look_good():
    labels = {name: [0.0] * 9 + [1.0] for name in NAMES}
    original = table(labels, **{name.lower(): [0.1] * 9 + [0.9] for name in NAMES})
    never = table(None, **{name.lower(): [0.0] * 10 for name in NAMES})
    found = rates(original, never)
    assert found["c.age"].value == 0.9
    assert found["c.age.balanced"].value == 0.5
    assert found["c.balanced"].value == 0.5
    assert "9 and 1 faces of each content" in found["c.age.balanced"].note


def test_balanced_rate_of_originals_that_are_all_alike_is_none():
    labels = LABELS | {"Male": [1, 1, 1, 1]}
    found = rates(table(labels, **shares([1, 1, 1, 1], [1, 0, 0, 0], *HAIR)), DERIVED)
    assert np.isnan(found["c.gender.balanced"].value)
    assert np.isnan(found["c.balanced"].value)
    assert found["c.balanced"].note == "all originals that count have the same content"
    assert found["c.age.balanced"].value == pytest.approx((0 + 2 / 3) / 2)


def test_without_annotations_the_prediction_on_the_original_counts():
    bare = ORIGINAL[[name for name in ORIGINAL if not name.startswith("attribute.")]]
    found = rates(bare, DERIVED)
    assert found["c.gender"].value == 1 - found["c.gender.changed"].value
    assert (found["c.color"].value, found["c.color"].over) == (1.0, 4)
    assert "has no annotations" in found["c"].note


def test_a_keyword_that_is_annotated_in_part_is_compared_with_predictions():
    """Of three colours one is not annotated: gender is counted against annotations, color is not."""
    found = rates(ORIGINAL.drop(columns="attribute.Gray_Hair"), DERIVED)
    assert found["c.gender"].note == "against the annotation of the original"
    assert "has no annotations" in found["c.color"].note


def test_refused_face_is_in_the_denominator_alone():
    derived = DERIVED.copy()
    derived.loc[0, [f"c.{name.lower()}" for name in NAMES]] = np.nan
    found = rates(ORIGINAL, derived)
    assert (found["c.gender"].value, found["c.gender"].over, found["c.gender"].of) == (2 / 3, 3, 4)
    assert (found["c"].over, found["c"].of, found["c.changed"].over) == (3, 4, 3)


def test_judge_that_knows_a_part_of_the_attributes_says_nothing():
    assert rates(ORIGINAL, DERIVED.drop(columns="c.young")) == {}


def test_originals_of_an_older_measurement_are_refused_with_advice():
    with pytest.raises(ProtocolError, match=r"no 'c\.young'.*Measure the originals again"):
        rates(ORIGINAL.drop(columns="c.young"), DERIVED)


def test_mean_of_a_keyword_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="mean names length; keywords are gender, age, color"):
        rates(ORIGINAL, DERIVED, mean=("gender", "length"))


def test_what_was_brought_back_is_counted_against_the_original():
    """A recovery rate (LReOrg, Table 8): two of three recovered faces have the original's gender."""
    anonymized = DERIVED.assign(source_id=DERIVED["id"], **{"c.male": 1 - ORIGINAL["attribute.Male"]})
    rows = [0, 2, 3]
    tried = anonymized.iloc[rows].assign(attempt="saved", number=0, **{"c.male": [0.9, 0.1, 0.8]})
    cls = discovery.load("metrics", "attribute_preservation_rate")
    metric = {"apr": cls(cls.Params(keywords=KEYWORDS, mean=["gender"]))}
    seen = Evidence(ORIGINAL, anonymized, ORIGINAL, ("c",))
    assert evaluation.evaluate(metric, seen)["apr"]["c.gender"]["value"] == 0.0
    value = evaluation.evaluate_attempts(metric, replace(seen, attempts=tried))["saved"]["apr"]["c.gender"]
    assert (value["value"], value["over"], value["of"]) == (pytest.approx(2 / 3), 3, 3)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.integers(2, 40), present=st.floats(0.1, 0.9))
def test_rates_are_those_of_scikit_learn(seed, count, present):
    draw = np.random.default_rng(seed)
    labels = {name: (draw.random(count) < present).astype(float) for name in ("Male", "Young")}
    hair = np.eye(3)[draw.integers(0, 3, count)].T
    labels |= dict(zip(NAMES[2:], hair, strict=True))
    before, after = (table(labels, **{name.lower(): draw.random(count) for name in NAMES}) for _ in range(2))
    found = rates(before, after)
    for keyword, names in KEYWORDS.items():
        said = np.stack([after[f"c.{name.lower()}"] for name in names])
        true = np.stack([labels[name] for name in names])
        said, true = (said[0] > 0.5, true[0] > 0.5) if len(names) == 1 else (said.argmax(0), true.argmax(0))
        assert found[f"c.{keyword}"].value == pytest.approx(accuracy_score(true, said))
        if len(set(true)) > 1:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a predicted colour that no original has
                assert found[f"c.{keyword}.balanced"].value == pytest.approx(balanced_accuracy_score(true, said))
