"""Hair, brows, beards and lashes: where they grow, that they lie on the head, how they are drawn."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from drawnpeople import growth, hair, roots, strand_kernels, strands
from drawnpeople.labels import LABEL
from drawnpeople.person import STYLES
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.template import CELL, GRID0, template

F = np.float32


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


def test_a_fringe_hangs_over_the_forehead_and_ends_above_the_eyes(person):
    points = on_head(replace(person, style="fringe", curl=0.0))
    front = points[(np.abs(points[:, 0]) < 0.03) & (points[:, 1] < -0.10)]
    assert (front[:, 2] < 0.775).mean() > 0.1
    assert (front[:, 2] < 0.742).mean() < 0.02


def test_a_receding_hairline_bares_the_forehead(person):
    def lowest(recede):
        table = roots.roots("scalp").points
        front = table[(roots.hairline(table, recede) > 0) & (table[:, 1] < -0.09)]
        return front[:, 2].min()

    assert lowest(0.02) > lowest(0.0) + 0.005


def test_the_same_person_has_the_same_hair(person):
    for one, other in zip(hair.grow(person, 0.5), hair.grow(person, 0.5), strict=True):
        for name in ("points", "parent", "offset", "color", "phase"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    changed = hair.grow(replace(person, texture=person.texture + 1), 0.5)
    assert not np.array_equal(changed[0].points, hair.grow(person, 0.5)[0].points)


def test_size_changes_the_number_of_strands_and_not_the_cut(person):
    person = replace(person, style="medium")
    few, many = (hair.scalp_hair(person, dense)[0] for dense in (0.4, 1.0))
    assert few.count < 0.5 * many.count
    assert few.width > 1.5 * many.width
    np.testing.assert_array_equal(few.points, many.points)
    assert hair.density(128) < hair.density(256) == 1.0 < hair.density(512)


def test_brows_follow_density_height_and_arch(person):
    def found(**changes):
        grown = hair.grow(replace(person, **changes), 1.0)
        return [one for one in grown if one.kind == "brow"]

    left, right = found()
    assert (left.label, right.label) == (LABEL["l_brow"], LABEL["r_brow"])
    assert left.points[..., 0].max() < 0 < right.points[..., 0].min()
    assert sum(one.count for one in found(brow_dense=1.3)) > 1.5 * sum(one.count for one in found(brow_dense=0.5))
    heights = [np.median(found(brow_height=h)[0].points[:, 0, 2]) for h in (-0.002, 0.002)]
    assert heights[1] - heights[0] == pytest.approx(0.004, abs=0.001)
    middle = [np.abs(b[0].points[:, 0, 0] + 0.035) < 0.008 for b in (found(brow_arch=0.0), found(brow_arch=1.0))]
    peaks = [found(brow_arch=a)[0].points[m, 0, 2].mean() for a, m in zip((0.0, 1.0), middle, strict=True)]
    assert peaks[1] > peaks[0]


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


def test_skin_below_hair_has_its_color(person):
    points = np.array([[0.0, -0.05, 0.848], [0.0, -0.155, 0.70], [0.0, -0.14, 0.625]], F)
    scalp, beard = hair.under(replace(person, style="short", beard="full"), points, np.zeros(3, F))
    assert scalp[0] > 0.6 > scalp[1] == 0
    assert beard[2] > 0.5 > beard[1] == 0
    assert hair.under(replace(person, style="bald"), points, np.zeros(3, F))[0].max() == 0


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


@pytest.mark.parametrize("end", [(56, 20.3), (56, 33.7), (33.7, 56), (20.3, 60)])
def test_a_strand_has_its_width_in_every_direction(end):
    strand = line(8.2, 8.7, *end)
    _, cover = drawn(strand, 2.0)
    length = float(np.hypot(*(strand[0, -1, :2] - strand[0, 0, :2])))
    taper = np.minimum(1, 0.1 + 1.8 * (1 - np.linspace(0, 1, 1000))).mean()
    assert cover.sum() == pytest.approx(2.0 * length * taper, rel=0.06)


def test_a_strand_behind_a_surface_is_hidden():
    on = canvas()
    on.depth[:, 32:] = 0.5
    on, cover = drawn(line(8, 20, 56, 20), 1.5, on=on)
    assert cover[:, 32:].max() == 0
    assert cover[:, 10:30].max() > 0.9


def test_the_nearer_strand_is_in_front_whatever_the_order():
    near, far = line(8, 20, 56, 20, 1.0), line(8, 20, 56, 20, 2.0)
    both = np.concatenate([near, far])
    on, cover = canvas(), np.zeros((64, 64), F)
    colors = np.stack([np.full((9, 3), 0.2, F), np.full((9, 3), 0.8, F)])
    strand_kernels.paint(both, colors, strand_kernels.from_back(both), (on.image, on.depth, cover), F(2), F(0), True)
    assert on.image[20, 20, 0] == pytest.approx(0.2, abs=0.01)
    assert on.depth[20, 20] == pytest.approx(1.0)


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
