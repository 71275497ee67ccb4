"""The face parser: the published layout, mirrored sides, hand-worked losses and figures, training, adoption."""

import math
from functools import partial

import numpy as np
import pytest
import safetensors.torch
import torch

import kit
from drawnpeople.labels import LABEL
from masquerade.backbones._views import Views, mirror_masks
from masquerade.backbones.attribute_classifier.training import Classifier
from masquerade.backbones.landmarks.training import Landmarker, LandmarkNet
from masquerade.backbones.parsing.training import (
    Parser,
    compute_hard_cross_entropy,
    count_confusion,
    map_mirrored_classes,
    measure_agreement,
)
from masquerade.backbones.recognition.training import Recognizer
from masquerade.core import discovery
from masquerade.core.annotations import ATTRIBUTES, CLASSES, FACE
from masquerade.core.errors import ArchiveError
from masquerade.networks.bisenet import BiSeNet
from masquerade.networks.ir_se import IRSE
from masquerade.training import checkpoints


@pytest.mark.parametrize(("stride", "finest"), [(8, 8), (4, 16), (2, 32)])
def test_stride_is_that_of_the_finest_features(stride, finest):
    network = BiSeNet(19, 8, stride).eval()
    with torch.inference_mode():
        fine, up8, up16 = network.cp(torch.zeros(1, 3, 64, 64))
        assert [part.shape for part in network(torch.zeros(2, 3, 64, 48))] == 3 * [(2, 19, 64, 48)]
    assert [part.shape[-1] for part in (fine, up8, up16)] == [finest, finest, finest // 2]


def small_parser(size=32):
    torch.manual_seed(0)
    return Parser(BiSeNet(19, 8, 2), size, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]).eval()


def test_network_receives_pictures_normalized_as_imagenet():
    images = torch.stack([torch.full((3, 8, 8), -1.0), torch.full((3, 8, 8), 1.0)])
    prepared = small_parser(16).prepared(images)
    assert prepared.shape == (2, 3, 16, 16)
    assert prepared[0, :, 0, 0].tolist() == pytest.approx([-0.485 / 0.229, -0.456 / 0.224, -0.406 / 0.225])
    assert prepared[1, :, 0, 0].tolist() == pytest.approx([0.515 / 0.229, 0.544 / 0.224, 0.594 / 0.225])


def test_face_is_the_probability_of_the_classes_inside_of_the_outline():
    parser = small_parser()
    images = torch.rand(1, 3, 24, 24) * 2 - 1
    face = parser.face(images)
    probabilities = parser(images).softmax(1)[0]
    assert face.shape == (1, 1, 24, 24)
    outside = sum(probabilities[k] for k, name in enumerate(CLASSES) if name not in FACE)
    torch.testing.assert_close(face[0, 0], 1 - outside)
    assert {"hair", "neck", "cloth", "hat", "background", "l_ear", "r_ear"} & set(FACE) == set()


def test_labels_equal_those_of_the_archive_masks():
    assert {name: number for number, name in enumerate(CLASSES)} == LABEL


def test_mirroring_swaps_sides_and_twice_restores_the_masks():
    partner = map_mirrored_classes()
    named = {CLASSES[k]: CLASSES[other] for k, other in enumerate(partner.tolist()) if k != other}
    sides = {"l_brow": "r_brow", "l_eye": "r_eye", "l_ear": "r_ear"}
    assert named == sides | {right: left for left, right in sides.items()}
    masks = torch.randint(0, 19, (3, 5, 7))
    assert torch.equal(mirror_masks(mirror_masks(masks, partner), partner), masks)


def still(mirrored, count=1):
    """Views that mirror the images, or change nothing."""
    place = torch.eye(2, 3).repeat(count, 1, 1)
    return Views(torch.tensor([mirrored] * count), place, torch.ones(count, 1, 1, 1), torch.zeros(count, 1, 1, 1))


@pytest.fixture(scope="module")
def drawn():
    """Six drawn faces of 64 pixels: images, masks, landmarks."""
    cls = discovery.load("faces", "synthetic_hq")
    block = {
        "identities": {"train": 3, "validation": 0, "test": 0},
        "pictures_per_identity": {"train": 2, "validation": 2, "test": 2},
        "supersampling": 1,
    }  # fmt: skip
    return list(cls(cls.Params(**block)).records(64, seed=0, workers=1))


