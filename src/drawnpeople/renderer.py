"""Renders one face: from a body and a ``Shot`` to an image, its landmarks and its parsing mask."""

from dataclasses import dataclass, field

import numpy as np

from drawnpeople import clothes, hair, places, props, regions, skin, strands
from drawnpeople.develop import develop
from drawnpeople.kernels import EMPTY, interpolate, raster
from drawnpeople.light import Light
from drawnpeople.mesh_kernels import bilinear, normals
from drawnpeople.person import Person
from drawnpeople.props import Thing
from drawnpeople.shading import shade
from drawnpeople.shape import Body, Head
from drawnpeople.shot import Shot
from drawnpeople.strands import Strands
from drawnpeople.template import CLOTH, LASH, SKIN, template
from drawnpeople.visible import Visible

F = np.float32
INSIDE = F(0.008)
"""Metres by which the lining of the mouth is drawn deeper, because shape and age move the cheek into it."""
THING = LASH + 1
"""Material of the points of things."""


@dataclass(frozen=True)
class Drawing:
    """``picture`` uint8 (H, W, 3); ``landmarks`` float32 (68, 2), (x, y) in pixels; ``mask`` uint8 (H, W) of LABEL."""

    picture: np.ndarray
    landmarks: np.ndarray
    mask: np.ndarray


@dataclass
class Canvas:
    """What is visible at n x n samples: linear light (n, n, 3), depth in metres (n, n) and parsing label (n, n)."""

    image: np.ndarray
    depth: np.ndarray
    label: np.ndarray = field(init=False)

    def __post_init__(self):
        self.label = np.zeros(self.depth.shape, np.uint8)


class Figure:
    """What all images of a person share: ``body``, the head without expression, and the hair."""

    def __init__(self, person: Person):
        self.person, self.body = person, Body(person)
        self._grown: dict[float, list[Strands]] = {}

    def strands(self, dense: float) -> list[Strands]:
        """The hair of the person; ``dense``: number of strands, as a share of the usual one."""
        if dense not in self._grown:
            self._grown[dense] = hair.grow(self.person, dense)
        return self._grown[dense]


def draw(figure: Figure, shot: Shot, size: int, supersampling: int = 2) -> Drawing:
    """Draw a face of ``size`` x ``size`` pixels. Each pixel is the mean of ``supersampling``^2 samples."""
    n = size * supersampling
    person, base = figure.person, template()
    garment = clothes.garment(person, shot)
    cover = garment.cover(base.vertices)
    head = Head(figure.body, shot, n, cover)
    grown = figure.strands(hair.density(n))
    canvas = Canvas(places.background(shot, n), np.full((n, n), EMPTY, F))
    light = Light(shot, head, base.triangles[: base.solid])
    carried = [(one, strands.carry(one, head)) for one in grown]
    carried = [(one, props.tuck(points, head) if one.kind == "hair" else points) for one, points in carried]
    light.shade_with([points for one, points in carried if one.kind == "hair"])
    things = props.things(person, shot, figure.body) + clothes.things(person, shot, figure.body)
    for thing in things:
        light.block(head.carry_thing(thing), thing.triangles)
    _surfaces(canvas, head, light, things, garment, cover)
    for one, points in carried:
        colors = strands.shade_strands(one, points, head, light)
        strands.lay(canvas, one, head.camera.project(points), colors, head.camera.metres)
    props.glaze(canvas, head, light)
    props.occlude(canvas.image, canvas.label, shot, head.camera, head)
    middle = supersampling // 2
    return Drawing(
        develop(canvas.image, shot, size, supersampling),
        ((head.landmarks() + F(0.5)) / supersampling - F(0.5)).astype(F),
        np.ascontiguousarray(canvas.label[middle::supersampling, middle::supersampling]),
    )


