"""People in three dimensions: the same bytes, pictures that agree with masks and landmarks, and the sheet."""

import hashlib

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from drawnpeople.labels import LABEL
from drawnpeople.renderer import Drawing, Figure, draw
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.sheet import sheet
from drawnpeople.shot import STUDIO, WILD, sample_shot
from masquerade.cli.main import app
from masquerade.core.images import to_float

RECORDED = "1c4851910fb2787ab087c62fae0a822ee5c105ff8cfe823f683f4cde863a9c9f"
"""SHA-256 of pictures, masks and landmarks of six people. Numba's code for a processor without AVX gives the same."""
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


def test_size_changes_the_resolution_and_not_the_scene():
    small, large = drawn(2, 64), drawn(2, 128)
    reduced = large.picture.reshape(64, 2, 64, 2, 3).mean((1, 3))
    assert np.abs(reduced - small.picture).mean() < 8.0
    np.testing.assert_allclose((small.landmarks + 0.5) * 2 - 0.5, large.landmarks, atol=0.1)


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
