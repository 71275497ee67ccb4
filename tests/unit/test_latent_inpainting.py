"""Latent inpainting: no pixel of the face reaches the result, its keypoints do, and nothing is trained."""

import numpy as np
import pandas as pd
import pytest
import torch

import kit
from masquerade.backbones import load_backbone
from masquerade.backbones.inversion.inverter import Inverter
from masquerade.backbones.landmarks.training import Landmarker, LandmarkNet
from masquerade.core import discovery
from masquerade.core.errors import PictureError
from masquerade.core.images import Faces, to_uint8
from masquerade.methods import Resources
from masquerade.methods._inpainting import region
from masquerade.methods.latent_inpainting import drawing

METHOD = discovery.load("methods", "latent_inpainting")
PARAMS = {
    "steps": 3, "learning_rate": 0.05, "pixels": 1.0, "coarse": 0.5, "perceptual": 0.0, "prior": 0.05, "share": 0.7,
    "points": 1.0,
}  # fmt: skip


@pytest.fixture(scope="module")
def backbones(tmp_path_factory):
    return kit.networks(tmp_path_factory.mktemp("latent_inpainting"))


@pytest.fixture(autouse=True)
def landmarks(monkeypatch):
    torch.manual_seed(0)
    kit.replace_backbones(monkeypatch, landmarks=Landmarker(LandmarkNet(68, kit.SIZE, (4, 4), 8), kit.SIZE).eval())


def method(backbones, **changes):
    paths = {role: backbones.get(role, backbones["generator"]) for role in METHOD.needs}
    return METHOD(METHOD.Params(**PARAMS | changes), METHOD.Variant(), Resources(backbones=paths))


def faces(count: int = 3, seed: int = 9) -> Faces:
    """Faces of noise that all have the same landmarks."""
    images = np.random.default_rng(seed).uniform(-1, 1, (count, 3, kit.SIZE, kit.SIZE)).astype(np.float32)
    points = kit.landmarks(kit.SIZE)[0].flatten().tolist()
    return Faces(images, pd.DataFrame({"id": [f"f{row}" for row in range(count)], "landmarks": [points] * count}))


def test_no_pixel_of_the_region_reaches_the_result(backbones):
    """And what is beyond the fading stays as it is, to the last bit."""
    chosen, some = method(backbones), faces()
    masks = region.draw_box_masks(some.landmarks, kit.SIZE)
    noise = np.where(masks[:, None], faces(seed=1).images, some.images)
    made = chosen.anonymize(some, 0)
    np.testing.assert_array_equal(made, chosen.anonymize(Faces(noise, some.index), 0))
    far = np.broadcast_to(drawing.compute_fading(masks)[:, None] == 0, made.shape)
    assert far.any()
    np.testing.assert_array_equal(made[far], some.images[far])
    assert np.abs(made).max() <= 1


def test_a_face_does_not_depend_on_its_batch(backbones):
    chosen, some = method(backbones), faces(5)
    alone = [chosen.anonymize(Faces(some.images[row : row + 1], some.index[row : row + 1]), 0) for row in range(5)]
    differ = to_uint8(chosen.anonymize(some, 0)) != to_uint8(np.concatenate(alone))
    assert differ.any(axis=-1).mean() <= 1e-3


def test_a_share_of_zero_gives_the_mean_style_whatever_the_seed(backbones):
    some, mean, random = faces(), method(backbones, share=0.0), method(backbones)
    np.testing.assert_array_equal(mean.anonymize(some, 0), mean.anonymize(some, 1))
    assert np.abs(random.anonymize(some, 0) - random.anonymize(some, 1)).max() > 1e-3


def test_another_result_has_another_style(backbones):
    chosen, some = method(backbones), faces()
    first = chosen.anonymize(some, 0)
    others = [chosen.resample(some, number) for number in (1, 2)]
    assert all(np.abs(other - first).max() > 1e-3 for other in others)
    assert np.abs(others[0] - others[1]).max() > 1e-3


def test_the_guide_brings_the_keypoints_nearer(backbones):
    some, network = faces(), load_backbone("landmarks", {"landmarks": backbones["generator"]})
    weights = torch.from_numpy(region.keypoint_weights()).float()
    apart = []
    for points in (0.0, 1000.0):
        made = torch.from_numpy(method(backbones, points=points, steps=20).anonymize(some, 0))
        found = weights @ network(made).detach()
        apart.append(float((found - weights @ torch.from_numpy(some.landmarks).float()).square().mean()))
    assert apart[1] < apart[0]


def test_surroundings_that_the_generator_does_not_reach_are_refused(backbones, monkeypatch):
    monkeypatch.setattr(Inverter, "reaches", lambda _, images, drawn: np.array([True, False, True]))
    with pytest.raises(PictureError, match="around the face"):
        method(backbones).anonymize(faces(), 0)


def test_the_weights_of_the_guide_give_its_points():
    points = kit.landmarks() + np.random.default_rng(0).normal(size=(1, 68, 2))
    keypoints = (region.keypoint_weights() @ points + 0.5) / 64
    np.testing.assert_allclose(keypoints, region.select_keypoints(points, 64)[:, :5], atol=1e-6)


def test_the_drawing_fades_outside_of_the_region_alone():
    mask = np.zeros((1, 100, 100), dtype=bool)
    mask[0, 40:60, 40:60] = True
    share = drawing.compute_fading(mask)
    assert (share[mask] == 1).all()
    width = int(100 * drawing.FADE)
    assert (np.diff(share[0, 50, 59 : 59 + width]) < 0).all()
    assert share[0, 50, 59 + width :].max() < 1e-6
