"""Recognisers get the face as their publishers cut it out, on landmarks and boxes that are known."""

import numpy as np
import pytest

from masquerade import _torchvision, alignment
from masquerade.faces import _alignment
from masquerade.faces._procedural import render
from masquerade.faces._shot import Conditions

STUDIO = Conditions(yaw=6.0, pitch=3.0, roll=2.0, jitter=0.01, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)


def turned(points: np.ndarray, degrees: float, scale: float, shift: tuple[float, float]) -> np.ndarray:
    angle = np.radians(degrees)
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return scale * points @ rotation.T + shift


def test_five_points_are_eyes_nose_and_corners_of_the_mouth_by_hand():
    points = np.zeros((68, 2))
    points[36:42] = [(10, 20), (12, 18), (14, 18), (16, 20), (14, 22), (12, 22)]
    points[42:48] = [(30, 20), (32, 18), (34, 18), (36, 20), (34, 22), (32, 22)]
    points[30], points[48], points[54] = (23, 30), (15, 40), (31, 40)
    np.testing.assert_allclose(alignment.five_points(points), [(13, 20), (33, 20), (23, 30), (15, 40), (31, 40)])
    assert alignment.five_points(np.full((3, 68, 2), np.nan)).shape == (3, 5, 2)


def test_a_known_similarity_is_found():
    source = np.random.default_rng(0).uniform(0, 250, (5, 2))
    affine = alignment.similarity(source, turned(source, 25, 0.4, (3, -8)))
    angle = np.radians(25)
    expected = [[0.4 * np.cos(angle), -0.4 * np.sin(angle), 3], [0.4 * np.sin(angle), 0.4 * np.cos(angle), -8]]
    np.testing.assert_allclose(affine, expected, atol=1e-9)


def test_the_similarity_is_that_of_least_squares():
    """In the plane it is a product with a complex number: regression of one set of complex numbers on the other."""
    draw = np.random.default_rng(1)
    source = draw.uniform(0, 250, (5, 2))
    target = turned(source, -10, 0.5, (4, 4)) + draw.normal(0, 5, (5, 2))
    x, y = source @ [1, 1j], target @ [1, 1j]
    factor = ((y - y.mean()) * (x - x.mean()).conj()).sum() / (abs(x - x.mean()) ** 2).sum()
    moved = factor * (x - x.mean()) + y.mean()
    affine = alignment.similarity(source, target)
    np.testing.assert_allclose((source @ affine[:, :2].T + affine[:, 2]) @ [1, 1j], moved)


@pytest.mark.parametrize("points", [np.full((5, 2), 7.0), np.full((5, 2), np.nan)])
def test_points_that_fall_together_or_are_not_known_are_an_error(points):
    with pytest.raises(ValueError, match="have no similarity"):
        alignment.arcface(np.zeros((50, 50, 3), np.uint8), points)


@pytest.mark.parametrize("side", [112, 224])
def test_arcface_puts_the_five_points_where_its_template_has_them(side):
    points = turned(alignment.ARCFACE_POINTS, 20, 2.5, (120, 40))
    picture = np.zeros((400, 450, 3), np.uint8)
    rows, columns = np.mgrid[:400, :450]
    for x, y in points:
        picture[np.hypot(columns - x, rows - y) < 6] = 255
    cut = alignment.arcface(picture, points, side)
    assert cut.shape == (side, side, 3)
    rows, columns = np.mgrid[:side, :side]
    for x, y in alignment.ARCFACE_POINTS * side / 112:
        weight = cut[..., 0] * (np.hypot(columns - x, rows - y) < 5 * side / 112)
        centre = (columns * weight).sum() / weight.sum(), (rows * weight).sum() / weight.sum()
        np.testing.assert_allclose(centre, (x, y), atol=0.3 * side / 112)


def test_beyond_the_edge_arcface_sees_black():
    cut = alignment.arcface(np.full((112, 112, 3), 200, np.uint8), alignment.ARCFACE_POINTS - [50, 0])
    assert cut[:, :45].max() == 0 and cut[:, 60:].min() == 200


@pytest.mark.parametrize(
    ("box", "margin", "columns", "rows"),
    [
        # 100 pixels wide and 128 of the 160 are the box: half the margin is 16 * 100 / 128 = 12.5 pixels
        ((50, 60, 150, 160), 32, (37, 162), (47, 172)),
        ((50, 60, 150, 160), 0, (50, 150), (60, 160)),
        ((5, 60, 105, 260), 32, (0, 117), (35, 285)),
        ((-20, 250, 80, 310), 32, (0, 92), (242, 300)),
    ],
)
def test_facenet_cuts_the_box_with_its_margin_by_hand(box, margin, columns, rows):
    picture = np.zeros((300, 200, 3), np.uint8)
    picture[..., 0], picture[..., 1] = np.arange(200)[None], np.minimum(np.arange(300), 255)[:, None]
    cut = alignment.facenet(picture, np.array(box), margin=margin)
    expected = picture[slice(*rows), slice(*columns)]
    assert cut.shape == (160, 160, 3)
    assert (
        abs(int(cut[80, 0, 0]) - int(expected[0, 0, 0])) <= 1 and abs(int(cut[0, 80, 1]) - int(expected[0, 0, 1])) <= 1
    )
    assert abs(int(cut[80, -1, 0]) - int(expected[0, -1, 0])) <= 1
    np.testing.assert_allclose(cut.mean(axis=(0, 1)), expected.mean(axis=(0, 1)), atol=0.8)


def test_facenet_is_what_its_package_cuts_out():
    _torchvision.ensure()
    from facenet_pytorch.models.utils.detect_face import extract_face

    picture = np.random.default_rng(0).integers(0, 256, (300, 200, 3), dtype=np.uint8)
    for box in [(20.3, 40.9, 120.2, 180.4), (-5.0, -3.0, 90.0, 80.0), (120.0, 200.0, 230.0, 320.0)]:
        theirs = extract_face(picture, np.array(box), 160, 32).numpy().transpose(1, 2, 0)
        np.testing.assert_array_equal(alignment.facenet(picture, np.array(box)), theirs)


def test_a_box_beside_the_picture_is_an_error():
    with pytest.raises(ValueError, match="holds nothing of the picture"):
        alignment.facenet(np.zeros((100, 100, 3), np.uint8), np.array([150, 20, 190, 60]))


def test_the_window_of_an_aligned_picture_is_that_of_the_published_codes():
    index = np.arange(256)
    rows, columns = alignment.aligned_window(256)
    assert (index[rows][[0, -1]] == [35, 222]).all() and (index[columns][[0, -1]] == [32, 219]).all()
    assert alignment.aligned_window(1024) == (slice(140, 892), slice(128, 880))
    with pytest.raises(ValueError, match="not at 112: resize first"):
        alignment.aligned_window(112)


def test_window_and_template_see_the_same_face():
    """The published codes give ArcFace a window of FFHQ's crop in the place of its own alignment."""
    away = []
    for person in range(6):
        drawn = render(("test", "test", person, 0, 3, STUDIO, 256, 1)).row["landmarks"]
        points = np.array(drawn).reshape(68, 2)
        where = _alignment.square(points)
        aligned = alignment.five_points(_alignment.into_crop(points, where, 256))
        rows, columns = alignment.aligned_window(256)
        inside = (aligned - [columns.start, rows.start]) * 112 / 188
        away.append(inside - alignment.ARCFACE_POINTS)
    assert np.abs(np.mean(away, axis=0)).max() < 9, "pixels of 112"
