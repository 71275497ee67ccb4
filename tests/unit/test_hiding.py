"""Nothing of a face that no method draws reaches a file: in the crops of others, and in whole photographs."""

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from skimage.data import astronaut

import masquerade
from command_line import anonymize_from_seed as anonymize
from command_line import portrait, report, repository, written
from masquerade.cli.outcome import INCOMPLETE
from masquerade.faces.photographs import alignment, composition, hiding
from masquerade.faces.photographs.alignment import Square
from masquerade.faces.photographs.composition import Replacement, compose
from masquerade.faces.photographs.hiding import Face
from masquerade.pipeline import whole_photographs
from masquerade.pipeline.inspection import Inspector
from masquerade.pipeline.photographs import single

SMALLEST = 128  # pixels: the narrowest square that a method draws, as in params.yaml
TOO_SMALL = "the face is too small: its square is less than 128 pixels wide"
HEAD = (70, 10, 250, 210)  # of the portrait
SIX = ((20, 60, 60), (120, 40, 70), (220, 70, 80), (330, 40, 90), (450, 60, 100), (570, 30, 110))
"""Left, top and width in pixels of six heads, whose faces are 30 to 55 pixels wide."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = repository(tmp_path)
    parameters = made / "params.yaml"
    parameters.write_text(parameters.read_text().replace("smallest: 32", f"smallest: {SMALLEST}"))
    return made


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "photographs"
    folder.mkdir()
    return folder


@pytest.fixture
def noise(root) -> masquerade.Anonymizer:
    return masquerade.load("gaussian_noise", seed=1, root=root)


def street(*heads: tuple[int, int, int], width: int = 720, height: int = 300) -> Image.Image:
    """A street with the astronaut's head at each left, top and width in pixels."""
    rows, columns = np.mgrid[:height, :width]
    waves = [110 + 40 * np.sin(rows / 31 + columns / 47 + shift) for shift in (0, 1, 2)]
    scene = Image.fromarray(np.stack(waves, axis=-1).astype(np.uint8))
    for left, top, across in heads:
        head = portrait().crop(HEAD)
        scene.paste(head.resize((across, across * head.height // head.width), Image.Resampling.LANCZOS), (left, top))
    return scene


def with_bystander() -> Image.Image:
    """The portrait, and a small face at the right."""
    scene = street((420, 60, 70), width=560)
    scene.paste(portrait(), (0, 0))
    return scene


def found(picture: Image.Image | np.ndarray) -> list[np.ndarray]:
    """The boxes that HOG and MTCNN find, also in small faces."""
    pixels = np.asarray(picture)
    judge = Inspector()
    return [*alignment.detect(pixels, 1280, 0.3), *judge.find_faces(pixels, 1280)]


def changed_in_faces(before: Image.Image, after: np.ndarray) -> list[float]:
    """The share of changed pixels in each face, forehead and chin included, that HOG finds in an upright scene."""
    pixels = np.asarray(before)
    changed = np.abs(after.astype(int) - pixels).sum(axis=2) > 0
    points = [alignment.landmarks(pixels, box) for box in alignment.detect(pixels, 1280, 0.3)]
    return [changed[composition.face_mask(found, pixels.shape)].mean() for found in points]


def photograph(output: Path, row: dict[str, str]) -> Image.Image:
    with Image.open(output / row["photograph"]) as picture:
        return picture.convert("RGB")


def test_a_street_scene_of_six_small_faces_is_written_with_every_head_hidden(root, pictures, tmp_path, capsys):
    street(*SIX).save(pictures / "street.png")
    assert len(found(street(*SIX))) == 12, "both detectors find all six"
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
    row = report(tmp_path / "out")["street.png"]
    assert (row["status"], row["reason"], row["output"]) == ("hidden", TOO_SMALL, "")
    assert (row["photograph_reason"], row["photograph_hidden"]) == ("", "6")
    assert found(photograph(tmp_path / "out", row)) == []
    printed = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "1 whole photographs written, every face replaced or hidden" in printed
    assert "6 faces hidden in them under coarse blocks" in printed
    assert "refused" not in printed


def test_one_small_bystander_does_not_stop_a_photograph(root, pictures, tmp_path):
    with_bystander().save(pictures / "pair.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
    last = report(tmp_path / "out")["pair.png"]
    assert (last["status"], last["photograph_hidden"]) == ("hidden", "1")
    assert float(last["photograph_distance"]) > 0.65
    after = np.asarray(photograph(tmp_path / "out", last))
    drawn, hidden = changed_in_faces(with_bystander(), after)
    assert drawn > 0.9
    assert hidden > 0.98
    assert (after[250:] == np.asarray(with_bystander())[250:]).all()


def test_small_refuse_refuses_the_photograph_as_before(root, pictures, tmp_path, capsys):
    with_bystander().save(pictures / "pair.png")
    street(*SIX).save(pictures / "street.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs", "--small", "refuse") == INCOMPLETE
    rows = report(tmp_path / "out")
    assert (rows["pair.png"]["status"], rows["pair.png"]["reason"]) == ("refused", TOO_SMALL)
    assert rows["pair.png"]["photograph_reason"] == "not every face of it could be replaced"
    assert (rows["street.png"]["status"], rows["street.png"]["photograph_reason"]) == ("refused", TOO_SMALL)
    assert not (tmp_path / "out" / "photographs").exists()
    assert anonymize(root, pictures, tmp_path / "no", "--small", "hide") == 1
    assert "Add --photographs" in " ".join(capsys.readouterr().err.split())


def test_a_still_recognized_face_refuses_the_photograph_and_hides_nobody(root, pictures, tmp_path):
    """A disc over it would pass a failure of the method off as a result."""
    with_bystander().save(pictures / "pair.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs", "--variant", "weak") == 1
    row = report(tmp_path / "out")["pair.png"]
    assert (row["status"], row["photograph_reason"]) == ("refused", "not every face of it could be replaced")
    assert written(tmp_path / "out") == {"report.csv"}


def test_a_lying_face_that_only_the_last_search_finds_is_hidden(root, pictures, tmp_path):
    group = street(width=680, height=340)
    group.paste(portrait(), (0, 0))
    group.paste(portrait().rotate(90), (330, 20))
    group.save(pictures / "pair.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
    (row,) = report(tmp_path / "out").values()
    assert (row["status"], row["photograph_hidden"]) == ("ok", "1")
    after = np.asarray(photograph(tmp_path / "out", row))
    (hidden,) = changed_in_faces(group.rotate(-90, expand=True), np.rot90(after, 3))
    assert hidden > 0.98


def test_faces_too_small_for_the_first_search_are_hidden_too(root, pictures, tmp_path):
    """A large photograph is reduced before it is searched, so that HOG misses all of its small faces."""
    scene = street((300, 200, 70), (900, 300, 80), width=2000, height=900)
    scene.save(pictures / "street.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
    (row,) = report(tmp_path / "out").values()
    assert (row["status"], row["reason"]) == ("hidden", "no face was found that can be cut out")
    assert row["photograph_hidden"] == "2"
    assert found(photograph(tmp_path / "out", row).crop((200, 100, 1100, 500))) == []


def test_a_photograph_without_anybody_is_refused_as_before(root, pictures, tmp_path):
    street().save(pictures / "street.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 1
    (row,) = report(tmp_path / "out").values()
    assert (row["status"], row["reason"], row["photograph"]) == ("refused", "no face was found", "")


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_heads_of_a_turned_photograph_are_hidden_at_their_place(root, pictures, tmp_path, quarters):
    upright = street((60, 60, 100), (240, 80, 90), width=420)
    turned = np.ascontiguousarray(np.rot90(np.asarray(upright), quarters))
    Image.fromarray(turned).save(pictures / "street.png")
    assert anonymize(root, pictures, tmp_path / "out", "--photographs") == 0
    row = report(tmp_path / "out")["street.png"]
    assert (row["status"], row["photograph_hidden"]) == ("hidden", "2")
    after = np.rot90(np.asarray(photograph(tmp_path / "out", row)), -quarters)
    assert min(changed_in_faces(upright, after)) > 0.98


class TestNothingOfAHeadIsLeft:
    HEADS = np.array([[60.0, 50.0, 30.0], [95.0, 60.0, 25.0], [230.0, 10.0, 40.0]])

    @pytest.mark.parametrize("shape", [(120, 240), (60, 100)])
    def test_the_filled_photograph_does_not_depend_on_it(self, shape):
        photograph = np.asarray(street(width=shape[1], height=shape[0]))
        other = self._noise_in(photograph, hiding.draw_mask(self.HEADS, photograph.shape))
        nowhere = np.zeros(shape, dtype=bool)
        filled = hiding.hide(photograph, self.HEADS, nowhere)
        np.testing.assert_array_equal(filled, hiding.hide(other, self.HEADS, nowhere))
        outside = ~hiding.draw_mask(self.HEADS, photograph.shape)
        np.testing.assert_array_equal(filled[outside], photograph[outside])

    def test_neither_does_the_finished_one_nor_on_the_face_beside(self):
        photograph = np.asarray(street(width=240, height=160))
        square = Square(np.array([120.0, 90.0]), np.array([60.0, 0.0]))
        points = square.center + np.random.default_rng(0).uniform(-25, 25, (68, 2))
        face = Replacement(square, points, np.full((64, 64, 3), 90, np.uint8))
        old = composition.face_mask(points, photograph.shape)
        assert (old & hiding.draw_mask(self.HEADS, photograph.shape)).any(), "a disc lies over a part of the face"
        other = self._noise_in(photograph, hiding.draw_mask(self.HEADS, photograph.shape) | old)
        first, second = (whole_photographs._compose(each, [face], self.HEADS) for each in (photograph, other))
        np.testing.assert_array_equal(first.picture, second.picture)

    @staticmethod
    def _noise_in(photograph: np.ndarray, where: np.ndarray) -> np.ndarray:
        noise = np.random.default_rng(0).integers(0, 256, photograph.shape, dtype=np.uint8)
        return np.where(where[..., None], noise, photograph)


class TestPython:
    def test_a_photograph_says_how_many_faces_are_hidden(self, noise):
        result = noise.anonymize(with_bystander(), faces="all")
        assert (len(result.faces), result.hidden) == (1, 1)
        assert 0.65 < result.distance < 2
        assert noise.anonymize(portrait(), faces="all").hidden == 0

    def test_what_refuses_a_photograph_is_raised_and_not_its_small_faces(self, root):
        weak = masquerade.load("gaussian_noise", "weak", root=root)
        scene = with_bystander().transpose(Image.Transpose.FLIP_LEFT_RIGHT)  # the bystander comes first
        with pytest.raises(masquerade.StillRecognized):
            weak.anonymize(scene, faces="all")

    @pytest.mark.parametrize(("reason", "kind"), [
        ("a face is left in it that was not replaced", masquerade.FaceLeft),
        ("still recognized", masquerade.StillRecognized),
        ("not every face of it could be replaced", masquerade.PictureError),
    ])  # fmt: skip
    def test_a_photograph_that_is_refused_as_a_whole_says_why(self, reason, kind, tmp_path):
        shown = {"photograph": "", "photograph_reason": reason, "photograph_distance": "0.5"}
        small = {"status": "refused", "reason": TOO_SMALL, "head": [1.0, 1.0, 1.0], **shown}
        drawn = {"status": "ok", "reason": "", "threshold": "0.65", **shown}
        with pytest.raises(masquerade.PictureError) as raised:
            single.make_result([small, drawn], tmp_path, {})
        assert type(raised.value) is kind
        assert (str(raised.value) == TOO_SMALL) == (kind is masquerade.PictureError)


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
        """Steps across the seam are those of the photograph, although the new image is darker by 30 gray levels."""
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
