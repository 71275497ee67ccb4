"""The landmark network: CNN-6, the Wing loss by hand, mirrored points, the error by hand, training."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
import torch

import kit
from drawnpeople.sampling import sample_person
from drawnpeople.shape import Body, Head
from drawnpeople.shot import Conditions, sample_shot
from drawnpeople.template import template
from masquerade.backbones._views import Views, mirror_points
from masquerade.backbones.landmarks.training import (
    Landmarker,
    LandmarkNet,
    compute_normalized_error,
    compute_wing_loss,
    measure_accuracy,
    order_mirrored_points,
    to_pixels,
    to_shares,
)
from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.core.seeding import make_generator


def test_network_is_cnn_6():
    with torch.device("meta"):
        shapes = {key: tuple(value.shape) for key, value in LandmarkNet().state_dict().items() if "weight" in key}
    convolutions = [(32, 3), (64, 32), (128, 64), (256, 128), (512, 256)]
    assert list(shapes.values()) == [(*pair, 3, 3) for pair in convolutions] + [(1024, 4 * 512), (136, 1024)]


def test_wing_loss_is_equation_5_worked_by_hand():
    c = 10 - 10 * math.log(1 + 10 / 2)
    true = torch.zeros(1, 2, 2)
    predicted = torch.tensor([[[0.0, -1.0], [4.0, 25.0]]])
    expected = (0 + 10 * math.log(1.5) + 10 * math.log(3) + (25 - c)) / 4
    assert compute_wing_loss(predicted, true, 10.0, 2.0).item() == pytest.approx(expected, rel=1e-6)


def test_wing_loss_has_no_step_at_its_width_and_a_gradient_at_zero_error():
    just = [compute_wing_loss(torch.tensor([10.0 + step]), torch.zeros(1), 10.0, 2.0).item() for step in (-1e-4, 1e-4)]
    assert just[0] == pytest.approx(just[1], abs=1e-3)
    predicted = torch.tensor([1e-6, 3.0, 20.0], requires_grad=True)
    compute_wing_loss(predicted, torch.zeros(3), 10.0, 2.0).backward()
    assert (3 * predicted.grad).tolist() == pytest.approx([10 / 2, 10 / (2 + 3), 1.0], rel=1e-4)


def test_error_of_hand_worked_points():
    true = np.zeros((2, 68, 2), np.float32)
    true[:, 36], true[:, 45] = (10, 20), (40, 60)  # 50 pixels apart
    predicted = true.copy()
    predicted[0] += (3, 4)  # each point is 5 pixels off
    predicted[1, 8] += (0, 68)  # one point is 68 pixels off: one pixel on average
    assert compute_normalized_error(predicted, true).tolist() == pytest.approx([10.0, 2.0])
    figures = measure_accuracy(predicted, true)
    assert figures == pytest.approx({"nme": 6.0, "share_below_8": 0.5, "pictures": 2.0})


def test_mirroring_twice_restores_the_points():
    order = order_mirrored_points()
    assert sorted(order.tolist()) == list(range(68))
    assert torch.equal(order[order], torch.arange(68))
    points = torch.rand(3, 68, 2) * 64
    torch.testing.assert_close(mirror_points(mirror_points(points, 64, order), 64, order), points)


def symmetrical_person(number):
    """A drawn person whose right half is the mirror image of the left one."""
    person, names = sample_person(make_generator(3, number)), template().local_names
    local = person.local.copy()
    for place, name in enumerate(names):
        if name.startswith("l-"):
            local[names.index("r-" + name[2:])] = local[place]
        elif name.endswith("-out") and not name.startswith("r-"):  # moves the head or a part of it to one side
            local[place] = 0.0
    return dataclasses.replace(person, local=local)


def test_face_turned_the_other_way_has_mirrored_points():
    """The points of a symmetrical face turned right are the mirrored points of the same face turned left."""
    order, size = order_mirrored_points(), 128
    still = Conditions(yaw=0, pitch=0, roll=0, jitter=0, light=0, noise=0, blur=0, occlusion=0)
    for number in range(3):
        body = Body(symmetrical_person(number))
        shot = dataclasses.replace(sample_shot(make_generator(4, number), body.person, still), pitch=4.0, actions={})
        right, left = (
            torch.from_numpy(Head(body, dataclasses.replace(shot, yaw=yaw, roll=roll), size).landmarks()).double()
            for yaw, roll in ((18.0, 5.0), (-18.0, -5.0))
        )
        assert (mirror_points(left[None], size, order)[0] - right).abs().max() < 0.05  # pixels
        assert (left - right).abs().max() > 5


def dot(points, size=64):
    """uint8 (N, size, size, 3): a bright spot at each of the N points (x, y)."""
    down, across = np.mgrid[:size, :size]
    spots = [np.exp(-((across - x) ** 2 + (down - y) ** 2) / 4) for x, y in points]
    return torch.from_numpy(np.repeat((255 * np.stack(spots))[..., None], 3, -1).astype(np.uint8))


def test_views_move_the_points_as_they_move_the_picture():
    draw = np.random.default_rng(1)
    points = draw.uniform(20, 44, (16, 2))
    views = Views.sampled(draw, 16)
    assert 0 < views.mirrored.sum() < 16
    still = Views(views.mirrored, views.place, torch.ones(16, 1, 1, 1), torch.zeros(16, 1, 1, 1))
    light = (still.images(dot(points))[:, 0] + 1) / 2
    across, down = torch.arange(64.0), torch.arange(64.0)[:, None]
    spots = torch.stack([(light * across).sum((1, 2)), (light * down).sum((1, 2))], 1) / light.sum((1, 2))[:, None]
    moved = views.points(torch.from_numpy(points[:, None]).float(), (64, 64), torch.tensor([0]))[:, 0]
    assert (spots - moved).abs().max() < 0.15
    assert (torch.from_numpy(points) - moved).abs().mean() > 1


def test_coordinates_are_pixels_of_the_input_picture():
    """The network always predicts the center of the upper left quarter."""
    network = LandmarkNet(size=32, widths=(4, 4), hidden=8)
    torch.nn.init.zeros_(network.places.weight)
    torch.nn.init.constant_(network.places.bias, 0.25)
    landmarker = Landmarker(network, 32)
    with torch.inference_mode():
        assert landmarker(torch.zeros(1, 3, 32, 32))[0, 0].tolist() == [7.5, 7.5]
        assert landmarker(torch.zeros(1, 3, 100, 64))[0, 67].tolist() == [15.5, 24.5]
    points = torch.rand(2, 68, 2) * 60
    torch.testing.assert_close(to_pixels(to_shares(points, (50, 64)), (50, 64)), points)


def test_training_starts_at_the_mean_shape():
    torch.manual_seed(0)
    network = LandmarkNet(size=32, widths=(4, 8), hidden=16)
    shape = torch.rand(68, 2)
    network.start_at(shape)
    assert (network(torch.rand(3, 3, 32, 32)) - shape).abs().max() < 0.05


def symmetrical_shape():
    """68 points around 0 that equal their mirror image."""
    shape = torch.from_numpy(np.random.default_rng(5).uniform(-9, 9, (1, 68, 2)))
    return ((shape + mirror_points(shape, 1, order_mirrored_points())) / 2)[0].numpy()


SHAPE = symmetrical_shape()


@pytest.fixture
def job(tmp_path):
    """To learn from twelve images of one spot; the 68 points move with the spot."""
    middles = np.random.default_rng(0).uniform(14, 18, (12, 2))
    rows = [{"landmarks": (SHAPE + middle).astype(np.float32).ravel()} for middle in middles]
    kit.archive(tmp_path / "faces.zip", dot(middles, 32).numpy(), rows=rows)
    return partial(kit.job, tmp_path)


SMALL = {
    "published": "",
    "input_size": 32, "widths": [4, 8, 8], "hidden": 16, "steps": 6, "batch": 4, "learning_rate": 0.01,
    "weight_decay": 0.0, "wing_width": 10.0, "wing_epsilon": 2.0, "floor_share": 0.5,
}  # fmt: skip


def backbone(**changes):
    cls = discovery.load("backbones", "landmarks")
    return cls(cls.Params(**{**SMALL, **changes}))


def test_training_lowers_the_loss(job):
    curve, learning = kit.Curve(), backbone(steps=61)
    learning.train(job(log=curve))
    assert curve.of("loss")[-1] < 0.8 * curve[0]["loss"]
    figures = learning.quality(job())
    assert figures["pictures"] == 4
    assert set(learning.floors()) == {"share_below_8"} <= set(figures)


def test_faces_without_landmarks_are_refused(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(1))
    with pytest.raises(ParameterError, match="1 of 1 faces have no 68 landmarks"):
        backbone().train(kit.job(tmp_path))
