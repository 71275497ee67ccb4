"""DeepPrivacy, DeepPrivacy2 and CIAGAN with the frozen generator of photographs in place of a network of their own."""

import numpy as np
import pandas as pd
import pytest
import torch
from test_inpainting import face

import kit
from masquerade.backbones import loaded
from masquerade.backbones.inversion.inverter import Inverter
from masquerade.backbones.landmarks.training import Landmarker
from masquerade.core import discovery
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces, to_uint8
from masquerade.methods import Resources
from masquerade.methods._inpainting import drawing, region
from masquerade.networks.landmark_net import LandmarkNet
from masquerade.params import loading
from masquerade.pipeline import pretrained_networks

METHODS = ("deepprivacy", "deepprivacy2", "ciagan")
LATENT = {
    "steps": 3, "learning_rate": 0.05, "pixels": 1.0, "coarse": 0.5, "perceptual": 0.0, "prior": 0.05, "share": 0.7,
    "points": 1.0,
}  # fmt: skip
VARIANTS = {"deepprivacy": {"truncation": 5.0}, "deepprivacy2": {"truncation": 1.0}, "ciagan": {"label": "key"}}
MINI = loading.load(scale="mini")


@pytest.fixture(scope="module")
def backbones(tmp_path_factory):
    return kit.networks(tmp_path_factory.mktemp("latent_inpainting"))


@pytest.fixture(autouse=True)
def landmarks(monkeypatch):
    torch.manual_seed(0)
    kit.replace_backbones(monkeypatch, landmarks=Landmarker(LandmarkNet(68, kit.SIZE, (4, 4), 8), kit.SIZE).eval())


def params(name: str, **knobs):
    mini = MINI.methods[name].params
    return type(mini).model_validate(mini.model_dump() | {"latent": LATENT | knobs})


def method(name: str, backbones, variant=None, **knobs):
    cls, chosen = discovery.load("methods", name), params(name, **knobs)
    paths = {role: backbones.get(role, backbones["generator"]) for role in cls.list_backbones(chosen)}
    return cls(chosen, cls.Variant(**(variant or VARIANTS[name])), Resources(backbones=paths))


def faces(count: int = 3, seed: int = 9) -> Faces:
    """Faces of noise that all have the same landmarks."""
    images = np.random.default_rng(seed).uniform(-1, 1, (count, 3, kit.SIZE, kit.SIZE)).astype(np.float32)
    points = face(kit.SIZE)[0].flatten().tolist()
    return Faces(images, pd.DataFrame({"id": [f"f{row}" for row in range(count)], "landmarks": [points] * count}))


def anonymized(chosen, some: Faces, seed: int = 0) -> np.ndarray:
    """The faces, each under a key of its own if the method takes keys."""
    keys = [name.encode() * 16 for name in some.ids] if chosen.capabilities.keys else None
    return chosen.anonymize(some, seed, keys)


@pytest.mark.parametrize("name", METHODS)
def test_it_needs_no_training_and_no_checkpoint(name):
    cls, chosen = discovery.load("methods", name), params(name)
    assert not cls.trains(chosen)
    assert {"generator", "inversion"} <= set(cls.list_backbones(chosen)) <= {"generator", "inversion", "landmarks"}
    assert cls.trains(MINI.methods[name].params)
    photo = loading.load(scale="photo")
    assert not photo.trains(name)
    assert name not in {each.module for each in pretrained_networks.list_networks(photo)}


@pytest.mark.parametrize("name", METHODS)
def test_no_pixel_of_the_region_reaches_the_result(name, backbones):
    """And what is beyond the fading stays as it is, to the last bit."""
    chosen, some = method(name, backbones), faces()
    masks = (region.draw_polygon_masks if name == "ciagan" else region.draw_box_masks)(some.landmarks, kit.SIZE)
    noise = np.where(masks[:, None], faces(seed=1).images, some.images)
    made = anonymized(chosen, some)
    np.testing.assert_array_equal(made, anonymized(chosen, Faces(noise, some.index)))
    far = np.broadcast_to(drawing.compute_fading(masks)[:, None] == 0, made.shape)
    assert far.any()
    np.testing.assert_array_equal(made[far], some.images[far])
    assert np.abs(made).max() <= 1


