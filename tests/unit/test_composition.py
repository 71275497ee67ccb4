"""A crop returns to the place that it was cut from, and no part of an old face shows through."""

import numpy as np
import pytest

from masquerade.faces.photographs import alignment, composition
from masquerade.faces.photographs.alignment import Square


def smooth(height: int, width: int) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    waves = [128 + 100 * np.sin(rows / 23 + columns / 31 + shift) for shift in (0, 2, 4)]
    return np.stack(waves, axis=-1).astype(np.uint8)


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("right", [(50.0, 0.0), (35.0, 35.0), (-10.0, -48.0)])
def test_pasting_a_crop_into_its_own_photograph_changes_nothing(right, size):
    photograph = smooth(240, 320)
    face = Square(np.array([150.3, 118.8]), np.array(right))
    finished = composition.composed(photograph, [face], [alignment.crop(photograph, face, size)])
    assert np.abs(finished.astype(int) - photograph).max() <= 4


def test_deeper_than_the_feather_only_the_new_face_is_left_and_outside_only_the_old_picture():
    photograph = np.full((100, 120, 3), 10, np.uint8)
    face = Square(np.array([60.0, 50.0]), np.array([20.0, 10.0]))
    finished = composition.composed(photograph, [face], [np.full((32, 32, 3), 200, np.uint8)])
    points = np.stack(np.meshgrid(np.arange(120), np.arange(100)), axis=-1).astype(float)
    depth = composition.depth(face, points)
    assert (finished[depth >= composition.FEATHER] == 200).all()
    assert (finished[depth <= 0] == 10).all()
    between = finished[(depth > 0) & (depth < composition.FEATHER)]
    assert len(between)
    assert between.min() >= 10
    assert between.max() <= 200


def test_the_crop_of_a_neighbour_does_not_bring_the_original_of_a_face_back():
    """Each crop shows its own face new and its neighbour's as it was (255), as a method does that keeps backgrounds."""
    photograph = np.full((100, 200, 3), 255, np.uint8)
    left, right = (Square(np.array([x, 50.0]), np.array([40.0, 0.0])) for x in (70.0, 120.0))
    crops = []
    for own, other in ((left, right), (right, left)):
        crop = np.full((80, 80, 3), 255, np.uint8)
        centre = alignment.into_crop(own.centre[None], own, 80)[0]
        x, y = np.rint(centre).astype(int)
        crop[y - 15 : y + 16, x - 15 : x + 16] = 60
        assert alignment.into_crop(other.centre[None], own, 80)[0, 0] not in (x, y)
        crops.append(crop)
    for order in ((0, 1), (1, 0)):
        finished = composition.composed(photograph, [(left, right)[i] for i in order], [crops[i] for i in order])
        for x in (70, 120):
            assert (finished[40:61, x - 10 : x + 11] < 70).all(), "both faces are new in any order"


def test_a_square_beyond_the_edge_or_outside_is_cut_off():
    photograph = np.full((60, 60, 3), 10, np.uint8)
    corner, outside = (
        Square(np.array([0.0, 0.0]), np.array([20.0, 0.0])),
        Square(np.array([-90.0, 5.0]), np.array([9.0, 0])),
    )
    new = np.full((16, 16, 3), 200, np.uint8)
    finished = composition.composed(photograph, [corner, outside], [new, new])
    assert (finished[0, 0] == 200).all()
    assert (finished[30:, 30:] == 10).all()


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_square_of_a_turned_photograph_returns_to_the_photograph(quarters):
    photograph = smooth(90, 130)
    turned = np.ascontiguousarray(np.rot90(photograph, quarters))
    face = Square(np.array([47.0, 41.0]), np.array([20.0, 4.0]))
    back = face.turned_back(quarters, photograph.shape)
    difference = alignment.crop(turned, face, 48).astype(int) - alignment.crop(photograph, back, 48)
    assert np.abs(difference).max() <= 3


def test_replaced_is_where_nothing_old_is_left():
    face = Square(np.array([50.0, 50.0]), np.array([40.0, 0.0]))
    assert composition.replaced([face], np.array([50.0, 50.0]))
    assert composition.replaced([face], np.array([86.0, 50.0]))
    assert not composition.replaced([face], np.array([89.0, 50.0])), "the feather"
    assert not composition.replaced([], np.array([50.0, 50.0]))