def test_mirrored_drawn_face_has_its_left_on_the_left(drawn):
    masks = torch.from_numpy(np.stack([record.mask for record in drawn]))
    views = still(True, len(drawn)).masks(masks, map_mirrored_classes()).numpy()
    columns = np.arange(64)
    for true, mirrored in zip(masks.numpy(), views, strict=True):
        for left, right in (("l_eye", "r_eye"), ("l_brow", "r_brow")):
            on_left, on_right = mirrored == CLASSES.index(left), mirrored == CLASSES.index(right)
            assert (on_left.sum(0) * columns).sum() / on_left.sum() < (on_right.sum(0) * columns).sum() / on_right.sum()
            assert on_left.sum() == (true == CLASSES.index(right)).sum()
        assert (mirrored == CLASSES.index("l_lip")).sum() == (true == CLASSES.index("l_lip")).sum()


def test_views_move_the_mask_as_they_move_the_picture(drawn):
    """An image that shows its own mask still shows it in every view."""
    masks = torch.from_numpy(np.stack([record.mask for record in drawn]))
    nose = masks == CLASSES.index("nose")
    pictures = (255 * nose[..., None].expand(-1, -1, -1, 3)).to(torch.uint8)
    draw = np.random.default_rng(0)
    views = Views.sampled(draw, len(drawn))
    assert 0 < views.mirrored.sum() < len(drawn)
    plain = Views(views.mirrored, views.place, torch.ones(6, 1, 1, 1), torch.zeros(6, 1, 1, 1))
    bright = plain.images(pictures)[:, 0] > 0
    moved = views.masks(masks, map_mirrored_classes()) == CLASSES.index("nose")
    overlap = (bright & moved).sum() / (bright | moved).sum()
    assert overlap > 0.8
    assert (nose & moved).sum() / (nose | moved).sum() < overlap - 0.1  # the views moved the nose


def test_still_view_changes_no_pixel():
    pictures = torch.randint(0, 256, (2, 9, 9, 3), dtype=torch.uint8)
    images = still(False, 2).images(pictures)
    torch.testing.assert_close(images, pictures.permute(0, 3, 1, 2) / 127.5 - 1.0, atol=1e-5, rtol=0)
    torch.testing.assert_close(still(True, 2).images(pictures), images.flip(-1), atol=1e-5, rtol=0)


def test_hard_pixels_of_hand_worked_probabilities():
    """Four pixels whose true class gets 0.9, 0.8, 0.6 and 0.2: with 0.7 the last two are hard."""
    true = torch.tensor([0.9, 0.8, 0.6, 0.2])
    logits = torch.stack([true, 1 - true]).log().reshape(1, 2, 2, 2)
    labels = torch.zeros(1, 2, 2, dtype=torch.long)
    hard = -(math.log(0.6) + math.log(0.2)) / 2
    assert compute_hard_cross_entropy(logits, labels, 0.7, 0.25).item() == pytest.approx(hard, rel=1e-5)
    at_least_three = -(math.log(0.8) + math.log(0.6) + math.log(0.2)) / 3
    assert compute_hard_cross_entropy(logits, labels, 0.7, 0.75).item() == pytest.approx(at_least_three, rel=1e-5)
    plain = torch.nn.functional.cross_entropy(logits, labels).item()
    assert compute_hard_cross_entropy(logits, labels, 1.0, 0.25).item() == pytest.approx(plain, rel=1e-5)
    assert compute_hard_cross_entropy(logits, labels, 0.1, 0.0).item() == pytest.approx(-math.log(0.2), rel=1e-5)


def test_agreement_of_hand_worked_masks():
    background, skin, hair, nose = (CLASSES.index(name) for name in ("background", "skin", "hair", "nose"))
    true = np.array([[[background, background, skin], [skin, skin, nose]]], np.uint8)
    predicted = np.array([[[background, skin, skin], [skin, hair, skin]]], np.uint8)
    scores = measure_agreement(count_confusion(true, predicted))
    assert scores["iou.background"] == 1 / 2  # one right; two are background in truth, one of them is predicted
    assert scores["iou.skin"] == 2 / 5  # two right; three in truth, four predicted
    assert scores["iou.nose"] == 0.0
    assert "iou.hair" not in scores  # no true pixel is hair: the class has no score
    assert scores["miou"] == pytest.approx((1 / 2 + 2 / 5 + 0) / 3)
    assert scores["pixel_accuracy"] == 3 / 6
    assert scores["iou.face"] == 3 / 5  # truth: 4 pixels of skin or nose; predicted: 4; three shared


