"""Sampled people and images: within their ranges, different, described by their attributes; and their geometry."""

import dataclasses
import hashlib
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawnpeople.attributes import INNER, NAMES, OUTER, attributes, caption
from drawnpeople.features import LIMIT
from drawnpeople.kernels import EMPTY, raster
from drawnpeople.person import STYLES
from drawnpeople.sampling import BEARDS, OLDEST, YOUNGEST, sample_person
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, Head, action_weights
from drawnpeople.shot import PITCH, RANGES, ROLL, YAW, Conditions, sample_shot
from drawnpeople.skin import skin_tone
from drawnpeople.surroundings import HATS, OCCLUDERS, PLACES
from drawnpeople.template import FILE, template
from masquerade.backbones.semantics.network import split_words
from masquerade.params import loading

STUDIO = Conditions(yaw=9.0, pitch=4.5, roll=2.0, jitter=0.008, light=0.25, noise=0.008, blur=0.0, occlusion=0.0)
WILD = Conditions(yaw=30.0, pitch=15.0, roll=12.0, jitter=0.05, light=1.0, noise=0.1, blur=0.02, occlusion=0.5)
SEEDS = st.integers(min_value=0, max_value=2**32 - 1)


def face(number: int, conditions: Conditions = STUDIO, **changes):
    """A person and an image, with changes to the image."""
    person = sample_person(generator(3, number))
    return person, dataclasses.replace(sample_shot(generator(4, number), person, conditions), **changes)


def same(one, other) -> bool:
    """Whether two dataclasses have equal fields, arrays included."""
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one)
    )


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_people_are_within_their_ranges(seed):
    person = sample_person(generator(seed))
    assert YOUNGEST <= person.age <= OLDEST
    assert person.ancestry.sum() == pytest.approx(1.0, abs=1e-6)
    assert (person.ancestry >= 0).all()
    assert person.local.shape == (len(template().local_names),)
    assert person.local.dtype == np.float32
    assert np.abs(person.local).max() <= LIMIT
    for name in ("muscle", "weight", "melanin", "rosy", "freckles", "wrinkles", "eye_bags", "lip_red", "brow_arch",
                 "gray", "curl", "glasses", "smiles", "lipstick", "hat", "gloss"):  # fmt: skip
        assert 0.0 <= getattr(person, name) <= 1.0, name
    assert person.style in STYLES
    assert person.beard in BEARDS
    assert (person.beard_length == 0.0) is (person.beard == "none")
    assert person.male or (person.beard == "none" and person.style != "bald")
    assert not person.male or person.lipstick == 0.0
    for color in (person.hair, person.iris, skin_tone(person.melanin)):
        assert color.dtype == np.float32
        assert ((color > 0.0) & (color < 1.0)).all()
    assert Body(person).measured


@given(SEEDS, st.sampled_from([STUDIO, WILD]))
@settings(max_examples=60, deadline=None)
def test_pictures_are_within_their_ranges(seed, conditions):
    person = sample_person(generator(seed))
    shot = sample_shot(generator(seed, "picture"), person, conditions)
    assert abs(shot.yaw) <= YAW
    assert abs(shot.pitch) <= PITCH
    assert abs(shot.roll) <= ROLL
    assert math.isclose(float((shot.light.astype(np.float64) ** 2).sum()), 1.0, abs_tol=1e-5)
    assert shot.light[1] < 0.0, "the key light stands behind the head"
    assert min(shot.key.min(), shot.sky.min(), shot.ground.min()) > 0.0
    assert ((shot.clothing > 0.0) & (shot.clothing < 1.0)).all()
    assert 0.0 <= shot.noise <= conditions.noise
    assert 0.0 <= shot.blur <= conditions.blur
    assert shot.place in PLACES
    assert shot.hat in ("", *HATS)
    assert shot.occluder in ("", *OCCLUDERS)
    assert not (conditions.occlusion == 0.0 and shot.occluder)
    assert (shot.makeup > 0.0) is (shot.lipstick > 0.0)
    action_weights(shot.actions, template())  # raises on an unknown action or an amount outside [0, 1]


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_same_seed_samples_the_same_person_and_picture(seed):
    one, other = (sample_person(generator(seed)) for _ in range(2))
    assert same(one, other)
    assert same(*(sample_shot(generator(seed, 1), one, WILD) for _ in range(2)))
    assert not same(one, sample_person(generator(seed + 1)))


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("wrong", [-0.001, 1e3, math.nan])
def test_a_condition_outside_its_range_is_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} is "):
        dataclasses.replace(STUDIO, **{name: wrong})


