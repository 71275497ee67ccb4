"""The images of rendered faces: recorded hashes, the kernels, and what is known of an image."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image
from scipy import ndimage
from typer.testing import CliRunner

from drawnpeople import kernels
from drawnpeople.labels import LABEL
from drawnpeople.renderer import Drawing, Figure, draw
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.sheet import sheet
from drawnpeople.shot import STUDIO, WILD, sample_shot
from masquerade.cli.main import app
from masquerade.core.images import to_float

RECORDED = "1c4851910fb2787ab087c62fae0a822ee5c105ff8cfe823f683f4cde863a9c9f"
"""SHA-256 of images, masks and landmarks of six people. Numba's code for a processor without AVX gives the same."""
LEFT_EYE, RIGHT_EYE = slice(36, 42), slice(42, 48)


def drawn(number: int, size: int = 64, wild: bool = False, supersampling: int = 2) -> Drawing:
    person = sample_person(generator(5, number))
    shot = sample_shot(generator(6, number), person, WILD if wild else STUDIO)
    return draw(Figure(person), shot, size, supersampling)


def test_pictures_masks_and_landmarks_are_the_recorded_bytes():
    total = hashlib.sha256()
    for number in range(6):
        one = drawn(number, wild=number % 2 == 1)
        for part in (one.picture, one.mask, one.landmarks):
            total.update(part.tobytes())
    assert total.hexdigest() == RECORDED


@pytest.mark.parametrize("size", [32, 64, 129])
def test_pictures_and_masks_have_the_requested_size_and_a_full_range(size):
    one = drawn(1, size)
    assert one.picture.shape == (size, size, 3)
    assert one.picture.dtype == np.uint8
    assert one.mask.shape == (size, size)
    assert one.mask.max() < len(LABEL)
    assert one.picture.std() > 20


def test_eyes_of_the_landmarks_are_eyes_of_the_mask():
    for number in range(8):
        one = drawn(number, 128)
        for part, labels in ((LEFT_EYE, ("l_eye", "eye_g")), (RIGHT_EYE, ("r_eye", "eye_g"))):
            x, y = np.rint(one.landmarks[part].mean(0)).astype(int)
            around = one.mask[y - 2 : y + 3, x - 2 : x + 3]
            assert np.isin(around, [LABEL[label] for label in labels]).any(), number


def test_detectors_and_the_landmark_model_of_dlib_agree_with_the_drawing():
    from masquerade.judges.dlib_face import DlibFace

    all_drawn = [drawn(number, 128) for number in range(16)]
    found = DlibFace(DlibFace.Params(), {}).measure(to_float(np.stack([one.picture for one in all_drawn])))
    assert found["detected"].sum() >= 15
    seen = found["detected"].astype(bool)
    truth = np.stack([one.landmarks for one in all_drawn])[seen]
    spacing = np.linalg.norm(truth[:, LEFT_EYE].mean(1) - truth[:, RIGHT_EYE].mean(1), axis=1)
    error = np.linalg.norm(found["landmarks"].reshape(-1, 68, 2)[seen] - truth, axis=2).mean(1) / spacing
    assert error.mean() < 0.09


def test_sheet_has_every_person_once_and_refuses_what_it_cannot_draw():
    picture = sheet(5, 32, seed=1)
    assert picture.shape == (64, 96, 3)
    assert (picture[32:, 64:] == 255).all()
    assert not np.array_equal(picture[:32, :32], picture[:32, 32:64])
    with pytest.raises(ValueError, match="people is 0"):
        sheet(0, 32, seed=1)
    with pytest.raises(ValueError, match="size is 8; allowed are 16 to 1024"):
        sheet(1, 8, seed=1)


def test_the_command_writes_a_sheet(tmp_path):
    result = CliRunner().invoke(app, ["faces", "--people", "2", "--size", "32", "--output", str(tmp_path / "s.png")])
    assert result.exit_code == 0, result.output
    assert "2 people" in result.output
    assert Image.open(tmp_path / "s.png").size == (64, 32)


F = np.float32


def test_exponential_and_powers_agree_with_double_precision():
    x = np.linspace(-80, 80, 20_001).astype(F)
    np.testing.assert_allclose(kernels.exponential(x), np.exp(x.astype(float)), rtol=3e-7)
    assert (kernels.exponential(np.array([-100.0, -1e9], F)) == 0).all()
    y = np.exp(np.linspace(-6, 6, 4001)).astype(F)
    for exponent in (0.25, 1 / 2.2, 1.0, 2.2):
        np.testing.assert_allclose(kernels.power(y, exponent), y.astype(float) ** F(exponent), rtol=5e-6)
    assert kernels.power(np.zeros(1, F), 0.5) == 0


@settings(deadline=None)  # the first call compiles
@given(arrays(F, (9, 14), elements=st.floats(0, 1, width=32)), st.floats(0.4, 3.0))
def test_blur_is_a_gaussian_that_keeps_the_mean_of_a_constant(field, sigma):
    blurred = kernels.blur(field, sigma)
    expected = ndimage.gaussian_filter(field.astype(float), sigma, mode="nearest", truncate=5)
    assert np.abs(blurred - expected).max() < 0.03  # cut at 2.6 deviations
    np.testing.assert_allclose(kernels.blur(np.full((5, 6, 3), F(0.7)), sigma), 0.7, rtol=1e-5)


def _drawn(points, triangles, side=16):
    ids, bary = np.full((side, side), -1, np.int32), np.zeros((side, side, 3), F)
    depth = np.full((side, side), kernels.EMPTY, F)
    kernels.raster(np.array(points, F), np.array(triangles, np.int32), 5, ids, bary, depth)
    return ids, bary, depth


def test_rasteriser_covers_the_samples_inside_a_triangle_and_interpolates():
    points, triangle = [[2, 2, 1], [13, 2, 2], [2, 13, 3]], [[0, 1, 2]]
    ids, bary, depth = _drawn(points, triangle)
    y, x = np.mgrid[:16, :16]
    np.testing.assert_array_equal(ids == 5, (x >= 2) & (y >= 2) & (x + y <= 15))
    inside = ids >= 0
    np.testing.assert_allclose(bary[inside].sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose(depth[inside], 1 + (x - 2)[inside] / 11 + 2 * (y - 2)[inside] / 11, rtol=1e-5)
    corners = np.array([[[0, 0], [1, 0], [0, 1]]], F)
    values, places = kernels.interpolate(np.array(triangle, np.int32), ids - 5, bary, np.array(points, F), corners)
    np.testing.assert_allclose(values[:, 0], x[inside], atol=1e-4)
    np.testing.assert_allclose(places[:, 1] * 11, (y - 2)[inside], atol=1e-4)


def test_nearer_triangle_hides_the_other_in_any_order():
    near, far = [[0, 0, 1], [15, 0, 1], [0, 15, 1]], [[0, 0, 2], [15, 0, 2], [0, 15, 2]]
    for points, first in ((near + far, 5), (far + near, 6)):
        ids, _, depth = _drawn(points, [[0, 1, 2], [3, 4, 5]])
        assert set(ids[ids >= 0]) == {first}
        assert depth[ids >= 0].max() == 1
