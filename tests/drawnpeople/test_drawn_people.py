"""Sampled people and pictures: within their ranges, different, and described by their attributes and captions."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawnpeople.attributes import INNER, NAMES, OUTER, attributes, caption
from drawnpeople.expressions import FACES, sample_actions
from drawnpeople.features import CHANGES, CROOKED, LIMIT, SIDES
from drawnpeople.person import STYLES
from drawnpeople.sampling import BEARDS, OLDEST, YOUNGEST, sample_person
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, action_weights
from drawnpeople.shot import PITCH, RANGES, ROLL, YAW, Conditions, sample_shot
from drawnpeople.skin import skin_tone
from drawnpeople.surroundings import HATS, OCCLUDERS, PLACES
from drawnpeople.template import template
from masquerade.backbones.semantics.network import words_of
from masquerade.params import loading

STUDIO = Conditions(yaw=9.0, pitch=4.5, roll=2.0, jitter=0.008, light=0.25, noise=0.008, blur=0.0, occlusion=0.0)
WILD = Conditions(yaw=30.0, pitch=15.0, roll=12.0, jitter=0.05, light=1.0, noise=0.1, blur=0.02, occlusion=0.5)
SEEDS = st.integers(min_value=0, max_value=2**32 - 1)


def face(number: int, conditions: Conditions = STUDIO, **changes):
    """A person and a picture, with changes to the picture."""
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


def test_the_two_sides_of_a_face_are_almost_equal():
    names = template().local_names
    pairs = [(names.index(name), names.index("r-" + name[2:])) for name in names if name.startswith("l-")]
    for number in range(40):
        local = sample_person(generator(9, number)).local
        assert max(abs(float(local[a]) - float(local[b])) for a, b in pairs) <= 2.0 * CROOKED + 1e-6


def test_every_local_change_of_the_table_is_one_of_the_template():
    bare = {name[2:] if name.startswith(SIDES) else name for name in template().local_names}
    assert set(CHANGES) <= bare


def test_women_differ_from_men_in_measures_of_the_face():
    """Signs of known sexual dimorphism, over 200 people."""
    people = [sample_person(generator(5, number)) for number in range(200)]
    measured = [Body(person).measured for person in people]

    def mean(name: str, male: bool) -> float:
        return float(np.mean([m[name] for m, person in zip(measured, people, strict=True) if person.male is male]))

    for name in ("nose_width", "nose_length", "face_length", "chin_width"):
        assert mean(name, male=True) > mean(name, male=False), name
    for name in ("eye_opening", "lips_height", "brow_height"):
        assert mean(name, male=True) < mean(name, male=False), name


def test_hair_turns_gray_and_hairlines_recede_with_age():
    people = [sample_person(generator(6, number)) for number in range(400)]
    assert all(person.gray == 0.0 for person in people if person.age < 36.0)
    assert np.mean([person.gray > 0.5 for person in people if person.age > 70.0]) > 0.3
    young, old = (
        np.mean([person.recede for person in people if person.male and low < person.age < high])
        for low, high in ((16, 30), (60, 90))
    )
    assert old > young + 0.005


def test_skin_darkens_with_melanin():
    tones = np.stack([skin_tone(melanin) for melanin in np.linspace(0, 1, 50)])
    assert (np.diff(tones, axis=0) < 0.0).all()
    assert (np.diff(tones, axis=1) < 0.0).all(), "red over green over blue"


@pytest.mark.parametrize("name", FACES)
def test_expressions_are_actions_of_the_template(name):
    weights = action_weights(sample_actions(generator(0, name), name, 1.1), template())
    assert 0.0 <= weights.min() <= weights.max() <= 1.0


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("wrong", [-0.001, 1e3, math.nan])
def test_a_condition_outside_its_range_is_refused_by_name(name, wrong):
    with pytest.raises(ValueError, match=f"^{name} is "):
        dataclasses.replace(STUDIO, **{name: wrong})


def test_harder_light_and_more_occlusion_do_what_they_say():
    def shots(**changes):
        conditions = dataclasses.replace(STUDIO, **changes)
        return [face(number, conditions)[1] for number in range(150)]

    soft, hard = ([s.key.mean() / s.sky.mean() for s in shots(light=light)] for light in (0.0, 1.0))
    assert np.mean(hard) > 1.5 * np.mean(soft)
    assert all(shot.occluder for shot in shots(occlusion=1.0))
    assert not any(shot.place == "night" for shot in shots(light=0.0))


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


def test_formal_captions_use_the_words_of_lreorgs_templates(root):
    """Captions have every word of the sentences in params.yaml, so the small text-image model reads them."""
    block = loading.load(root, "paper").methods["lreorg"]
    keywords = {**block.params.keywords, **block.variants["default"].further}
    said = set()
    for number in range(400):
        person, shot = face(number)
        text, known = caption(person, shot, formal=True), attributes(person, shot, Body(person))
        assert text.startswith("A photo of a ")
        assert ("female person" in text) is not known["Male"]
        assert ("heavy makeup" in text) is known["Heavy_Makeup"]
        assert ("no makeup" in text) is (shot.makeup == 0)
        assert ("gray" in text) is (known["Gray_Hair"] or (person.gray > 0.5 and person.style != "bald"))
        said |= set(words_of(text))
    for name, keyword in keywords.items():
        for sentence in keyword.sentences:
            assert set(words_of(sentence)) <= said, f"{name}: no caption says a word of {sentence!r}"


@pytest.mark.parametrize("scale", ["mini"])
def test_captions_say_the_words_of_a_scales_keywords(root, scale):
    """The sentences with which the scale's text-image model is asked are made of the captions' words."""
    block = loading.load(root, scale).methods["lreorg"]
    keywords = {**block.params.keywords, **block.variants["default"].further}
    said = {word for number in range(400) for word in words_of(caption(*face(number), formal=number % 2 == 1))}
    for name, keyword in keywords.items():
        for sentence in (*keyword.sentences, keyword.condition):
            assert set(words_of(sentence)) <= said, f"{name}: no caption says a word of {sentence!r}"
