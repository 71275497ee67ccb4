"""Places, hats, glasses, occluders, hair and beards: each is drawn where it should be, and only there."""

import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from drawnpeople import clothes, glasses, growth, hair, hats, occluders, places, props, roots, strand_kernels, strands
from drawnpeople.labels import LABEL
from drawnpeople.person import STYLES
from drawnpeople.renderer import Figure, draw
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.shot import Conditions, Shot, sample_shot
from drawnpeople.template import CELL, GRID0, template

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
        ("hat", lambda figure, shot: props.things(figure.person, shot, figure.body)),
        ("glasses", lambda figure, shot: glasses.frame(shot, figure.body)),
    ],
)
def test_an_unknown_kind_is_refused_by_name(field, call, figure, shot):
    with pytest.raises(ValueError, match="'balloon': choose one of"):
        call(figure, replace(shot, **{field: "balloon"}))


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


@pytest.fixture(scope="module")
def person():
    return replace(sample_person(generator(4, "hair")), recede=0.002, curl=0.3, part=0.01, beard="full", dense=1.0)


@dataclass
class Still:
    """A head that leaves every point of the template where it is."""

    turn = np.eye(3, dtype=F)

    def carry(self, points, skin=None):
        return points


@dataclass
class Canvas:
    image: np.ndarray
    depth: np.ndarray
    label: np.ndarray


def canvas(side: int = 64) -> Canvas:
    return Canvas(np.ones((side, side, 3), F), np.full((side, side), 1e9, F), np.zeros((side, side), np.uint8))


def on_head(person) -> np.ndarray:
    """Points (n, 3) of all strands of the hair of the head."""
    return np.concatenate([strands.carry(one, Still()).reshape(-1, 3) for one in hair.scalp_hair(person, 0.4)])


def above_skin(points: np.ndarray) -> np.ndarray:
    """Metres of points (n, 3) outside the skin of the template."""
    way = np.empty(3, F)
    return np.array([growth.probe(p, template().distance, GRID0.astype(F), F(CELL), way) for p in points])


@pytest.mark.parametrize("style", STYLES)
def test_every_style_grows_outside_the_head(person, style):
    grown = hair.grow(replace(person, style=style), 0.4)
    for one in grown:
        for values in (one.points, one.normals, one.offset, one.color, one.phase, strands.carry(one, Still())):
            assert values.dtype == F
            assert np.isfinite(values).all()
    if style == "bald":
        assert not any(one.kind == "hair" for one in grown)
        return
    points = on_head(replace(person, style=style))
    points = points[(points[:, 2] > 0.60) & (np.arange(len(points)) % 5 == 0)]
    ear = (np.abs(points[:, 0]) > 0.066) & (points[:, 2] > 0.66) & (points[:, 2] < 0.755) & (points[:, 1] > -0.065)
    inside = above_skin(points[~ear]) < -0.002  # the ears may show through the hair that hangs over them
    assert inside.mean() < 0.01


@pytest.mark.parametrize("style", sorted(set(STYLES) - {"bald", "fringe"}))
@pytest.mark.parametrize("curl", [0.0, 1.0])
def test_hair_does_not_hang_over_the_eyes(person, style, curl):
    points = on_head(replace(person, style=style, curl=curl))
    eyes = (np.abs(points[:, 0]) < 0.050) & (points[:, 1] < -0.08) & (np.abs(points[:, 2] - 0.728) < 0.014)
    assert eyes.mean() < 0.002


@pytest.mark.parametrize("kind", ["stubble", "mustache", "goatee", "full"])
def test_a_beard_grows_on_its_part_of_the_face_and_not_on_the_lips(person, kind):
    (grown,) = [one for one in hair.grow(replace(person, beard=kind), 1.0) if one.kind == "beard"]
    start = grown.points[:, 0]
    assert grown.label == -1
    assert roots.lips(*grown.roots).max() < 0.3
    if kind in ("mustache", "goatee"):
        assert np.abs(start[:, 0]).max() < 0.04
    if kind == "mustache":
        assert start[:, 2].min() > 0.655
    assert not [one for one in hair.grow(replace(person, beard="none"), 1.0) if one.kind == "beard"]


def line(x0, y0, x1, y1, depth=1.0) -> np.ndarray:
    t = np.linspace(0, 1, 9, dtype=F)
    return np.stack([x0 + (x1 - x0) * t, y0 + (y1 - y0) * t, np.full(9, depth, F)], 1)[None].astype(F)


def drawn(lines, width, color=0.0, on=None, bias=0.0):
    on, cover = on or canvas(), np.zeros((64, 64), F)
    colors = np.full(lines.shape, color, F)
    order = strand_kernels.from_back(lines)
    strand_kernels.paint(lines, colors, order, (on.image, on.depth, cover), F(width), F(bias), True)
    return on, cover


def test_a_thin_strand_covers_its_share_of_each_sample():
    _, cover = drawn(line(8, 20.3, 56, 20.3), 0.4)
    across = cover.sum(0)[10:30]  # before the strand tapers
    np.testing.assert_allclose(across, 0.4, atol=0.02)
    assert cover.max() < 0.4001


def test_a_strand_behind_a_surface_is_hidden():
    on = canvas()
    on.depth[:, 32:] = 0.5
    on, cover = drawn(line(8, 20, 56, 20), 1.5, on=on)
    assert cover[:, 32:].max() == 0
    assert cover[:, 10:30].max() > 0.9


def test_only_hair_that_covers_more_than_half_is_hair_in_the_mask(person):
    one = hair.scalp_hair(replace(person, style="medium"), 0.4)[0]
    points = strands.carry(one, Still())
    projected = np.stack([points[..., 0] * 200 + 32, (0.75 - points[..., 2]) * 200 + 32, points[..., 1] + 1], -1)
    on = canvas()
    colors = np.zeros_like(points)
    cover = strands.lay(on, one, np.ascontiguousarray(projected, F), colors, 0.005)
    np.testing.assert_array_equal(on.label == LABEL["hair"], cover > 0.5)
    assert (on.label > 0).sum() > 300
    np.testing.assert_allclose(on.image[..., 0], 1 - cover, atol=1e-4)


def test_a_beard_leaves_the_mask_as_it_is(person):
    (one,) = [one for one in hair.grow(person, 0.4) if one.kind == "beard"]
    points = strands.carry(one, Still())
    projected = np.stack([points[..., 0] * 300 + 32, (0.65 - points[..., 2]) * 300 + 32, points[..., 1] + 1], -1)
    on = canvas()
    cover = strands.lay(on, one, np.ascontiguousarray(projected, F), np.zeros_like(points), 0.003)
    assert cover.max() > 0.5
    assert on.label.max() == 0
    assert on.depth.min() > 1e8