@pytest.fixture
def job(tmp_path):
    """To learn from twelve images, each of one bright disc on a dark background; the label of the disc is skin."""
    pictures, masks = kit.discs()
    kit.archive(tmp_path / "faces.zip", pictures, masks=masks)
    return partial(kit.job, tmp_path)


SMALL = {
    "published": "", "input_size": 32, "width": 8, "stride": 2, "steps": 6, "batch": 4, "learning_rate": 0.01,
    "small_scale": {"kernel_rate": 0.01, "balance": 0.25},
    "weight_decay": 0.0, "auxiliary": 1.0, "ohem_probability": 0.7, "ohem_share": 0.0625,
    "floor_miou": 0.4, "floor_accuracy": 0.5,
}  # fmt: skip


def backbone(**changes):
    cls = discovery.load("backbones", "parsing")
    return cls(cls.Params(**{**SMALL, **changes}))


def test_trained_parser_predicts_the_masks(job):
    curve, learning = kit.Curve(), backbone(steps=90, auxiliary=0.0)
    learning.train(job(log=curve))
    assert "auxiliary" not in curve[0]
    figures = learning.quality(job())
    assert figures["pictures"] == 4
    assert figures["miou"] > 0.85 < figures["pixel_accuracy"]
    assert learning.floors() == {"miou": 0.4, "pixel_accuracy": 0.5}


def test_faces_without_masks_are_refused(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(1))
    with pytest.raises(ArchiveError, match=r"not every face has a parsing mask.*give backbones.parsing.published"):
        backbone().train(kit.job(tmp_path))


def test_published_file_is_adopted_bit_for_bit(tmp_path):
    """As old PyTorch wrote it, and as safetensors."""
    torch.manual_seed(1)
    state, job, path = BiSeNet(19, 8, 8).state_dict(), kit.job(tmp_path), tmp_path / "79999_iter.pth"
    adopting = backbone(published=str(path), stride=8)
    torch.save(state, path, _use_new_zipfile_serialization=False)
    adopting.convert_official(path, job)
    parser = adopting.load(job.checkpoint)
    assert all(torch.equal(value, state[key]) for key, value in parser.network.state_dict().items())
    _, metadata = checkpoints.load_checkpoint(job.checkpoint)
    assert metadata["mean"] == [0.485, 0.456, 0.406]
    before = job.checkpoint.read_bytes()
    safetensors.torch.save_file(state, tmp_path / "weights.safetensors")
    adopting.convert_official(tmp_path / "weights.safetensors", job)
    assert job.checkpoint.read_bytes() == before


NETWORKS = {
    "landmarks": (lambda: Landmarker(LandmarkNet(size=32, widths=(4, 8), hidden=16), 32), (68, 2)),
    "attributes": (lambda: Classifier((0.1, 0.1, 0.9, 0.9), 32, [4, 8], [1, 1], 0.2), (len(ATTRIBUTES),)),
    "identity": (lambda: Recognizer(IRSE(32, (4, 4, 4, 4, 4), (1, 1, 1, 1)), 32), (512,)),
    "parsing": (lambda: small_parser(), ()),
}
"""Backbone -> a network for images of 32 pixels, and the shape of its output (of the parser: as the image)."""


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("size", [(32, 32), (64, 64), (50, 37), (20, 20)])
def test_network_takes_images_of_any_size_and_each_by_itself(name, size):
    torch.manual_seed(0)
    build, shape = NETWORKS[name]
    images = torch.rand(2, 3, *size, requires_grad=True)
    outputs = build().eval()(images)
    assert outputs.shape == (2, *(shape or (19, *size)))
    outputs[0].sum().backward()
    assert images.grad[0].abs().sum() > 0
    assert images.grad[1].abs().sum() == 0
