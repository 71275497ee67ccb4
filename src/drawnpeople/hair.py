"""The hair of a person: grown once on the template, carried to every image."""

from dataclasses import replace

import numpy as np

from drawnpeople import facial, growth, knots, roots
from drawnpeople.labels import LABEL
from drawnpeople.person import Person
from drawnpeople.seeding import generator
from drawnpeople.strands import Strands
from drawnpeople.styles import Cut, cut, parting
from drawnpeople.template import CELL, GRID0, template

GUIDES = {"buzz": 600, "short": 620, "side": 560, "afro": 640, "bun": 420, "ponytail": 420}
"""Number of guides of a style; 440 for the others."""
PARTED = ("medium", "long", "curly", "bob", "side")
"""Styles whose scalp is seen along the parting."""


def grow(person: Person, dense: float = 1.0) -> list[Strands]:
    """All strands of a person on the template, in the order in which they are drawn: hair may hang over the brows.

    ``dense`` is 1 for images of 128 pixels with 2 x 2 samples each. Less gives fewer and wider strands of the same
    cut.
    """
    face = [*facial.brows(person, dense), *facial.beard(person, dense), *facial.lashes(person, dense)]
    return face + scalp_hair(person, dense)


def scalp_hair(person: Person, dense: float = 1.0) -> list[Strands]:
    """The hair of the head; none for a bald person."""
    if person.style == "bald":
        return []
    draw = generator(person.texture, "hair")
    table = roots.roots("scalp")
    height = roots.hairline(table.points, person.recede)
    # the hairline wanders by millimetres, and the hair gets sparse towards it
    ragged = height + 0.0020 * draw.normal(0, 1, len(height)) + 0.0035 * waves(table.points, person.texture)
    kept = draw.random(len(height)) < 0.06 + 0.94 * roots.ramp(ragged, -0.001, 0.011)
    kept &= ragged > -0.001
    thin = np.clip((person.recede - 0.012) / 0.02, 0, 0.85)  # the crown thins with the temples
    gap = table.points - roots.CROWN
    near = np.clip(1.2 - np.sqrt(gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2) / 0.05, 0, 1)
    kept &= draw.random(len(kept)) > thin * near
    if person.style in PARTED:
        line = np.abs(table.points[:, 0] - parting(person)) < 0.0012
        kept &= ~(line & (table.points[:, 2] > 0.79) & (table.points[:, 1] < 0.0))
    guides = table.guides[kept[table.guides]]
    guides = guides[draw.random(len(guides)) < 0.8][: GUIDES.get(person.style, 440)]
    rows = np.flatnonzero(kept)
    rows = rows[draw.random(len(rows)) < 0.9]
    plan = cut(person, table.points[guides], table.normals[guides], draw)
    head = template()
    combed = [
        table.points[guides], table.normals[guides], roots.unit(plan.start), roots.unit(plan.comb), plan.hold,
        plan.gravity, plan.cling, plan.lift, plan.length, plan.floor, plan.clear, plan.tuck, plan.aim,
    ]  # fmt: skip
    combing = growth.Combing(*map(single, combed), aimed=np.ascontiguousarray(plan.aimed))
    points, away = growth.fall(combing, plan.steps, plan.points, single(head.distance), single(GRID0), np.float32(CELL))
    most = int(plan.strands * person.dense * dense)
    edge = (height[rows] < 0.016) & (table.points[rows, 1] < -0.05)  # the hairline is where the scalp is seen
    rows = np.concatenate([rows[:most], rows[most:][edge[most:]][: most // 6]])
    hair = bundle(person, plan, points, away, table.points[rows], draw, dense)
    if plan.knot is None:
        return [hair]
    return [hair, gather(person, plan, draw, dense)]


def waves(places: np.ndarray, texture: int) -> np.ndarray:
    """Uneven waves in [-1, 1] along the hairline at places (N, 3) of the template, different for each person."""
    total = np.zeros(len(places))
    x, y = places[:, 0].astype(np.float64), places[:, 1].astype(np.float64)
    for number, (length, share) in enumerate(((0.031, 0.5), (0.013, 0.3), (0.0053, 0.2))):
        turn = (x + (0.7 - 0.3 * number) * y) / length + (texture % (89 + 8 * number)) / 89.0
        total += share * (4.0 * np.abs(turn - np.floor(turn) - 0.5) - 1.0)
    return total


def single(values: np.ndarray) -> np.ndarray:
    """The values in single precision, one after another in memory."""
    return np.ascontiguousarray(values, np.float32)


def bundle(person: Person, plan: Cut, points, away, at, draw: np.random.Generator, dense: float) -> Strands:
    """Strands with roots ``at`` around guides."""
    count = len(at)
    parent = growth.nearest_guide(at, np.ascontiguousarray(points[:, 0]), np.float32(parting(person)), plan.split)
    offset = np.zeros((count, 5), np.float32)
    offset[:, :2] = growth.offsets(at, parent, points, away)
    depth = draw.random(count)  # 0 at the skin, 1 at the surface of the hair
    offset[:, 2] = plan.volume * depth
    offset[:, 3:] = plan.stray * draw.normal(0, 1, (count, 2)) * np.where(draw.random(count) < 0.04, 1.4, 0.45)[:, None]
    reach = 1 - plan.ragged * draw.random(count)
    clump_tone = 1 + 0.22 * draw.uniform(-1, 1, len(points))
    warm = 0.06 * draw.uniform(-1, 1, len(points))[parent]
    shade = clump_tone[parent] * (1 + 0.16 * draw.uniform(-1, 1, count))
    color = np.asarray(person.hair, np.float64) * shade[:, None] * np.stack([1 + warm, 0 * warm + 1, 1 - warm], 1)
    silver = draw.random(count) < person.gray
    light = np.array([0.30, 0.295, 0.29]) * (0.75 + 0.5 * draw.random(count))[:, None]
    if person.hair_name not in ("gray", "white"):
        color = np.where(silver[:, None], light, color)
    tone = 0.55 + 0.45 * depth
    phase = (draw.uniform(0, 6.28, len(points))[parent] + draw.normal(0, 0.5, count)).astype(np.float32)
    return Strands(
        "hair", LABEL["hair"], points, away, None, parent, offset, reach.astype(np.float32), tone.astype(np.float32),
        color.astype(np.float32), plan.width / (0.12 + 0.88 * dense), plan.clump, plan.wave, phase,
        plan.shine, plan.root_dark,
    )  # fmt: skip


def gather(person: Person, plan: Cut, draw: np.random.Generator, dense: float) -> Strands:
    """The bun, or the tail that falls from the knot."""
    make, count = (knots.bun, 700) if person.style == "bun" else (knots.tail, 900)
    if plan.knot is None:
        raise ValueError(f"the style {person.style} has no knot; allowed are bun and ponytail")
    points, away = make(person, plan.knot, draw)
    at = points[draw.integers(len(points), size=int(count * dense)), 0]
    loose = replace(plan, volume=0.006, clump=0.35, ragged=0.15, root_dark=0.0)
    made = bundle(person, loose, points, away, np.ascontiguousarray(at), draw, dense)
    offset = made.offset.copy()
    offset[:, 0], offset[:, 1] = 0, 0.007 * draw.uniform(-1, 1, len(offset))
    return replace(made, offset=offset)


def density(samples: int) -> float:
    """The share of strands that an image of samples x samples needs: 1 at 256, at most 1.6."""
    return float(np.interp(samples, [64, 128, 256, 512], [0.3, 0.4, 1.0, 1.6]))


def under(person: Person, points: np.ndarray, lip: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How much of the skin at points of the template the color of hair hides: (scalp, beard), each in [0, 1]."""
    scalp = np.zeros(len(points), np.float32)
    if person.style != "bald":
        height = roots.hairline(points, person.recede)
        strength = (0.72 if person.style == "buzz" else 0.93) * (0.6 + 0.4 * min(1.0, person.dense))
        scalp = strength * roots.ramp(height + 0.0035 * waves(points, person.texture), 0.000, 0.019)
        if person.style in PARTED:
            line = (
                np.clip(1 - np.abs(points[:, 0] - parting(person)) / 0.0022, 0, 1)
                * (points[:, 2] > 0.785)
                * (points[:, 1] < 0.0)
            )
            scalp = scalp * (1 - 0.6 * line)
    density = np.zeros(len(points), np.float32)
    if person.beard != "none":
        share = {"stubble": 0.45, "full": 0.85, "goatee": 0.8, "mustache": 0.8}[person.beard]
        density = roots.beard(points, lip, person.beard) * share
    elif person.male:
        density = roots.beard(points, lip, "stubble") * 0.12
    return scalp.astype(np.float32), density.astype(np.float32)
