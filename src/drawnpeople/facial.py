"""Brows, beards and lashes: short hairs that follow the skin with the expression."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from drawnpeople import roots
from drawnpeople.labels import LABEL, linear
from drawnpeople.person import Person
from drawnpeople.seeding import generator
from drawnpeople.strands import Strands
from drawnpeople.template import LASH, template


class Growth(NamedTuple):
    """The hairs of a kind of beard. Lengths in metres."""

    hairs: int  # if the hairs were everywhere a beard can grow
    length: float
    lift: float  # of the tips above the skin
    width: float
    rise: float  # 0: the hairs lie on the skin
    points: int


BEARDS = {
    "stubble": Growth(4200, 0.0016, 0.0010, 0.00030, 0.35, 3),
    "mustache": Growth(8400, 0.009, 0.0025, 0.00085, 0.18, 5),
    "goatee": Growth(8400, 0.010, 0.0025, 0.00085, 0.18, 5),
    "full": Growth(8400, 0.013, 0.0025, 0.00085, 0.18, 5),
}
LASH_COLOR = linear([0.07, 0.05, 0.045])


def brows(person: Person, dense: float) -> list[Strands]:
    """The brows. Their hairs rise at the inner end and lie down towards the outer one."""
    draw = generator(person.texture, "hair", "brows")
    table = roots.roots("brow")
    density = roots.brow(table.points, person.brow_height, person.brow_arch)
    facing = np.clip(-1.1 * table.normals[:, 1], 0, 1)  # few hairs grow in the fold below the brow
    density = density * facing * facing
    keep = np.flatnonzero(density * (0.55 + 0.35 * person.brow_dense) > draw.random(len(density)))
    keep = keep[: int(620 * person.brow_dense * (0.4 + 0.6 * dense))]
    points, normals = table.points[keep], table.normals[keep]
    x = points[:, 0].astype(np.float64)
    t = np.clip((np.abs(x) - 0.010) / 0.044, 0, 1)
    high = np.clip((points[:, 2] - person.brow_height - 0.747) / 0.004, -1, 1)
    # the upper hairs bend down and the lower ones up, so that they meet in the middle
    slope = 1.5 - 3.6 * t + 1.8 * t * t - 0.35 * high * (t > 0.2) + draw.normal(0, 0.13, len(t))
    way = roots.unit(np.stack([np.sign(x), 0 * x, slope], 1))
    length = (0.0050 + 0.0035 * np.minimum(t * 4, 1) - 0.002 * t) * draw.uniform(0.7, 1.1, len(t))
    hairs = short(points, normals, way, length, 0.0009, 0.6, 4)
    if person.hair_name in ("gray", "white"):
        tint = person.hair * (0.13 - 0.10 * person.melanin) + linear([0.16, 0.14, 0.13])  # brows turn last
    else:
        tint = np.minimum(person.hair, linear([0.42, 0.30, 0.21])) * 0.8 + 0.2 * linear([0.14, 0.10, 0.08])
    color = vary_color(tint, len(keep), 0.15, draw)
    width = 0.00032 / (0.4 + 0.6 * dense)
    made = []
    for name, side in (("l_brow", x < 0), ("r_brow", x >= 0)):
        skin = table.triangles[keep[side]], table.barycentric[keep[side]]
        made.append(bare("brow", LABEL[name], hairs[side], normals[side], skin, color[side], width))
    return made


def beard(person: Person, dense: float) -> list[Strands]:
    """The beard, if any. The skin below it is darkened by `hair.under`."""
    if person.beard == "none":
        return []
    draw, plan = generator(person.texture, "hair", "beard"), BEARDS[person.beard]
    table = roots.roots("beard")
    density = roots.beard(table.points, roots.lips(table.triangles, table.barycentric), person.beard)
    keep = np.flatnonzero(density > draw.random(len(density)) * 1.05)
    share = 0.35 + 0.65 * dense
    keep = keep[: int(len(keep) * min(1.0, plan.hairs / roots.CANDIDATES["beard"] * share))]
    points, normals = table.points[keep], table.normals[keep]
    x, y, z = points.T.astype(np.float64)
    lip = (y < -0.118) & (z > 0.664) & (np.abs(x) < 0.032)
    low = 0.55 + 0.45 * density[keep] * roots.ramp(-z, -0.70, -0.63)
    usual = plan.length if person.beard == "stubble" else person.beard_length
    length = usual * np.where(lip, 0.75, low) * draw.uniform(0.6, 1.05, len(x))
    away = np.sign(x) * np.clip(np.abs(x) / 0.010, 0.2, 1)  # a mustache is combed to both sides
    sideways = np.where(lip, away * 0.95, away * 0.15 * (z < 0.65))
    way = np.stack([sideways, np.where(lip, 0, -0.15), np.where(lip, -0.75, -1.0)], 1)
    way = roots.unit(way + draw.normal(0, 0.16, way.shape) + plan.rise * normals)
    hairs = short(points, normals, way, length, plan.lift, 0.5, plan.points)
    color = vary_color(person.hair * 0.75, len(keep), 0.22, draw)
    skin = table.triangles[keep], table.barycentric[keep]
    return [replace(bare("beard", -1, hairs, normals, skin, color, plan.width / share), shine=0.1)]


def lashes(person: Person, dense: float) -> list[Strands]:
    """Upper lashes, along the strips of the template."""
    head = template()
    strips = np.flatnonzero(head.material == LASH)
    draw = generator(person.texture, "hair", "lashes")
    count = int((70 if person.male else 110) * (0.5 + 0.5 * dense))
    picked = strips[draw.integers(len(strips), size=count)].astype(np.int32)
    corners = head.vertices[head.triangles[picked]].astype(np.float64)
    gap = corners - np.where(corners[..., :1] > 0, head.eyes[0], head.eyes[1])
    far = gap[..., 0] ** 2 + gap[..., 1] ** 2 + gap[..., 2] ** 2
    rows = np.arange(count)
    shares = np.full((count, 3), 0.04)
    shares[rows, far.argmin(1)] = 0.92
    start = (corners * shares[..., None]).sum(1)
    way = roots.unit(corners[rows, far.argmax(1)] - start)
    length = draw.uniform(0.0036, 0.0056, count) * (0.75 if person.male else 1.0)
    t = np.linspace(0, 1, 4)[None, :, None]
    forwards = np.array([0.0, -0.6, 0.25])
    hairs = start[:, None] + length[:, None, None] * (t * way[:, None] + 0.45 * t * t * forwards)
    keep = start[:, 2] > np.where(start[:, 0] > 0, head.eyes[0, 2], head.eyes[1, 2])
    skin = picked[keep], shares[keep].astype(np.float32)
    color = np.repeat(LASH_COLOR[None], keep.sum(), 0)
    return [replace(bare("lash", -1, hairs[keep].astype(np.float32), way[keep], skin, color, 0.00028), shine=0.0)]


def short(points, normals, way, length, lift, press, count) -> np.ndarray:
    """Hairs (s, count, 3) that leave the skin by ``lift`` metres and lie down along ``way``, by ``press``."""
    along = way[:, 0] * normals[:, 0] + way[:, 1] * normals[:, 1] + way[:, 2] * normals[:, 2]
    flat = roots.unit(way - (press * along + (1 - press) * np.minimum(along, 0))[:, None] * normals)
    t = np.linspace(0, 1, count)[None, :, None]
    hairs = points[:, None] + flat[:, None] * (length[:, None, None] * t) + normals[:, None] * (lift * np.sqrt(t))
    return hairs.astype(np.float32)


def vary_color(tint, count: int, amount: float, draw: np.random.Generator) -> np.ndarray:
    """Colors (count, 3) around a color."""
    return (np.asarray(tint, np.float64) * (1 + amount * draw.uniform(-1, 1, (count, 1)))).astype(np.float32)


def bare(kind, label, hairs, normals, skin, color, width) -> Strands:
    """Hairs of the face: every hair is its own guide."""
    count, points = hairs.shape[:2]
    return Strands(
        kind=kind,
        label=label,
        points=hairs,
        normals=np.repeat(normals[:, None], points, 1),
        roots=skin,
        parent=np.arange(count, dtype=np.int32),
        offset=np.zeros((count, 5), np.float32),
        reach=np.ones(count, np.float32),
        tone=np.ones(count, np.float32),
        color=color,
        width=width,
        clump=0.0,
        wave=(0.0, 0.03),
        phase=np.zeros(count, np.float32),
        shine=0.25,
        root_dark=0.0,
    )
