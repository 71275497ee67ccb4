"""The geometry of the gaze, from the place of the iris, and images without a face, which have no measurements."""

import numpy as np
import pytest
import torch

from masquerade.core.settings import NoParameters
from masquerade.judges.expressions import EYE_SIDE, EYES, IRIS, POINTS, FaceMesh

WIDTH, RIGHT, UP = 40.0, 4.0, 3.0
"""Of an eye, and from its middle to its iris, in pixels of the image."""


class BrightestPixel(torch.nn.Module):
    """Takes the brightest pixel of the image of an eye for its iris."""

    def __init__(self):
        super().__init__()
        self.register_buffer("place", torch.zeros(1))

    def forward(self, eyes):
        points = torch.zeros(len(eyes), IRIS + 5, 3)
        for number, eye in enumerate(eyes.mean(dim=-1)):
            row, column = divmod(int(eye.argmax()), EYE_SIDE)
            points[number, IRIS] = torch.tensor([column + 0.5, row + 0.5, 0.0])
        return [points.flatten(1)]


class SmoothImageIsAFace(torch.nn.Module):
    """Takes any image for a face that is neither black nor noise. Its mesh is the same for each image."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mesh", torch.rand(1, POINTS * 3, generator=torch.Generator().manual_seed(0)) * 192)

    def forward(self, images):
        rough = (images[:, 1:] - images[:, :-1]).abs().mean(dim=(1, 2, 3))
        found = (images.mean(dim=(1, 2, 3)) > 0.1) & (rough < 0.05)
        return [torch.where(found, 0.9, 0.1)[:, None], self.mesh.expand(len(images), -1)]


def make_judge(**networks: torch.nn.Module) -> FaceMesh:
    """A judge without the published networks."""
    judge = FaceMesh.__new__(FaceMesh)
    judge.params, judge.backbones, judge._networks = NoParameters(), {}, networks
    return judge


def test_an_image_without_a_face_has_no_mesh_pose_and_gaze():
    face = np.broadcast_to(np.linspace(-1, 1, 256, dtype=np.float32), (3, 256, 256))
    noise = np.random.default_rng(0).uniform(-1, 1, face.shape).astype(np.float32)
    judge = make_judge(facemesh=SmoothImageIsAFace(), iris=BrightestPixel())
    measured = judge.measure(np.stack([noise, face, np.full_like(face, -1)]))
    assert {name: values.shape[1:] for name, values in measured.items()} == FaceMesh.quantities
    for values in measured.values():
        assert np.isnan(values[[0, 2]]).all()
        assert np.isfinite(values[1]).all()


@pytest.mark.parametrize("side", [0, 1])
def test_both_eyes_look_to_the_right_and_up_if_their_irises_stand_there(side):
    mesh = np.zeros((1, POINTS, 3))
    middle = np.array([90.0, 120.0]) if side == 0 else np.array([170.0, 120.0])
    outward = np.array([-WIDTH / 2, 0]) if side == 0 else np.array([WIDTH / 2, 0])
    outer, inner = EYES[side]
    mesh[0, outer, :2], mesh[0, inner, :2] = middle + outward, middle - outward
    pixels = np.zeros((1, 256, 256, 3), np.uint8)
    column, row = np.add(middle, (RIGHT, -UP)).round().astype(int)
    pixels[0, row - 1 : row + 2, column - 1 : column + 2] = 128
    pixels[0, row, column] = 255
    judge = make_judge(iris=BrightestPixel())
    [[right, up]] = judge._find_gaze(pixels, mesh, side)
    assert right == pytest.approx(np.degrees(np.arcsin(RIGHT / WIDTH / 0.4)), abs=4)
    assert up == pytest.approx(np.degrees(np.arcsin(UP / WIDTH / 0.4)), abs=4)
