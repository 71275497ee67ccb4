"""The attribute protocol: the focal loss, the split into training and test faces, and pseudo-labels."""

import numpy as np
import pandas as pd
import pytest
import torch

from masquerade.core.images import ArchiveWriter, FaceArchive, to_uint8
from masquerade.params.protocols import AttributeSettings, AttributeSmallScale
from masquerade.pipeline import anonymization, attributes

SETTINGS = AttributeSettings(
    size=32, small_scale={"frozen_blocks": 18}, train_pictures=0, labeler_pictures=0, epochs=60, batch=8,
    learning_rate=0.01, test_share=0.25,
)  # fmt: skip
BRIGHT, RED = "attribute.Smiling", "attribute.Young"


def archive(folder, name, count=24, change=None, split=None, derived=False):
    """Plain images whose two attributes are their brightness and their color."""
    draw = np.random.default_rng(0)
    with ArchiveWriter(folder / f"{name}.zip", {"size": 32}) as out:
        for number in range(count):
            bright, red = bool(number % 2), bool(number // 2 % 2)
            color = np.array([200 if red else 90, 90, 90 if red else 200]) * (1.0 if bright else 0.4)
            picture = np.clip(color + draw.normal(0, 6, (32, 32, 3)), 0, 255).astype(np.uint8)
            row = {"id": f"f{number:02d}", "identity": f"p{number}", BRIGHT: bright, RED: red, "attribute.age": 30.0}
            row["split"] = split or ("train" if number < 16 else "test")
            row["group"] = "methods" if row["split"] == "train" else ""
            if derived:
                row["source_id"] = row["id"]
            out.add(picture if change is None else change(picture), row)
    return FaceArchive(folder / f"{name}.zip")


def accuracy(predictions, labels="annotated"):
    rows = predictions[predictions["labels"] == labels]
    return ((rows["probability"] > 0.5) == rows["label"]).mean()


def test_focal_loss_equals_the_value_worked_by_hand():
    logits = torch.tensor([[0.0, np.log(3.0)]])  # p = 0.5 and 0.75
    labels = torch.tensor([[1.0, 0.0]])
    # Lin et al. 2017, Eq. 4: -(1 - 0.5)^2 log 0.5 and -(0.75)^2 log 0.25
    expected = (0.25 * np.log(2.0) + 0.5625 * np.log(4.0)) / 2
    assert attributes.focal_loss(logits, labels).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("architecture", list(attributes.ARCHITECTURES))
def test_features_of_frozen_blocks_give_the_prediction_of_the_whole_network(architecture):
    pictures = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3)).astype(np.uint8)
    cut = attributes.Classifier(architecture, ["a"], SETTINGS, seed=0)
    whole = attributes.Classifier(
        architecture, ["a"], SETTINGS.model_copy(update={"small_scale": AttributeSmallScale()}), seed=0
    )
    np.testing.assert_allclose(cut.predict(cut.features(pictures)), whole.predict(whole.features(pictures)), atol=1e-4)


def test_only_attributes_that_anonymized_faces_keep_are_learned(tmp_path):
    originals = archive(tmp_path, "faces")
    kept = archive(tmp_path, "kept", count=16, derived=True)
    lost = archive(tmp_path, "lost", count=16, derived=True, change=lambda picture: np.full_like(picture, 128))
    nothing = pd.DataFrame({"labels": [], "id": [], "attribute": [], "label": []})
    good, bad = (attributes.evaluate_attributes(of, originals, True, nothing, SETTINGS, seed=0) for of in (kept, lost))
    assert set(good["id"]) == set(originals.select("test")["id"])
    assert accuracy(good) > 0.9
    assert accuracy(bad) < 0.8


def test_split_is_disjoint_complete_and_seeded():
    rows = pd.DataFrame({"id": [f"f{number}" for number in range(40)]})
    train, test = attributes.split_shuffled(rows, 0.2, seed=1)
    assert len(test) == 8
    assert sorted([*train["id"], *test["id"]]) == sorted(rows["id"])
    assert test["id"].tolist() == attributes.split_shuffled(rows, 0.2, seed=1)[1]["id"].tolist()
    assert test["id"].tolist() != attributes.split_shuffled(rows, 0.2, seed=2)[1]["id"].tolist()


def test_dataset_without_a_train_split_is_divided_into_train_and_test_faces(tmp_path):
    originals = archive(tmp_path, "wild", split="test")
    predictions = attributes.evaluate_attributes(
        archive(tmp_path, "out", split="test", derived=True), originals, False,
        pd.DataFrame({"labels": [], "id": [], "attribute": [], "label": []}), SETTINGS, seed=0,
    )  # fmt: skip
    assert predictions["id"].nunique() == 6  # a quarter of 24


def test_pseudo_labels_are_predicted_on_originals_and_used_in_training_and_test(tmp_path):
    originals = archive(tmp_path, "faces")
    labels, quality = attributes.draw_pseudo_labels(originals, {"faces": originals}, SETTINGS, seed=0)
    assert quality["pseudo_a.faces"]["accuracy"] > 0.8
    assert quality["pseudo_a.faces"]["faces"] == 8  # the quality excludes train faces
    assert set(labels["labels"]) == {"pseudo_a", "pseudo_b"}
    assert set(labels["id"]) == set(originals.index["id"])
    flipped = labels.assign(label=~labels["label"].astype(bool))
    predictions = attributes.evaluate_attributes(
        archive(tmp_path, "kept", count=16, derived=True), originals, True, flipped, SETTINGS, seed=0
    )
    truth = predictions[predictions["labels"] == "annotated"].set_index(["id", "attribute"])["label"]
    pseudo = predictions[predictions["labels"] == "pseudo_a"].set_index(["id", "attribute"])["label"]
    assert (truth.loc[pseudo.index] != pseudo).mean() > 0.9  # the (wrong) prediction on the originals
    assert accuracy(predictions, "pseudo_a") > 0.8  # the classifier learns it


def test_pseudo_labels_of_faces_without_annotations_have_no_quality(tmp_path):
    annotated = archive(tmp_path, "faces")
    with ArchiveWriter(tmp_path / "wild.zip", {"size": 32}) as out:
        known = annotated.select("test")
        for picture, row in zip(to_uint8(annotated.load(rows=known).images), known.to_dict("records"), strict=True):
            out.add(picture, {"id": f"wild-{row['id']}", "identity": "", "split": "test"})
    both = {"faces": annotated, "wild": FaceArchive(tmp_path / "wild.zip")}
    labels, quality = attributes.draw_pseudo_labels(annotated, both, SETTINGS, seed=0)
    assert set(quality) == {"pseudo_a.faces", "pseudo_b.faces"}
    assert len(labels[labels["dataset"] == "wild"]) > 0


def test_subset_of_a_split_is_the_same_for_every_method():
    rows = pd.DataFrame({"id": [f"f{number}" for number in range(30)]})
    some = anonymization.select_subset(rows, 7)
    assert len(some) == 7
    assert some["id"].tolist() == anonymization.select_subset(rows.iloc[::-1], 7).sort_index()["id"].tolist()
    assert anonymization.select_subset(rows, 0) is rows
