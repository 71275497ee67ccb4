"""The drawn datasets: their people, rows, order and captions; the same bytes for a seed and any number of workers."""

import numpy as np
import pytest

from drawnpeople.attributes import INNER, NAMES, OUTER
from drawnpeople.labels import LABEL
from drawnpeople.sampling import OLDEST, YOUNGEST
from drawnpeople.shot import STUDIO, WILD, Conditions
from masquerade.core import annotations, discovery
from masquerade.faces.rendered import make_person, render

CALM = Conditions(yaw=4.0, pitch=2.0, roll=1.0, jitter=0.0, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)
MOUTH = slice(48, 60)  # the outer edge of the lips
SPLITS = ("train", "validation", "test")


def each(pictures: int) -> dict[str, int]:
    """The same number of images for every person."""
    return dict.fromkeys(SPLITS, pictures)


def dataset(name: str = "synthetic_hq", people: int = 2, conditions: Conditions = STUDIO, **changes):
    common = {"identities": {"train": people, "validation": 1, "test": people}, "supersampling": 1}
    own = {"pictures_per_identity": each(2)} if name == "synthetic_hq" else {"single_share": 0.5, "pictures_most": 4}
    kind = discovery.load("faces", name)
    rendered = kind(kind.Params(**{**common, **own, **changes}))
    rendered.conditions = conditions
    return rendered


@pytest.fixture(scope="module")
def hq():
    """Seventeen people, two images each, at 128 pixels."""
    return list(dataset(people=8, conditions=CALM, supersampling=2).records(128, seed=0, workers=1))


def test_same_seed_draws_the_same_bytes_and_another_seed_does_not():
    def drawn(seed):
        return render(("hq", "test", 0, 1, seed, WILD, 48, 1))

    first, other = drawn(0), drawn(1)
    again = drawn(0)  # after another person, so nothing that is kept of the first one helps
    assert np.array_equal(first.picture, again.picture)
    assert np.array_equal(first.mask, again.mask)
    assert first.row == again.row
    assert not np.array_equal(first.picture, other.picture)


def test_workers_change_neither_the_order_nor_a_pixel():
    alone, together = (list(dataset().records(32, seed=5, workers=workers)) for workers in (1, 2))
    assert [record.row for record in alone] == [record.row for record in together]
    assert all(np.array_equal(a.picture, b.picture) for a, b in zip(alone, together, strict=True))
    assert all(np.array_equal(a.mask, b.mask) for a, b in zip(alone, together, strict=True))


def test_picture_does_not_depend_on_the_number_of_people_and_pictures():
    few = {record.row["id"]: record.picture for record in dataset().records(32, 0, 1)}
    more = dataset(people=3, pictures_per_identity=each(3)).records(32, 0, 1)
    many = {record.row["id"]: record.picture for record in more}
    assert set(few) < set(many)
    assert all(np.array_equal(picture, many[name]) for name, picture in few.items())


def test_no_person_is_in_two_splits_or_two_datasets():
    people = [
        make_person(prefix, split, number, 0) for prefix in ("hq", "wild") for split in SPLITS for number in range(20)
    ]
    assert len({(person.local.tobytes(), person.age, person.texture) for person in people}) == len(people)


def test_rows_are_named_and_complete(hq):
    assert [record.row["id"] for record in hq][:3] == ["hq-train-0000-00", "hq-train-0000-01", "hq-train-0001-00"]
    assert len({record.row["id"] for record in hq}) == len(hq) == (8 + 1 + 8) * 2
    assert {record.row["split"] for record in hq} == set(SPLITS)
    for record in hq:
        assert record.row["id"].startswith(record.row["identity"])
        known = {key.removeprefix("attribute.") for key in record.row if key.startswith("attribute.")}
        assert known == {*NAMES, "age", "expression"}
        assert all(type(record.row[f"attribute.{name}"]) is bool for name in NAMES)
        assert YOUNGEST <= record.row["attribute.age"] <= OLDEST
        assert len(record.row["landmarks"]) == 2 * 68


def test_count_is_the_number_of_faces():
    for name in ("synthetic_hq", "synthetic_wild"):
        made = dataset(name, people=1)
        splits = [record.row["split"] for record in made.records(16, 3, 1)]
        assert {split: splits.count(split) for split in SPLITS} == made.count(3)


def test_landmarks_lie_inside_and_on_their_parts_of_the_face(hq):
    """Glasses hide eyes, so the nose and the lips stand for all parts."""
    for record in hq:
        name, mask = record.row["id"], record.mask
        points = np.array(record.row["landmarks"]).reshape(68, 2)
        assert (points > 0).all(), name
        assert (points < 127).all(), name
        x, y = np.rint(points[30]).astype(int)
        assert mask[y, x] == LABEL["nose"], name
        rows, columns = np.nonzero(np.isin(mask, [LABEL["u_lip"], LABEL["l_lip"]]))
        lips = points[MOUTH]
        for seen, told in ((columns, lips[:, 0]), (rows, lips[:, 1])):
            assert abs(seen.min() - told.min()) < 2.5, name
            assert abs(seen.max() - told.max()) < 2.5, name


def test_masks_have_the_classes_of_a_face_on_their_sides(hq):
    """In names with l_ and r_, l_ is the side on the left of the image."""
    always = {"background", "skin", "nose", "u_lip", "l_lip", "neck"}
    seen = set()
    for record in hq:
        shown = {annotations.CLASSES[number] for number in np.unique(record.mask)}
        assert always <= shown, record.row["id"]
        seen |= shown
        for part in ("brow", "eye", "ear"):
            columns = [np.nonzero(record.mask == LABEL[f"{side}_{part}"])[1] for side in "lr"]
            if all(map(len, columns)):
                assert columns[0].mean() < columns[1].mean(), (record.row["id"], part)
    assert seen >= always | {"hair", "mouth", "cloth", "l_brow", "r_brow", "l_eye", "r_eye", "l_ear", "r_ear"}


def test_wild_has_people_with_one_picture_and_people_with_several():
    wild = dataset("synthetic_wild")
    counts = [wild.count_images(0, "train", number) for number in range(300)]
    assert 0.4 < np.mean(np.array(counts) == 1) < 0.6
    assert max(counts) == 4
    assert counts.count(2) > counts.count(4) > 0


def test_the_renderer_names_attributes_and_classes_as_the_datasets_do():
    assert tuple(LABEL) == annotations.CLASSES
    assert INNER == annotations.INNER
    assert set(OUTER) < set(annotations.OUTER)