def test_every_attribute_is_known_and_varies():
    assert not set(INNER) & set(OUTER)
    known = []
    for number in range(600):
        person, shot = face(number)
        known.append(attributes(person, shot, Body(person)))
    assert set(known[0]) == set(NAMES)
    for name in NAMES:
        share = np.mean([row[name] for row in known])
        assert 0.02 <= share <= 0.95, (name, share)


def test_captions_mention_the_attributes():
    for number in range(100):
        person, shot = face(number, glasses="")
        text = caption(person, dataclasses.replace(shot, glasses="round"))
        known = attributes(person, shot, Body(person))
        assert "eyeglasses" in text
        assert "eyeglasses" not in caption(person, shot)
        assert ("bald" in text) is known["Bald"]
        assert ("smiling" in text) is (shot.expression == "happy") is known["Smiling"]
        assert ("man" if known["Male"] else "woman") in text.split()
        assert ("bangs" in text) is known["Bangs"]
        assert any(word in text for word in ("beard", "moustache", "goatee", "stubble")) is not known["No_Beard"]
        if known["Gray_Hair"]:
            assert "grey" in text  # captions keep their bytes


def test_captions_use_the_words_of_lreorgs_templates(root):
    """The small text-image model reads the sentences in params.yaml, because captions have every word of them."""
    formal_words, words = set(), set()
    for number in range(400):
        person, shot = face(number)
        text, known = caption(person, shot, formal=True), attributes(person, shot, Body(person))
        assert text.startswith("A photo of a ")
        assert ("female person" in text) is not known["Male"]
        assert ("heavy makeup" in text) is known["Heavy_Makeup"]
        assert ("no makeup" in text) is (shot.makeup == 0)
        assert ("gray" in text) is (known["Gray_Hair"] or (person.gray > 0.5 and person.style != "bald"))
        formal_words |= set(split_words(text))
        words |= set(split_words(text if number % 2 else caption(person, shot, formal=False)))
    for scale, said, is_asked in (("paper", formal_words, False), ("mini", words, True)):
        block = loading.load(root, scale).methods["lreorg"]
        for name, keyword in {**block.params.keywords, **block.variants["default"].further}.items():
            for sentence in (*keyword.sentences, *([keyword.condition] if is_asked else [])):
                assert set(split_words(sentence)) <= said, f"{name}: no caption says a word of {sentence!r}"


LEFT_EYE, RIGHT_EYE = slice(36, 42), slice(42, 48)
N = 256


def person(number: int = 0, **changes):
    return dataclasses.replace(sample_person(generator(3, "head", number)), **changes)


def plain(number: int = 0, **changes):
    """An image of a face without expression that looks at us, with the given changes."""
    still = {"yaw": 0.0, "pitch": 0.0, "roll": 0.0, "shift": np.zeros(2), "zoom": 1.0, "distance": 1.5, "actions": {}}
    return dataclasses.replace(
        sample_shot(generator(4, "head", number), person(number), STUDIO), **{**still, **changes}
    )


def points(number: int = 0, **changes) -> np.ndarray:
    return Head(Body(person(number)), plain(number, **changes), N).landmarks()


def materials(head: Head) -> np.ndarray:
    """The material that each sample shows, (N, N); -1 where there is no head."""
    base = template()
    ids, depth = np.full((N, N), -1, np.int32), np.full((N, N), EMPTY, np.float32)
    solid = np.ascontiguousarray(base.triangles[: base.solid])
    raster(head.camera.project(head.points), solid, 0, ids, np.zeros((N, N, 3), np.float32), depth)
    return np.where(ids >= 0, base.material[ids], -1)


def test_file_has_the_hash_and_the_counts_that_its_card_tells():
    card, base = FILE.with_suffix(".md").read_text(), template()
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() in card
    assert FILE.stat().st_size < 8e6
    told = re.search(r"([\d,]+) vertices, ([\d,]+) triangles, (\d+) blend shapes", card)
    assert told
    shown = [int(count.replace(",", "")) for count in told.groups()]
    assert shown == [len(base.vertices), len(base.triangles), len(base.names)]


