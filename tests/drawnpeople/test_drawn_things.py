"""Places, clothes, hats, glasses and occluders of drawn faces: each kind is drawn where it should be, only there."""

import hashlib
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from drawnpeople import clothes, glasses, hats, occluders, places, props
from drawnpeople.labels import LABEL
from drawnpeople.renderer import Figure, draw
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, Head
from drawnpeople.shot import Conditions, Shot, sample_shot
from drawnpeople.template import template

F = np.float32
CALM = Conditions(yaw=4.0, pitch=2.0, roll=1.0, jitter=0.0, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)
BARE = {"hat": "", "glasses": "", "occluder": ""}


@pytest.fixture(scope="module")
def figure() -> Figure:
    return Figure(sample_person(generator(3, "person")))


@pytest.fixture(scope="module")
def shot(figure) -> Shot:
    return replace(sample_shot(generator(3, "shot"), figure.person, CALM), **BARE)


@pytest.mark.parametrize("place", places.PLACES)
def test_every_place_is_light_of_its_seed(place, shot):
    shot = replace(shot, place=place)
    picture = places.background(shot, 96)
    assert picture.shape == (96, 96, 3)
    assert picture.dtype == np.float32
    assert np.isfinite(picture).all()
    assert picture.min() >= 0
    assert 0.003 < picture.mean() < 6
    np.testing.assert_array_equal(picture, places.background(shot, 96))
    assert np.abs(picture - places.background(replace(shot, texture=shot.texture + 1), 96)).max() > 0.01


@pytest.mark.parametrize("place", places.PLACES)
def test_a_place_shows_the_same_at_every_size(place, shot):
    shot = replace(shot, place=place)
    small, large = places.background(shot, 64), places.background(shot, 256)
    mean = large.reshape(64, 4, 64, 4, 3).mean((1, 3))
    assert np.abs(small - mean).mean() < 0.15 * large.mean() + 0.01


def test_places_have_muted_colors(shot):
    for place in places.PLACES:
        means = [places.background(replace(shot, place=place, texture=seed), 32).mean((0, 1)) for seed in range(12)]
        chroma = np.median([(mean.max() - mean.min()) / mean.max() for mean in means])
        assert chroma < (0.95 if place == "foliage" else 0.75), place


@pytest.mark.parametrize("collar", clothes.COLLARS)
def test_every_collar_covers_the_chest_and_not_the_face(collar, figure, shot):
    shot = replace(shot, collar=collar)
    garment, vertices = clothes.garment(figure.person, shot), template().vertices
    cover = garment.cover(vertices)
    assert (cover[vertices[:, 2] > 0.66] < 0).all()
    assert (cover[(vertices[:, 2] < 0.50) & (np.abs(vertices[:, 0]) > 0.08)] > 0).all()
    colors = garment.color(vertices, np.zeros((len(vertices), 2), F))
    assert 0 < colors.min() <= colors.max() < 1.2
    _check(clothes.things(figure.person, shot, figure.body), "cloth")


@pytest.mark.parametrize("pattern", clothes.PATTERNS)
def test_every_pattern_dyes_the_cloth_in_its_own_way(pattern, figure, shot):
    chest = template().vertices[template().vertices[:, 2] < 0.55]
    uv = np.zeros((len(chest), 2), F)
    colors = np.array([[0.5, 0.5, 0.5], [0.05, 0.05, 0.3]], F)
    dyed = clothes.garment(figure.person, replace(shot, collar="crew", pattern=pattern, clothing=colors)).color(
        chest, uv
    )
    plain = clothes.garment(figure.person, replace(shot, collar="crew", pattern="plain", clothing=colors)).color(
        chest, uv
    )
    assert (np.abs(dyed - plain).max() > 0.05) == (pattern != "plain")


@pytest.mark.parametrize("hat", hats.HATS)
def test_every_hat_sits_on_the_skull(hat, figure, shot):
    shot = replace(shot, hat=hat)
    parts = props.things(figure.person, shot, figure.body)
    _check(parts, "hat")
    top = figure.body.neutral[:, 2].max()
    assert max(part.vertices[:, 2].max() for part in parts) > top
    covered = props.hat_covers(template().vertices, shot)
    assert covered[template().vertices[:, 2] > 0.81].all()
    assert not covered[template().vertices[:, 2] < 0.70].any()
    assert not props.hat_covers(template().vertices, replace(shot, hat="")).any()


def test_hair_below_a_hat_is_cut_and_what_hangs_out_stays(figure, shot):
    head = Head(figure.body, replace(shot, hat="cap"), 64)
    middle = head.eyes.mean(0)
    inside = middle + np.array([[0, 0.06, 0.09], [0, 0.06, 0.085], [0, 0.07, 0.08]], F)
    hanging = middle + np.array([[0.07, 0.06, 0.09], [0.08, 0.06, 0.02], [0.08, 0.06, -0.05]], F)
    cut = props.tuck(np.stack([inside, hanging]), head)
    assert (cut[0, :, 2] < middle[2] - 5).all()
    np.testing.assert_array_equal(cut[1, 1:], hanging[1:])
    np.testing.assert_array_equal(cut[1, 0], hanging[1])
    bare = Head(figure.body, shot, 64)
    np.testing.assert_array_equal(props.tuck(inside[None], bare), inside[None])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", glasses.RIMS)
