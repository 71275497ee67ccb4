"""The dataset of generated people: who is drawn, that no image depends on chance, and what is known of it."""

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from masquerade import faces
from masquerade.core import discovery
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive
from masquerade.faces.generated import Recipe, generated_dataset

SEED = 3
PICTURES = {"train": 2, "validation": 1, "test": 1, "gallery": 1}  # of the only person of a split


@pytest.fixture(scope="module")
def block(request) -> dict:
    import yaml

    root = Path(request.config.rootpath)
    block = yaml.safe_load((root / "params.yaml").read_text())["datasets"]["generated_hq"]
    weights = {name: f"{root}/{block[name].replace(':', '/')}.safetensors" for name in ("head", "parser")}
    few = {"identities": {"train": 1, "validation": 1, "test": 1}, "pictures_per_identity": PICTURES}
    return {**block, **weights, **few}


@pytest.fixture(scope="module", autouse=True)
def few_directions():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generated_dataset, "DIRECTION_IMAGES", 8)
        yield


def dataset(block: dict, **changes):
    cls = discovery.load("faces", "generated_hq")
    return cls(cls.Params(**{**block, **changes}))


@pytest.fixture(scope="module")
def drawn(block) -> list:
    """What one process drew without an interruption."""
    return list(dataset(block).records(256, SEED, 1))


def assert_same(records: list, others: list) -> None:
    for one, other in zip(records, others, strict=True):
        assert one.row == other.row
        np.testing.assert_array_equal(one.picture, other.picture)


def test_splits_share_nobody_and_their_sizes_are_known_before(drawn, block):
    rows = pd.DataFrame([record.row for record in drawn])
    assert rows.groupby("split").size().to_dict() == dataset(block).count(SEED) == PICTURES
    assert rows["identity"].nunique() == 3
    assert rows["identity"][rows["split"] == "gallery"].tolist() == rows["identity"][rows["split"] == "test"].tolist()
    assert rows["id"].is_unique
    assert len({record.picture.tobytes() for record in drawn}) == 5
    assert all(record.picture.shape == (256, 256, 3) for record in drawn)


def test_each_row_has_landmarks_inside_the_picture_a_pose_attributes_and_a_caption(drawn):
    for record in drawn:
        points = np.array(record.row["landmarks"])
        assert points.shape == (136,)
        assert points.min() >= 0
        assert points.max() <= 255
        assert abs(record.row["pose.yaw"]) < 60
        assert record.row["detected"]
        assert isinstance(record.row["attribute.Male"], bool)
        assert 0 <= record.row["attribute.age"] <= 80
        assert record.row["caption"].startswith("A ")
    one, other = drawn[:2]
    for shared in ("attribute.age", "attribute.Male", "attribute.Young"):
        assert one.row[shared] == other.row[shared], "of a person"


def test_an_interrupted_drawing_goes_on_in_several_processes_and_gives_the_same_faces(drawn, block, tmp_path):
    interrupted = dataset(block)
    interrupted.parts_folder = tmp_path
    first = interrupted.records(256, SEED, 2)
    next(first)
    first.close()
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.zip")}
    assert parts, "the first person is kept"
    again = dataset(block)
    again.parts_folder = tmp_path
    assert_same(list(again.records(256, SEED, 2)), drawn)
    assert all(path.stat().st_mtime_ns == time for path, time in parts.items()), "and not drawn again"


def test_the_archive_has_the_faces_and_its_groups_and_no_parts_stay(drawn, block, tmp_path):
    archive, earlier = tmp_path / "generated_hq.zip", dataset(block)

    def records(*_):
        (earlier.parts_folder / "part").mkdir(parents=True)
        yield from drawn

    earlier.records = records
    shares = {"backbones": 1.0, "judges": 0.0, "methods": 0.0, "attackers": 0.0}
    faces.build(earlier, archive, 256, SEED, shares)
    built = FaceArchive(archive)
    np.testing.assert_array_equal(built.pictures(built.index), [record.picture for record in drawn])
    assert built.index["group"].tolist() == ["backbones", "backbones", "", "", ""]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["generated_hq.parquet", "generated_hq.zip"]


