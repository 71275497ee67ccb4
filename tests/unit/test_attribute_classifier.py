"""The attribute classifier: class weights and figures by hand, training, and its judge, its only user."""

from functools import partial

import numpy as np
import pytest
import torch

import kit
from drawnpeople.attributes import NAMES
from masquerade.backbones.attribute_classifier.training import (
    Classifier,
    StridedVGG,
    load,
    measure_agreement,
    weigh_classes,
)
from masquerade.core import discovery
from masquerade.core.annotations import ATTRIBUTES
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.images import to_float
from masquerade.training import checkpoints


def test_network_has_the_convolutions_of_vgg_16_and_five_of_them_halve_the_size():
    with torch.device("meta"):
        network = StridedVGG(9, 192)
        layers = [part for part in network.features if isinstance(part, torch.nn.Conv2d)]
        assert network(torch.empty(2, 3, 192, 192)).shape == (2, 9)
    assert [layer.out_channels for layer in layers] == [64] * 2 + [128] * 2 + [256] * 3 + [512] * 6  # Table 1, column D
    assert [number for number, layer in enumerate(layers) if layer.stride == (2, 2)] == [0, 2, 4, 7, 10]
    assert network.head[-1].in_features == 512 * 6 * 6


def test_network_gets_the_crop_at_its_own_size():
    classifier = Classifier((0.25, 0.5, 0.75, 1.0), 16, [4, 4], [1, 1], 0.0)
    picture = torch.zeros(1, 3, 64, 64)
    picture[..., 32:, 16:48] = 1.0
    torch.testing.assert_close(classifier.prepared(picture), torch.ones(1, 3, 16, 16))
    picture[..., :32, :] = 9.0  # larger than the crop
    assert classifier.prepared(picture).max() == 1.0


def test_drawn_faces_are_annotated_with_every_attribute():
    assert set(ATTRIBUTES) <= set(NAMES)


def test_both_classes_have_equal_weight_when_balanced():
    labels = np.array([[True, True], [False, True], [False, False], [False, False]])
    weights = weigh_classes(labels, 1.0).numpy()
    np.testing.assert_allclose(weights[:, 0], [2, 2 / 3, 2 / 3, 2 / 3])  # one of four: 1/2 of the weight for each class
    np.testing.assert_allclose(weights[:, 1], 1.0)
    np.testing.assert_allclose(weigh_classes(labels, 0.0), 1.0)
    np.testing.assert_allclose(weigh_classes(labels, 0.5).mean(0), 1.0)
    assert torch.isfinite(weigh_classes(np.zeros((3, 2), bool), 1.0)).all(), "of an attribute that no face has"


def test_figures_equal_values_worked_by_hand():
    true, predicted = np.zeros((2, 4, len(ATTRIBUTES)), bool)
    male, young = ATTRIBUTES.index("Male"), ATTRIBUTES.index("Young")
    # the only positive is detected, and one of the three negatives is a false positive
    true[0, male], predicted[:2, male] = True, True
    true[:2, young] = True  # always predicts no
    figures = measure_agreement(ATTRIBUTES, true, predicted, "faces.zip")
    assert figures["balanced_accuracy.Male"] == pytest.approx((1 + 2 / 3) / 2)
    assert figures["balanced_accuracy.Young"] == 0.5
    assert figures["balanced_accuracy"] == pytest.approx((5 / 6 + 1 / 2) / 2)
    assert figures["worst_balanced_accuracy"] == 0.5
    assert figures["accuracy.Male"] == 0.75
    assert figures["accuracy.Smiling"] == 1.0
    assert "balanced_accuracy.Smiling" not in figures  # no face smiles
    assert (figures["attributes"], figures["pictures"]) == (2, 4)


def test_figures_of_faces_with_identical_attributes_are_refused():
    same = np.zeros((3, len(ATTRIBUTES)), bool)
    with pytest.raises(ParameterError, match="give it more people"):
        measure_agreement(ATTRIBUTES, same, same, "faces.zip")