@pytest.mark.parametrize("pose", [{}, {"yaw": 25.0}, {"yaw": -25.0, "pitch": 10.0}, {"pitch": -12.0}])
def test_landmarks_have_the_order_of_ibug(pose):
    for number in range(6):
        marks = points(number, **pose)
        back = -0.02 * N if pose else -0.01 * N  # an ear or a jaw can lie behind the near cheek
        assert (np.diff(marks[:17, 0]) > back).all()
        assert (np.diff(marks[17:27, 0]) > 0).all()
        assert (np.diff(marks[27:31, 1]) > 0).all()
        assert marks[36, 0] < marks[39, 0] < marks[42, 0] < marks[45, 0]
        assert marks[37, 1] < marks[41, 1]
        assert marks[44, 1] < marks[46, 1]
        assert marks[48, 0] < marks[51, 0] < marks[54, 0]
        assert marks[51, 1] < marks[57, 1]
        assert marks[8, 1] >= marks[:, 1].max() - 3


def test_contour_points_lie_on_the_silhouette_of_the_half_that_is_turned_away():
    base, moved = template(), 0.0
    for number in range(4):
        for yaw in (-35.0, 35.0):
            head = Head(Body(person(number)), plain(number, yaw=yaw), N)
            marks = head.landmarks()
            far = range(1, 5) if yaw < 0 else range(12, 16)
            for k in far:
                row = round(float(marks[k, 1]))
                columns = np.flatnonzero(materials(head)[row] >= 0)
                edge = columns[0] if yaw < 0 else columns[-1]
                assert abs(marks[k, 0] - edge) < 0.02 * N
            fixed = head.camera.project(head.points[base.landmarks[list(far)]])[:, :2]
            moved = max(moved, float(np.abs(fixed - marks[list(far)]).max()))
    assert moved > 0.02 * N


def test_crop_is_that_of_ffhq():
    """Of an upright face: the side is the larger of 4 eye distances and 3.6 eye-mouth distances, 0.1 below the eyes."""
    for number in range(6):
        marks = points(number).astype(np.float64)
        left, right = marks[LEFT_EYE].mean(0), marks[RIGHT_EYE].mean(0)
        eyes, mouth = (left + right) / 2, (marks[48] + marks[54]) / 2
        side = max(4.0 * np.hypot(*(right - left)), 3.6 * np.hypot(*(mouth - eyes)))
        assert side == pytest.approx(N, rel=2e-3)
        np.testing.assert_allclose(eyes + 0.1 * (mouth - eyes), [(N - 1) / 2, (N - 1) / 2], atol=0.2)


def test_positive_angles_look_right_up_and_lean_right():
    def tip_from_eyes(**pose):
        marks = points(6, **pose)
        return marks[30] - (marks[LEFT_EYE].mean(0) + marks[RIGHT_EYE].mean(0)) / 2, marks

    straight, _ = tip_from_eyes()
    assert tip_from_eyes(yaw=20.0)[0][0] > straight[0] + 6 > tip_from_eyes(yaw=-20.0)[0][0] + 6
    assert tip_from_eyes(pitch=12.0)[0][1] < straight[1] < tip_from_eyes(pitch=-12.0)[0][1]
    leaning = tip_from_eyes(roll=10.0)[1]
    assert leaning[45, 1] > leaning[36, 1] + 6  # the eye on the image's right is the lower one


@pytest.mark.parametrize(
    ("of", "change", "text"),
    [
        (person, {"weight": 1.5}, "weight is 1.5; allowed are values from 0 to 1"),
        (person, {"ancestry": np.array([0.5, 0.6, 0.2])}, "ancestry is .* sum to 1"),
        (person, {"local": np.zeros(3)}, "local has 3 amounts; allowed are 139"),
        (plain, {"distance": float("nan")}, "distance is nan"),
        (plain, {"actions": {"wink": 1.0}}, "there is no facial action wink; there are .*eyeBlinkLeft"),
    ],
)
def test_person_or_shot_outside_its_range_is_refused_by_name(of, change, text):
    with pytest.raises(ValueError, match=text):
        Head(Body(person(0, **(change if of is person else {}))), plain(0, **(change if of is plain else {})), N)