def test_glasses_stand_before_the_eyes_of_any_person(shape, seed, shot):
    body = Body(sample_person(generator(seed, "wearer")))
    made = glasses.frame(replace(shot, glasses=shape), body)
    for rim, eye in zip(made.lines, (template().left_eye, template().right_eye), strict=False):
        ball = body.neutral[eye]
        assert rim[:, 1].max() < ball[:, 1].min() + 0.012
        assert rim[:, 0].min() < ball[:, 0].mean() < rim[:, 0].max()
        assert rim[:, 2].min() < ball[:, 2].mean() < rim[:, 2].max()
        assert 0.002 < ball[:, 1].min() - rim[:, 1].min() < 0.04
    for temple, side in zip(made.lines[3:], (1, -1), strict=True):
        assert (np.sign(temple[:, 0]) == side).all()
        assert temple[-1, 1] > -0.09


@pytest.mark.parametrize("shape", glasses.RIMS)
def test_glasses_change_only_the_region_of_the_eyes(shape, figure, shot):
    bare, worn = draw(figure, shot, 64), draw(figure, replace(shot, glasses=shape), 64)
    region = worn.mask == LABEL["eye_g"]
    assert 0.03 < region.mean() < 0.30
    eyes = bare.landmarks[36:48]
    y = round(float(eyes[:, 1].mean()))
    assert region[y - 6 : y + 6].sum() > 0.5 * region.sum()
    assert not (worn.mask[np.rint(eyes[:, 1]).astype(int), np.rint(eyes[:, 0]).astype(int)] == LABEL["skin"]).any()
    changed = np.abs(bare.picture.astype(int) - worn.picture).max(-1) > 40
    assert changed.any()
    assert not changed[int(bare.landmarks[8, 1]) - 2 :].any()


@pytest.mark.parametrize("hat", hats.HATS)
def test_a_hat_is_in_the_mask_above_the_brows(hat, figure, shot):
    drawing = draw(figure, replace(shot, hat=hat), 64)
    rows, _ = np.nonzero(drawing.mask == LABEL["hat"])
    assert len(rows) > 0.06 * drawing.mask.size
    assert rows.mean() < drawing.landmarks[17:27, 1].min()
    assert (drawing.mask == LABEL["skin"]).mean() > 0.08


@pytest.mark.parametrize("occluder", occluders.MODELS)
def test_every_occluder_hides_part_of_the_lower_face(occluder, figure, shot):
    bare = draw(figure, shot, 64)
    seeds = [replace(shot, occluder=occluder, texture=shot.texture + k) for k in range(4)]
    for number, one in enumerate(seeds):
        drawing = draw(figure, one, 64)
        hidden = (drawing.mask == LABEL["background"]) & (bare.mask != LABEL["background"])
        assert 0.02 < hidden.mean() < 0.5, number
        assert not hidden[: int(bare.landmarks[19, 1]) - 8].any()
        changed = np.abs(bare.picture.astype(int) - drawing.picture).max(-1) > 6
        assert changed[hidden].mean() > 0.7
    assert (draw(figure, seeds[0], 64).picture != draw(figure, seeds[1], 64).picture).any()
    np.testing.assert_array_equal(draw(figure, seeds[0], 64).picture, draw(figure, seeds[0], 64).picture)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("place", lambda figure, shot: places.background(shot, 32)),
        ("collar", lambda figure, shot: clothes.garment(figure.person, shot)),
        ("pattern", lambda figure, shot: clothes.garment(figure.person, shot)),
        ("hat", lambda figure, shot: props.things(figure.person, shot, figure.body)),
        ("glasses", lambda figure, shot: glasses.frame(shot, figure.body)),
        (
            "occluder",
            lambda figure, shot: props.occlude(np.zeros((8, 8, 3), F), np.zeros((8, 8), np.uint8), shot, None, None),
        ),
    ],
)
def test_an_unknown_kind_is_refused_by_name(field, call, figure, shot):
    with pytest.raises(ValueError, match="'balloon': choose one of"):
        call(figure, replace(shot, **{field: "balloon"}))


def _check(things, label: str) -> None:
    """Finite meshes of which every triangle has an area."""
    assert things
    for thing in things:
        assert thing.label == LABEL[label]
        assert thing.vertices.dtype == thing.color.dtype == thing.share.dtype == np.float32
        assert thing.triangles.dtype == np.int32
        assert np.isfinite(thing.vertices).all()
        assert 0 < thing.color.min() <= thing.color.max() < 1.2
        assert 0 <= thing.share.min() <= thing.share.max() <= 1
        assert 0 <= thing.triangles.min() <= thing.triangles.max() < len(thing.vertices)


SCRIPT = """
import hashlib
from dataclasses import replace
from drawnpeople.seeding import generator
from drawnpeople import places
from drawnpeople.sampling import sample_person
from drawnpeople.shot import Conditions, sample_shot
calm = Conditions(yaw=4.0, pitch=2.0, roll=1.0, jitter=0.0, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)
person = sample_person(generator(3, "person"))
shot = sample_shot(generator(3, "shot"), person, calm)
drawn = b"".join(places.background(replace(shot, place=place), 64).tobytes() for place in places.PLACES)
print(hashlib.sha256(drawn).hexdigest())
"""


@pytest.mark.slow
def test_places_have_the_same_bytes_on_an_old_processor(shot, tmp_path):
    old = {"NUMBA_CPU_NAME": "x86-64", "NUMBA_CPU_FEATURES": "+sse2", "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F"}
    environment = os.environ | old | {"NUMBA_CACHE_DIR": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, check=True)
    here = b"".join(places.background(replace(shot, place=place), 64).tobytes() for place in places.PLACES)
    assert run.stdout.strip() == hashlib.sha256(here).hexdigest()
