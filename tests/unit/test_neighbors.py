"""A crop shows one face: the others that were found in its photograph are hidden in it."""

import cv2
import numpy as np
import pytest
from PIL import Image

from command_line import portrait
from masquerade.faces.photographs import alignment, composition, hiding
from masquerade.faces.photographs.hiding import Face

SIZE = 128


def tight(left: int, right: int) -> Image.Image:
    return portrait().crop((left, 20, right, 300))


def side_by_side(first: Image.Image, second: Image.Image, at: int) -> np.ndarray:
    group = Image.new("RGB", (at + second.width, first.height))
    group.paste(first, (0, 0))
    group.paste(second.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (at, 0))
    return np.asarray(group)


def one_in_front_of_another() -> np.ndarray:
    group = portrait().crop((40, 0, 300, 300)).resize((520, 600))
    group.paste(portrait().crop((85, 50, 225, 215)).resize((160, 190)), (300, 260))
    return np.asarray(group)


PHOTOGRAPHS = {
    "cheek to cheek": side_by_side(tight(80, 210), tight(80, 210), 110),
    "one in front of another": one_in_front_of_another(),
}


def faces_of(photograph: np.ndarray) -> list[Face]:
    points = [alignment.landmarks(photograph, box) for box in alignment.detect(photograph, 1024, 0.3)]
    return [Face(alignment.square(found), found) for found in points]


def noise_over(photograph: np.ndarray, faces: list[Face], owner: int) -> np.ndarray:
    """The photograph with noise where a pixel belongs to another face than the one with the number ``owner``."""
    noise = np.random.default_rng(0).integers(0, 256, photograph.shape, dtype=np.uint8)
    rows, columns = np.indices(photograph.shape[:2])
    places = np.stack([columns, rows], axis=-1).astype(float)
    depths = [
        np.where(composition.face_mask(face.points, photograph.shape), composition.depth(face.square, places), -np.inf)
        for face in faces
    ]
    deepest = np.argmax(depths, axis=0)
    others = np.isfinite(np.max(depths, axis=0)) & (deepest != owner)
    others = cv2.erode(others.astype(np.uint8), np.ones((9, 9))).astype(bool)  # a crop mixes the pixels of an edge
    return np.where(others[..., None], noise, photograph)


@pytest.mark.parametrize("kind", PHOTOGRAPHS)
@pytest.mark.parametrize("number", [0, 1])
def test_nothing_of_a_neighbor_is_in_a_crop(kind, number):
    photograph = PHOTOGRAPHS[kind]
    faces = faces_of(photograph)
    assert len(faces) == 2
    face, other = faces[number], faces[1 - number]
    crop = hiding.crop_alone(photograph, face, [other], SIZE)
    changed = noise_over(photograph, faces, number)
    assert np.abs(alignment.crop(changed, face.square, SIZE).astype(int) - crop).max() > 100, "it reaches into the crop"
    difference = np.abs(hiding.crop_alone(changed, face, [other], SIZE).astype(int) - crop)
    assert difference.max() <= 5, "gray levels, where the padding is blurred"


@pytest.mark.parametrize("kind", PHOTOGRAPHS)
def test_the_middle_of_a_face_is_never_hidden_by_its_neighbor(kind):
    photograph = PHOTOGRAPHS[kind]
    faces = faces_of(photograph)
    for face, other in (faces, faces[::-1]):
        middle = np.s_[SIZE // 2 - 16 : SIZE // 2 + 16, SIZE // 2 - 16 : SIZE // 2 + 16]
        crop = hiding.crop_alone(photograph, face, [other], SIZE)
        np.testing.assert_array_equal(crop[middle], alignment.crop(photograph, face.square, SIZE)[middle])


def test_a_face_alone_in_the_middle_of_its_photograph_is_cut_out_as_ffhq_does():
    photograph = np.asarray(portrait())
    (face,) = faces_of(photograph)
    expected = alignment.crop(photograph, face.square, SIZE)
    np.testing.assert_array_equal(hiding.crop_alone(photograph, face, [], SIZE), expected)


def test_the_padding_shows_no_mirrored_face():
    """A face that the border cuts would be seen again in the mirrored padding, where no method replaces it."""
    photograph = np.asarray(portrait())[:, 105:]
    (face,) = faces_of(photograph)
    crop = hiding.crop_alone(photograph, face, [], SIZE)
    noise = np.random.default_rng(0).integers(0, 256, photograph.shape, dtype=np.uint8)
    shown = composition.face_mask(face.points, photograph.shape)
    shown[:, :8] = False  # the colors at the border are continued
    inside = cv2.erode(shown.astype(np.uint8), np.ones((9, 9))).astype(bool)[..., None]
    noisy = np.where(inside, noise, photograph)
    places = alignment.out_of_crop(np.stack(np.meshgrid(range(SIZE), range(SIZE)), axis=-1), face.square, SIZE)
    padding = places[..., 0] < -1
    assert padding.any()
    plain = [alignment.crop(picture, face.square, SIZE)[padding].astype(int) for picture in (photograph, noisy)]
    assert np.abs(plain[0] - plain[1]).max() > 50
    difference = np.abs(hiding.crop_alone(noisy, face, [], SIZE).astype(int) - crop)[padding]
    assert difference.max() <= 5, "gray levels: the padding is blurred before it is filled"


@pytest.mark.parametrize("place", [-3.0, 0.0, 2.4, 4.0, 4.6, 9.0])
def test_a_pixel_outside_is_mirrored_as_opencv_does_it(place):
    """-3 -> 3, 4.6 -> 3.4 and 9 -> 1 in a line of 5 pixels."""
    mirrored = hiding._reflect(np.array([place, 0.0]), (1, 5))
    whole = {-3.0: 3.0, 0.0: 0.0, 2.4: 2.4, 4.0: 4.0, 4.6: 3.4, 9.0: 1.0}
    np.testing.assert_allclose(mirrored, [whole[place], 0.0], atol=1e-9)
    if place == int(place):
        assert cv2.borderInterpolate(int(place), 5, cv2.BORDER_REFLECT_101) == whole[place]