@pytest.fixture
def job(tmp_path):
    """Sixteen images: bright if Male, red if Young, with a white bar if Smiling; the other attributes are random."""
    draw, pictures, rows = np.random.default_rng(0), [], []
    for number in range(16):
        known = dict.fromkeys(ATTRIBUTES, False) | {"Wavy_Hair": bool(draw.random() < 0.5)}
        known |= {name: bool(number >> place & 1) for place, name in enumerate(("Male", "Young", "Smiling"))}
        picture = np.full((32, 32, 3), 170 if known["Male"] else 60) + draw.normal(0, 8, (32, 32, 3))
        picture[..., 1:] *= 0.5 if known["Young"] else 1.0
        picture[20:26, 8:24] = 255 if known["Smiling"] else 0
        pictures.append(picture)
        rows.append({f"attribute.{name}": value for name, value in known.items()})
    kit.archive(tmp_path / "faces.zip", pictures, rows=rows)
    return partial(kit.job, tmp_path)


SMALL = {
    "published": "",
    "input_size": 32, "widths": [4, 8, 8], "units": [1, 2, 1],
    "dropout": 0.2, "steps": 6, "batch": 8, "small_scale": {"optimizer": "muon"},
    "learning_rate": 0.02, "floor_balanced_accuracy": 0.6,
}  # fmt: skip


def backbone(**changes):
    cls = discovery.load("backbones", "attribute_classifier")
    return cls(cls.Params(**{**SMALL, **changes}))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_classifier_learns_the_attributes_of_the_pictures(job, optimizer):
    curve, learning = kit.Curve(), backbone(steps=80, small_scale={"optimizer": optimizer})
    learning.train(job(log=curve))
    assert curve.of("loss")[-1] < 0.8 * curve[0]["loss"]
    figures = learning.quality(job())
    assert set(learning.floors()) == {"balanced_accuracy"} <= set(figures)
    assert figures["balanced_accuracy.Male"] > 0.7


def test_faces_without_annotations_are_refused(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(1), rows=[{"attribute.Bald": True}])
    with pytest.raises(ParameterError, match=r"not every face is annotated .*attribute\.Smiling.*matrix\.train_on"):
        backbone().train(kit.job(tmp_path))


def test_the_classifier_learns_the_attributes_that_the_faces_have(tmp_path):
    rows = [{"attribute.Male": bool(number % 2), "attribute.Smiling": number < 2} for number in range(4)]
    kit.archive(tmp_path / "faces.zip", kit.noise(4), rows=rows)
    job = kit.job(tmp_path, name="attribute_classifier")
    backbone().train(job)
    cls = discovery.load("judges", "attribute_classifier")
    answers = cls(cls.Params(), {"attribute_classifier": job.checkpoint}).measure(to_float(kit.noise(2)))
    assert list(answers) == list(cls.quantities)
    known = {name for name, values in answers.items() if np.isfinite(values).all()}
    assert known == {"male", "smiling"}
    assert all(np.isnan(values).all() for name, values in answers.items() if name not in known)


def test_checkpoint_of_other_attributes_is_refused(tmp_path):
    path = tmp_path / "bald.safetensors"
    metadata = {"crop": (0.0, 0.0, 1.0, 1.0), "input_size": 16, "widths": [4], "units": [1], "dropout": 0.0}
    checkpoints.save_checkpoint(path, {"classifier": Classifier(**metadata)}, {**metadata, "attributes": ["Bald"]})
    with pytest.raises(CheckpointError, match=r"is of the attributes Bald, and allowed are Male"):
        load(path)


def test_judge_gives_the_probability_of_each_attribute_whatever_the_batch(job):
    backbone().train(job())
    checkpoint = job().checkpoint
    cls = discovery.load("judges", "attribute_classifier")
    judge = cls(cls.Params(), {"attribute_classifier": checkpoint})
    images = to_float(np.random.default_rng(1).integers(0, 256, (5, 40, 40, 3), dtype=np.uint8))
    probabilities = judge.measure(images, images[::-1].copy())
    assert list(probabilities) == [name.lower() for name in ATTRIBUTES] == list(cls.quantities)
    with torch.inference_mode():
        expected = 1 / (1 + np.exp(-load(checkpoint)(torch.from_numpy(images)).numpy()))
    for place, values in enumerate(probabilities.values()):
        assert values.dtype == np.float32
        assert values.shape == (5,)
        np.testing.assert_allclose(values, expected[:, place], atol=1e-5)
    np.testing.assert_allclose(judge.measure(images[3:4])["male"], probabilities["male"][3:4], atol=1e-5)


def test_judge_without_its_checkpoint_names_the_file_it_needs():
    cls = discovery.load("judges", "attribute_classifier")
    with pytest.raises(CheckpointError, match="needs the checkpoint of the backbone 'attribute_classifier'"):
        cls(cls.Params(), {})