def _surfaces(
    canvas: Canvas, head: Head, light: Light, things: list[Thing], garment: clothes.Garment, cover: np.ndarray
) -> None:
    """Draw the head, the clothes and the things on the canvas."""
    base, person, n = template(), head.body.person, len(canvas.depth)
    tone = skin.complexion(person, head.shot)
    solid = base.triangles[: base.solid]
    moved = [head.carry_thing(thing) for thing in things]
    points = np.concatenate([head.points, *moved])
    first = np.cumsum([len(head.points), *(len(part) for part in moved)])[:-1]
    triangles = np.concatenate([solid, *(t.triangles + np.int32(at) for t, at in zip(things, first, strict=True))])
    values = np.zeros((len(points), 14 + len(skin.MAPS)), F)  # point, normal, place, cover, maps; color and gloss
    of_head = values[: len(head.points)]
    of_head[:, 3:6], of_head[:, 6:9], of_head[:, 9] = head.normals, base.vertices, cover
    values[:, :3], of_head[:, 10:-4] = points, skin.maps()
    for thing, part, at in zip(things, moved, first, strict=True):
        of_thing = values[at : at + len(part)]
        of_thing[:, 3:6] = normals(part, thing.triangles)
        of_thing[:, -4:-1], of_thing[:, -1] = thing.color, thing.gloss
    ids, bary = np.full((n, n), -1, np.int32), np.zeros((n, n, 3), F)
    seen_at = head.camera.project(points)
    seen_at[base.lining, 2] += INSIDE
    raster(seen_at, triangles, 0, ids, bary, canvas.depth)
    corners = np.concatenate([base.corner_uv[: base.solid], np.zeros((len(triangles) - len(solid), 3, 2), F)])
    seen, uv = interpolate(triangles, ids, bary, values, corners)
    at = np.flatnonzero(ids.ravel() >= 0)
    number = ids.ravel()[at]
    maps, own = seen[:, 10:-4].copy(), seen[:, -4:]
    material = np.concatenate([base.material[: base.solid], np.full(len(triangles) - len(solid), THING, np.int32)])
    material = material[number]
    material[(material == SKIN) & (seen[:, 9] > 0)] = CLOTH
    cloth, worn = material == CLOTH, material == THING
    visible = Visible(
        seen[:, :3].copy(), seen[:, 3:6].copy(), seen[:, 6:9].copy(), material, np.where(worn, F(0.9), maps[:, 0]),
        albedo=np.zeros((len(at), 3), F), tilt=np.zeros((len(at), 3), F), gloss=np.zeros(len(at), F),
    )  # fmt: skip
    masks = base.masks_at(uv)
    offset = np.array([person.texture % 997, person.texture // 997 % 991], F)
    speckle = bilinear(skin.noise(), uv[:, 0] * F(3072) + offset[0], uv[:, 1] * F(3072) + offset[1])
    skin.paint(visible, maps, masks, speckle, *hair.under(person, visible.place, masks[:, 0]), tone)
    skin.paint_eyes(visible, head.eyes, _aim(head), tone.iris)
    visible.albedo[cloth] = garment.color(visible.place[cloth], uv[cloth])
    visible.albedo[worn], visible.gloss[worn] = own[worn, :3], own[worn, 3]
    canvas.image.reshape(-1, 3)[at] = shade(visible, light, head.camera.eye, head.camera.metres, at, n)
    label = regions.parts(visible.place, material, masks)
    labels = [np.zeros(len(solid), np.uint8), *(np.full(len(t.triangles), t.label, np.uint8) for t in things)]
    label[worn] = np.concatenate(labels)[number[worn]]
    canvas.label.ravel()[at] = label


def _aim(head: Head) -> np.ndarray:
    """Directions (2, 3) in which the left and the right eye look. The eyes turn in a little, to what they look at."""
    right, up = (float(angle) for angle in head.shot.gaze)
    out = np.empty((2, 3), F)
    for k, inwards in enumerate((-0.03, 0.03)):
        x, y, z = right + inwards, -1.0, up
        length = float(np.sqrt(x * x + y * y + z * z))
        for c in range(3):
            row = head.turn[c]
            out[k, c] = (row[0] * x + row[1] * y + row[2] * z) / length
    return out
