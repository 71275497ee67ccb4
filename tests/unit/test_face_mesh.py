"""The geometry of the gaze: where an eye looks, from the place of its iris."""

import numpy as np
import pytest
import torch

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
    judge = FaceMesh.__new__(FaceMesh)  # without the published networks
    judge._networks = {"iris": BrightestPixel()}
    [[right, up]] = judge._find_gaze(pixels, mesh, side)
    assert right == pytest.approx(np.degrees(np.arcsin(RIGHT / WIDTH / 0.4)), abs=4)
    assert up == pytest.approx(np.degrees(np.arcsin(UP / WIDTH / 0.4)), abs=4)
