"""The procedural faces: pictures agree with their masks, landmarks and attributes."""

import dataclasses

import numpy as np
import pytest

from masquerade.backbones.semantics.network import words_of
from masquerade.core import discovery
from masquerade.core.images import to_float
from masquerade.core.seeding import generator
from masquerade.faces._drawn.attributes import INNER, NAMES, OUTER, attributes, caption
from masquerade.faces._drawn.geometry import Head, crop, landmarks, rotation
from masquerade.faces._drawn.paint import LABEL
from masquerade.faces._drawn.procedural import person_of, render
from masquerade.faces._drawn.renderer import draw
from masquerade.faces._drawn.sampling import sample_person
from masquerade.faces._drawn.shot import Conditions, sample_shot
from masquerade.params import loading

STUDIO = Conditions(yaw=9.0, pitch=4.5, roll=2.0, jitter=0.008, light=0.25, noise=0.008, blur=0.0, occlusion=0.0)
LEFT_EYE, RIGHT_EYE, MOUTH = slice(36, 42), slice(42, 48), slice(48, 60)


def each(pictures: int) -> dict[str, int]:
    """The same number of pictures for every person."""
    return dict.fromkeys(("train", "validation", "test"), pictures)


def dataset(name: str = "synthetic_hq", people: int = 2, **changes):
    common = {
        "identities": {"train": people, "validation": 1, "test": people},
        **{field.name: getattr(STUDIO, field.name) for field in dataclasses.fields(STUDIO)},
        "supersampling": 2,
    }
    own = {"pictures_per_identity": each(2)} if name == "synthetic_hq" else {"single_share": 0.5, "pictures_most": 4}
    kind = discovery.load("faces", name)
    return kind(kind.Params(**{**common, **own, **changes}))


def face(number: int = 0, take: int = 0, **changes):
    """A person and a plain frontal shot without spectacles, hat or fringe, with the given changes."""
    person = sample_person(generator(3, number))
    plain = {
        "yaw": 0.0, "pitch": 0.0, "roll": 0.0, "shift": np.zeros(2), "zoom": 1.0, "glasses": "", "hat": "",
        "fringe": 0.0, "noise": 0.0, "occluder": "",
    }  # fmt: skip
    return person, dataclasses.replace(sample_shot(generator(4, number, take), person, STUDIO), **{**plain, **changes})


@pytest.fixture(scope="module")
def hq():
    return list(dataset(people=8).records(96, seed=0, workers=1))


def test_same_seed_draws_the_same_bytes_and_another_seed_does_not():
    job = ("hq", "test", 0, 1, 0, STUDIO, 48, 2)
    first, again = render(job), render(job)
    other = render(("hq", "test", 0, 1, 1, STUDIO, 48, 2))
    assert np.array_equal(first.picture, again.picture)
    assert first.row == again.row
    assert not np.array_equal(first.picture, other.picture)


def test_workers_change_neither_the_order_nor_a_pixel():
    alone, together = (list(dataset().records(32, seed=5, workers=workers)) for workers in (1, 2))
    assert [record.row for record in alone] == [record.row for record in together]
    assert all(np.array_equal(a.picture, b.picture) for a, b in zip(alone, together, strict=True))


def test_picture_does_not_depend_on_the_number_of_pictures():
    few = {record.row["id"]: record.picture for record in dataset().records(32, 0, 1)}
    many = {
        record.row["id"]: record.picture
        for record in dataset(people=3, pictures_per_identity=each(3)).records(32, 0, 1)
    }
    assert set(few) < set(many)
    assert all(np.array_equal(picture, many[name]) for name, picture in few.items())


def test_no_person_is_in_two_splits_or_two_datasets():
    people = [
        person_of(prefix, split, number, 0)
        for prefix in ("hq", "wild")
        for split in ("train", "validation", "test")
        for number in range(20)
    ]
    assert len({(person.chin_drop, person.eye_x, person.texture) for person in people}) == len(people)


def test_rows_are_named_and_complete(hq):
    assert [record.row["id"] for record in hq][:3] == ["hq-train-0000-00", "hq-train-0000-01", "hq-train-0001-00"]
    assert len({record.row["id"] for record in hq}) == len(hq) == (8 + 1 + 8) * 2
    for record in hq:
        assert record.row["id"].startswith(record.row["identity"])
        assert set(record.row) >= {f"attribute.{name}" for name in NAMES}
        assert isinstance(record.row["attribute.Male"], bool)
        assert 5 <= record.row["attribute.age"] <= 86