def test_another_size_than_the_generators_is_an_error(block):
    with pytest.raises(ParameterError, match=r"draws 256 pixels, and image.size is 128"):
        next(dataset(block).records(128, SEED, 1))


def test_limits_that_nobody_keeps_are_an_error(block, monkeypatch):
    from masquerade.faces.generated import drawing

    monkeypatch.setattr(drawing, "FARTHEST", 0.01)
    hq = dataset(block)
    studio = drawing.Studio(Recipe("generated_hq", hq.params, hq.conditions, SEED))
    with pytest.raises(ParameterError, match="no image of 50 people passes the filter"):
        next(studio.draw_person(np.zeros((7, drawing.STYLE)), "train", 0, 1))


def test_without_the_package_the_reason_says_how_to_install_it(block, monkeypatch):
    from masquerade.assets import packaged

    assert dataset(block).available() == (True, "")
    monkeypatch.setattr(packaged, "find_spec", lambda _: None)
    available, why = dataset(block).available()
    assert not available
    assert "make photo" in why


@pytest.mark.parametrize("angles", itertools.product((-25.0, 0.0, 25.0), (-15.0, 10.0), (-10.0, 0.0)))
def test_the_pose_of_a_turned_head_is_found_from_its_points(angles):
    import cv2

    from masquerade.faces.generated import labels

    yaw, pitch, roll = np.radians(angles)
    turned = labels.MODEL @ _rotation(yaw, pitch, roll).T
    points = np.zeros((68, 2))
    nothing, far = np.zeros(3), np.array([0.0, 0.0, 4000.0])
    points[labels.SIX] = cv2.projectPoints(turned, nothing, far, labels.CAMERA, None)[0][:, 0]
    np.testing.assert_allclose(labels.measure_pose(points / 2, 128), angles, atol=0.5)


def _rotation(yaw: float, pitch: float, roll: float) -> np.ndarray:
    """x to the right, y down, z away from the camera: the nose, at -z, goes right, up; the head leans to the right."""
    c, s = np.cos, np.sin
    turn = np.array([[c(yaw), 0, -s(yaw)], [0, 1, 0], [s(yaw), 0, c(yaw)]])
    nod = np.array([[1, 0, 0], [0, c(pitch), s(pitch)], [0, -s(pitch), c(pitch)]])
    lean = np.array([[c(roll), -s(roll), 0], [s(roll), c(roll), 0], [0, 0, 1]])
    return nod @ turn @ lean


def test_captions_use_the_words_of_drawn_people():
    from masquerade.faces.generated.labels import write_caption

    names = ("Male", "Smiling", "Mouth_Slightly_Open", "Eyeglasses", "Black_Hair", "Blond_Hair", "Brown_Hair")
    old = {**dict.fromkeys(names, True), "Black_Hair": False, "Brown_Hair": False, "age": 70.0}
    assert write_caption(old, 20.0, formal=True) == (
        "A photo of a old male person with blond hair, wearing eyeglasses, smiling, mouth slightly open, looking to "
        "the right."
    )
    young = {**dict.fromkeys(names, False), "age": 25.0}
    assert write_caption(young, 0.0, formal=False) == "A young woman, with a neutral expression."


@pytest.mark.parametrize(
    ("color", "age", "name"),
    [
        ((30, 26, 25), 30.0, "Black_Hair"),
        ((95, 65, 45), 30.0, "Brown_Hair"),
        ((200, 165, 110), 30.0, "Blond_Hair"),
        ((150, 150, 148), 60.0, ""),
    ],
)
def test_hair_has_one_of_three_colors_unless_it_is_gray(color, age, name):
    from masquerade.core.annotations import CLASSES
    from masquerade.faces.generated.labels import label_hair

    mask = np.zeros((64, 64), np.uint8)
    mask[:20] = CLASSES.index("hair")
    picture = np.where(mask[..., None] > 0, np.uint8(color), np.uint8(255))
    assert [known for known, has in label_hair(picture, mask, age).items() if has] == ([name] if name else [])
    assert not any(label_hair(picture, np.zeros_like(mask), age).values()), "no hair is seen"
