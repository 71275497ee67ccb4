"""A new face takes the place of the old one, of which nothing is left, and its photograph looks whole."""

from dataclasses import replace

import numpy as np
import pytest
from skimage.data import astronaut

from masquerade.faces.photographs import alignment, composition
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import Replacement, compose


def smooth(height: int, width: int) -> np.ndarray:
    rows, columns = np.mgrid[:height, :width]
    waves = [128 + 100 * np.sin(rows / 23 + columns / 31 + shift) for shift in (0, 2, 4)]
    return np.stack(waves, axis=-1).astype(np.uint8)


def landmarks(face: Square) -> np.ndarray:
    """68 points of an upright face that fills the middle of its square, in pixels of the photograph."""
    angles = np.linspace(0, np.pi, 17)
    jaw = np.stack([-0.5 * np.cos(angles), 0.75 * np.sin(angles)], axis=1)
    brows = np.stack([np.linspace(-0.4, 0.4, 10), np.full(10, -0.15)], axis=1)
    inner = np.zeros((41, 2))
    across, down = face.right, np.array([-face.right[1], face.right[0]])
    return face.center + np.concatenate([jaw, brows, inner]) @ np.stack([across, down])


def replacement(center: tuple[float, float], right: tuple[float, float], crop: np.ndarray) -> Replacement:
    face = Square(np.array(center, dtype=float), np.array(right, dtype=float))
    return Replacement(face, landmarks(face), crop)


def plain(level: int, size: int = 64) -> np.ndarray:
    return np.full((size, size, 3), level, np.uint8)


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("right", [(50.0, 0.0), (35.0, 35.0), (-10.0, -48.0)])
def test_pasting_a_crop_into_its_own_photograph_changes_nothing(right, size):
    photograph = smooth(240, 320)
    face = replacement((150.3, 118.8), right, plain(0))
    crop = alignment.crop(photograph, face.square, size)
    finished = compose(photograph, [replace(face, crop=crop)]).picture
    assert np.abs(finished.astype(int) - photograph).max() <= 6


class TestPhotograph:
    """The astronaut, whose face is replaced by its mirror image."""

    @pytest.fixture(scope="class")
    def photograph(self) -> np.ndarray:
        return astronaut()

    @pytest.fixture(scope="class")
    def face(self, photograph) -> Replacement:
        box = alignment.detect(photograph, 1024, 0.3)[0]
        points = alignment.landmarks(photograph, box)
        square = alignment.square(points)
        return Replacement(square, points, alignment.crop(photograph, square, 256)[:, ::-1].copy())

    @pytest.mark.parametrize("times", [1, 4])  # the seam of a face of more than 512 pixels is found in a reduced one
    def test_nothing_of_the_old_face_is_left_forehead_and_chin_included(self, photograph, face, times):
        """Whatever the old face looked like, the finished photograph is the same, but for 3 % at the square's edge."""
        photograph = photograph[:300].repeat(times, axis=0).repeat(times, axis=1)
        square = Square(face.square.center * times, face.square.right * times)
        face = Replacement(square, face.landmarks * times, face.crop)
        mask = composition.face_mask(face.landmarks, photograph.shape) & (depths(photograph, face) > 0.07)
        other = photograph.copy()
        other[mask] = np.random.default_rng(0).integers(0, 256, (mask.sum(), 3))
        finished, of_other = compose(photograph, [face]), compose(other, [face])
        assert finished.replaced[mask].all()
        np.testing.assert_array_equal(finished.picture, of_other.picture)

    def test_outside_of_the_square_nothing_changes(self, photograph, face):
        outside = depths(photograph, face) < 0
        finished = compose(photograph, [face]).picture
        np.testing.assert_array_equal(finished[outside], photograph[outside])

    def test_the_seam_is_hardly_seen(self, photograph, face):
        """Steps across the seam are those of the photograph, although the new picture is darker by 30 gray levels."""
        darker = replace(face, crop=np.clip(face.crop.astype(int) - 30, 0, 255).astype(np.uint8))
        whole = compose(photograph, [darker])
        rim = whole.replaced ^ np.roll(whole.replaced, 3, axis=1)
        before, after = (_steps(picture)[rim].mean() for picture in (photograph, whole.picture))
        assert after < 1.3 * before

    def test_grain_and_sharpness_are_those_of_the_photograph(self, photograph, face):
        noise = np.random.default_rng(1).normal(0, 12, photograph.shape[:2])[..., None]
        grainy = np.clip(photograph + noise, 0, 255).astype(np.uint8)
        mask = composition.face_mask(face.landmarks, photograph.shape)

        def grain(picture: np.ndarray) -> float:
            return float(np.median(np.abs(composition._fine(picture.astype(np.float32))[mask])))

        finished = compose(grainy, [face]).picture
        assert 0.6 * grain(grainy) < grain(finished) < 1.6 * grain(grainy)
        assert grain(compose(photograph, [face]).picture) < 0.5 * grain(finished)


def depths(photograph: np.ndarray, face: Replacement) -> np.ndarray:
    rows, columns = np.mgrid[: photograph.shape[0], : photograph.shape[1]]
    return composition.depth(face.square, np.stack([columns, rows], axis=-1))


def _steps(picture: np.ndarray) -> np.ndarray:
    gray = picture.astype(float).mean(axis=2)
    return np.abs(gray - np.roll(gray, 1, axis=1)) + np.abs(gray - np.roll(gray, 1, axis=0))


def test_the_crop_of_a_neighbor_does_not_bring_the_original_of_a_face_back():
    """Each crop shows its own face new and its neighbor's as it was (255), as a method does that keeps backgrounds."""
    photograph = plain(120, 240)
    faces = [replacement((x, 120.0), (70.0, 0.0), plain(0)) for x in (80.0, 160.0)]
    old = [composition.face_mask(face.landmarks, photograph.shape) for face in faces]
    crops = []
    for own, other in ((0, 1), (1, 0)):
        shown = photograph.copy()
        shown[old[other]] = 255
        shown[old[own]] = 60
        crops.append(replace(faces[own], crop=alignment.crop(shown, faces[own].square, 140)))
    photograph[old[0] | old[1]] = 255
    for order in ((0, 1), (1, 0)):
        finished = compose(photograph, [crops[i] for i in order])
        for mask in old:
            assert finished.replaced[mask].all()
            assert finished.picture[mask].max() < 160, "both faces are new in any order"


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_square_of_a_turned_photograph_returns_to_the_photograph(quarters):
    photograph = smooth(90, 130)
    turned = np.ascontiguousarray(np.rot90(photograph, quarters))
    face = Square(np.array([47.0, 41.0]), np.array([20.0, 4.0]))
    back = face.turn_back(quarters, photograph.shape)
    difference = alignment.crop(turned, face, 48).astype(int) - alignment.crop(photograph, back, 48)
    assert np.abs(difference).max() <= 3