@pytest.mark.parametrize("size", [32, 64, 129])
def test_pictures_and_masks_have_the_requested_size_and_a_full_range(size):
    drawing = draw(*face(1), size, 2)
    assert drawing.picture.shape == (size, size, 3)
    assert drawing.picture.dtype == np.uint8
    assert drawing.mask.shape == (size, size)
    assert drawing.mask.max() < len(LABEL)
    assert drawing.picture.std() > 20
    assert ((drawing.picture > 0) & (drawing.picture < 255)).mean() > 0.98


def test_size_changes_the_resolution_and_not_the_scene():
    small, large = draw(*face(2), 48, 4), draw(*face(2), 96, 2)
    reduced = large.picture.reshape(48, 2, 48, 2, 3).mean((1, 3))
    assert np.abs(reduced - small.picture).mean() < 3.0
    np.testing.assert_allclose((small.landmarks + 0.5) * 2 - 0.5, large.landmarks, atol=1e-3)


def test_landmarks_lie_on_their_parts_of_the_face():
    for number in range(8):
        drawing = draw(*face(number), 192, 2)
        points, mask = drawing.landmarks, drawing.mask
        for part, label in ((LEFT_EYE, "l_eye"), (RIGHT_EYE, "r_eye")):
            x, y = np.rint(points[part].mean(0)).astype(int)
            assert mask[y, x] == LABEL[label], number
        rows, columns = np.nonzero(np.isin(mask, [LABEL["u_lip"], LABEL["l_lip"], LABEL["mouth"]]))
        lips = points[MOUTH]
        assert abs(columns.min() - lips[:, 0].min()) < 4
        assert abs(columns.max() - lips[:, 0].max()) < 4
        assert abs(rows.min() - lips[:, 1].min()) < 4
        assert abs(rows.max() - lips[:, 1].max()) < 4
        x, y = np.rint(points[30]).astype(int)
        assert mask[y, x] == LABEL["nose"]


def test_landmarks_have_the_order_of_ibug():
    points = draw(*face(0), 128, 1).landmarks
    assert (points >= 0).all()
    assert (points < 128).all()
    assert (np.diff(points[:17, 0]) > 0).all()  # the jaw from the picture's left to its right
    assert (np.diff(points[17:27, 0]) > 0).all()
    assert (np.diff(points[27:31, 1]) > 0).all()
    assert points[36, 0] < points[39, 0] < points[42, 0] < points[45, 0]
    assert points[37, 1] < points[41, 1]
    assert points[44, 1] < points[46, 1]
    assert points[48, 0] < points[51, 0] < points[54, 0]
    assert points[51, 1] < points[57, 1]
    assert points[8, 1] == points[:, 1].max()


def test_crop_is_that_of_ffhq():
    """Of an upright face: the side is the larger of 4 eye distances and 3.6 eye-mouth distances, 0.1 below the eyes."""
    person, shot = face(5)
    points = landmarks(Head(person, shot), rotation(0, 0, 0))
    left, right = points[LEFT_EYE, :2].mean(0), points[RIGHT_EYE, :2].mean(0)
    eyes, mouth = (left + right) / 2, (points[48, :2] + points[54, :2]) / 2
    centre, side = crop(points)
    assert side == pytest.approx(max(4.0 * (right - left)[0], 3.6 * (eyes - mouth)[1]), rel=1e-6)
    np.testing.assert_allclose(centre, eyes + 0.1 * (mouth - eyes), atol=1e-6)


def test_positive_angles_look_right_up_and_lean_right():
    def tip_from_eyes(**pose):
        points = draw(*face(6, **pose), 128, 1).landmarks
        return points[30] - (points[LEFT_EYE].mean(0) + points[RIGHT_EYE].mean(0)) / 2, points

    straight, _ = tip_from_eyes()
    assert tip_from_eyes(yaw=20.0)[0][0] > straight[0] + 3 > tip_from_eyes(yaw=-20.0)[0][0] + 3
    assert tip_from_eyes(pitch=12.0)[0][1] < straight[1] < tip_from_eyes(pitch=-12.0)[0][1]
    leaning = tip_from_eyes(roll=10.0)[1]
    assert leaning[45, 1] > leaning[36, 1] + 3  # the eye on the picture's right is the lower one


