"""Accuracies of attributes, worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from masquerade.metrics import Evidence
from metric_evidence import compute, evidence, table


def attributes(labels, **columns):
    """{attribute: [(label, probability), ...]} of pictures p0, p1, ... as predictions."""
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


def test_constant_prediction_has_a_high_accuracy_and_a_low_balanced_one():
    accuracies = accuracy(attributes("annotated", Bald=[(1, 0.1)] + [(0, 0.1)] * 9))
    assert (accuracies["Bald"].value, accuracies["outer.balanced"].value) == (0.9, 0.5)


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