@pytest.mark.parametrize("name", METHODS)
def test_a_face_does_not_depend_on_its_batch(name, backbones):
    chosen, some = method(name, backbones), faces(5)
    alone = [anonymized(chosen, Faces(some.images[row : row + 1], some.index[row : row + 1])) for row in range(5)]
    differ = to_uint8(anonymized(chosen, some)) != to_uint8(np.concatenate(alone))
    assert differ.any(axis=-1).mean() <= 1e-3


@pytest.mark.parametrize("name", ["deepprivacy", "deepprivacy2"])
def test_a_truncation_of_zero_gives_the_mean_style_whatever_the_seed(name, backbones):
    chosen, some = method(name, backbones, {"truncation": 0.0}), faces()
    np.testing.assert_array_equal(anonymized(chosen, some, 0), anonymized(chosen, some, 1))
    random = method(name, backbones)
    assert np.abs(anonymized(random, some, 0) - anonymized(random, some, 1)).max() > 1e-3


@pytest.mark.parametrize("name", ["deepprivacy", "deepprivacy2"])
def test_another_result_has_another_style_and_the_mean_style_has_no_other(name, backbones):
    chosen, some = method(name, backbones), faces()
    first = anonymized(chosen, some)
    others = [chosen.resample(some, number) for number in (1, 2)]
    assert all(np.abs(other - first).max() > 1e-3 for other in others)
    assert np.abs(others[0] - others[1]).max() > 1e-3
    assert method(name, backbones, {"truncation": 0.0}).resample(some, 1) is None


def test_the_key_of_ciagan_chooses_the_person(backbones):
    chosen, some = method("ciagan", backbones), faces()
    first, again, other = (chosen.anonymize(some, seed, [key * 16] * 3) for seed, key in enumerate((b"a", b"a", b"b")))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_the_guide_brings_the_landmarks_nearer(backbones):
    some, network = faces(), loaded("landmarks", {"landmarks": backbones["generator"]})
    weights = torch.from_numpy(region.keypoint_weights()).float()
    apart = []
    for points in (0.0, 1000.0):
        made = torch.from_numpy(anonymized(method("deepprivacy", backbones, points=points, steps=20), some))
        found = weights @ network(made).detach()
        apart.append(float((found - weights @ torch.from_numpy(some.landmarks).float()).square().mean()))
    assert apart[1] < apart[0]


def test_surroundings_that_the_generator_does_not_reach_are_refused(backbones, monkeypatch):
    monkeypatch.setattr(Inverter, "reaches", lambda _, images, drawn: np.array([True, False, True]))
    with pytest.raises(PictureError, match="around the face"):
        anonymized(method("deepprivacy2", backbones), faces())


def test_the_weights_of_a_guide_give_its_points():
    points = face() + np.random.default_rng(0).normal(size=(1, 68, 2))
    keypoints = (region.keypoint_weights() @ points + 0.5) / 64
    np.testing.assert_allclose(keypoints, region.select_keypoints(points, 64)[:, :5], atol=1e-6)
    chosen = region.outline_weights() @ points
    np.testing.assert_array_equal(chosen[0, :17], points[0, region.JAW])
    np.testing.assert_array_equal(chosen[0, -8:], points[0, region.MOUTH])


def test_the_drawing_fades_outside_of_the_region_alone():
    mask = np.zeros((1, 100, 100), dtype=bool)
    mask[0, 40:60, 40:60] = True
    share = drawing.compute_fading(mask)
    assert (share[mask] == 1).all()
    width = int(100 * drawing.FADE)
    assert (np.diff(share[0, 50, 59 : 59 + width]) < 0).all()
    assert share[0, 50, 59 + width :].max() < 1e-6