def test_expression_moves_the_mouth_and_its_landmarks():
    def corners_above_middle(**change):
        points = draw(*face(7, **change), 128, 1).landmarks
        return points[[51, 57], 1].mean() - points[[48, 54], 1].mean(), points[66, 1] - points[62, 1]

    calm = {"smile": 0.0, "mouth_open": 0.0, "frown": 0.0, "shows_teeth": False}
    assert corners_above_middle(**{**calm, "smile": 1.0})[0] > corners_above_middle(**calm)[0] + 1
    assert corners_above_middle(**{**calm, "mouth_open": 0.8})[1] > corners_above_middle(**calm)[1] + 3


def test_masks_show_the_props_of_the_attributes():
    for name, change, label in (
        ("Eyeglasses", {"glasses": "square"}, "eye_g"),
        ("Wearing_Hat", {"hat": "knitted hat"}, "hat"),
    ):
        for on in (False, True):
            person, shot = face(0, **(change if on else {}))
            mask = draw(person, shot, 128, 2).mask
            assert attributes(person, shot)[name] is on
            assert bool((mask == LABEL[label]).sum() > 50) is on


def test_every_attribute_is_known_and_varies():
    assert not set(INNER) & set(OUTER)
    people = [sample_person(generator(0, number)) for number in range(300)]
    known = [attributes(person, sample_shot(generator(1, i), person, STUDIO)) for i, person in enumerate(people)]
    assert set(known[0]) == set(NAMES)
    for name in NAMES:
        share = np.mean([row[name] for row in known])
        assert 0.01 < share < 0.97, (name, share)


def test_captions_mention_the_attributes():
    for number in range(60):
        person, shot = face(number)
        text, known = caption(person, dataclasses.replace(shot, glasses="round")), attributes(person, shot)
        assert "eyeglasses" in text
        assert "eyeglasses" not in caption(person, shot)
        assert ("bald" in text) is known["Bald"]
        assert ("smiling" in text) is (shot.expression == "happy")
        assert any(word in text.split() for word in (("man", "boy") if known["Male"] else ("woman", "girl")))
        if known["Gray_Hair"]:
            assert "grey" in text


def test_formal_captions_use_the_words_of_lreorgs_templates(root):
    """Captions have every word of the sentences in params.yaml, so the small text-image model reads them."""
    block = loading.load(root, "paper").methods["lreorg"]
    keywords = {**block.params.keywords, **block.variants["default"].further}
    said = set()
    for number in range(400):
        person, shot = face(number)
        text, known = caption(person, shot, formal=True), attributes(person, shot)
        assert text.startswith("A photo of a ")
        assert ("female person" in text) is not known["Male"]
        assert ("heavy makeup" in text) is known["Heavy_Makeup"]
        assert ("no makeup" in text) is (shot.makeup == 0)
        assert ("gray" in text) is (known["Gray_Hair"] or (person.grey > 0.5 and person.style != "bald"))
        said |= set(words_of(text))
    for name, keyword in keywords.items():
        for sentence in keyword.sentences:
            assert set(words_of(sentence)) <= said, f"{name}: no caption says a word of {sentence!r}"


def test_half_of_the_people_have_formal_captions():
    made = [record.row for record in dataset("synthetic_hq").records(16, 0, 1)]
    for row in made:
        number = int(row["identity"].rsplit("-", 1)[1])
        assert row["caption"].startswith("A photo of") is (number % 2 == 1)


def test_wild_has_people_with_one_picture_and_people_with_several():
    wild = dataset("synthetic_wild")
    counts = [wild.pictures(0, "train", number) for number in range(300)]
    assert 0.4 < np.mean(np.array(counts) == 1) < 0.6
    assert max(counts) == 4
    assert counts.count(2) > counts.count(4) > 0


def test_hog_and_the_landmark_model_of_dlib_agree_with_the_drawing(hq):
    from masquerade.judges.dlib_face import DlibFace

    measured = DlibFace(DlibFace.Params(), {}).measure(to_float(np.stack([record.picture for record in hq[:16]])))
    assert measured["detected"].all()
    truth = np.stack([record.row["landmarks"] for record in hq[:16]]).reshape(-1, 68, 2)
    spacing = np.linalg.norm(truth[:, LEFT_EYE].mean(1) - truth[:, RIGHT_EYE].mean(1), axis=1)
    error = np.linalg.norm(measured["landmarks"].reshape(-1, 68, 2) - truth, axis=2).mean(1) / spacing
    assert error.mean() < 0.12
