"""Places inside: a studio, a room, a window, shelves."""

import math

import numpy as np

from drawnpeople.outdoors import outside
from drawnpeople.scene import FACE, LIGHT_WARM, Scene, Wall


def studio(s: Scene) -> None:
    """A paper or painted backdrop, brighter where a lamp is aimed at it."""
    depth = s.distance + s.one(0.8, 2.2)
    wide = 0.5 * FACE * depth / s.distance
    color = s.pick("backdrop") * (0.45 * s.sky + 0.38 * s.key)
    edge = s.one(0.35, 0.95)
    s.panel((-2 * wide, 2 * wide, -2 * wide, 2 * wide), depth, color * edge * s.one(0.8, 1.1), color * edge)
    reach = s.one(1.0, 2.0) * wide * (1.25 - 0.16 * np.arange(7))  # the lamp's spot, a stack of soft discs
    tones = color * (1.0 + 0.12 * np.arange(7))[:, None]
    x, z = s.one(-0.8, 0.8) * wide, s.one(-0.7, 0.6) * wide
    s.balls((np.full(7, x), depth, z), (reach, reach), tones, tones, 0.28, 20.0)
    if s.chance(0.6):  # painted canvas
        k = 40
        tones = color * s.some(0.65, 1.4, k)[:, None]
        s.balls(
            (s.some(-1.4, 1.4, k) * wide, depth, s.some(-1.4, 1.4, k) * wide),
            (s.some(0.1, 0.5, k) * wide, s.some(0.1, 0.4, k) * wide),
            tones,
            tones,
            s.some(0.05, 0.18, k),
            9.0,
        )
    if s.chance(0.2):  # the end of the backdrop
        x = s.side * s.one(0.55, 0.9) * wide
        s.panel((min(x, 3 * x), max(x, 3 * x), -2 * wide, 2 * wide), depth, color * 0.45, color * 0.35, soft=3.0)
    s.shoot(depth)


def _walls(s: Scene, dim: float):
    """Two walls that meet in a corner, often outside of the image; returns the light and both walls."""
    depth = s.distance + s.one(0.9, 3.2)
    wide = 0.5 * FACE * depth / s.distance
    light = dim * (0.75 * s.sky + 0.30 * s.key)
    corner = s.one(-1.6, 1.6) * wide
    turn = s.one(0.15, 0.75)
    left = Wall(s, (corner, depth), -turn + math.pi)  # along the wall leads away from the corner, towards the camera
    right = Wall(s, (corner, depth), -(math.pi / 2 - turn))
    color = s.pick("wall")
    bright, dark = s.one(0.9, 1.15), s.one(0.5, 0.85)
    if s.side > 0:
        bright, dark = dark, bright
    far = 3.0 * wide + 1.5
    left.shade(-0.02, far, -3, 3, color * light * bright * s.one(0.7, 0.9), color * light * bright * s.one(1.0, 1.25))
    right.shade(-0.02, far, -3, 3, color * light * dark * s.one(0.75, 0.95), color * light * dark * s.one(1.0, 1.3))
    return light, left, right, wide, depth, corner


def _picture(s: Scene, wall: Wall, a: float, z: float, wide: float, high: float, light) -> None:
    """A framed print with a mount."""
    frame = s.pick("dark" if s.chance(0.6) else "wood")
    border = s.one(0.02, 0.045)
    shadow = 0.012
    wall.patch((a - shadow, a + wide + shadow, z - 2.5 * shadow, z + high), np.zeros(3), alpha=0.3, soft=1.5)
    wall.patch((a, a + wide, z, z + high), frame * light, frame * light * 0.7)
    inner = border + s.one(0.02, 0.07)
    wall.patch((a + border, a + wide - border, z + border, z + high - border), np.full(3, 0.75) * light)
    top, bottom = s.pick("print"), s.pick("print")
    wall.patch((a + inner, a + wide - inner, z + inner, z + high - inner), top * light, bottom * light)
    for _ in range(3):
        b, c = a + inner + s.one(0, 0.5) * (wide - 2 * inner), z + inner + s.one(0, 0.5) * (high - 2 * inner)
        wall.patch(
            (b, b + s.one(0.2, 0.5) * (wide - 2 * inner), c, c + s.one(0.2, 0.5) * (high - 2 * inner)),
            s.pick("print") * light,
        )


def _curtain(
    s: Scene, wall: Wall, box: tuple[float, float, float, float], light, through: np.ndarray | float = 0.0
) -> None:
    """Cloth in upright folds over a part (left, right, lower, upper) of a wall; ``through`` adds light from behind."""
    a0, a1, z0, z1 = box
    color = s.pick("cloth")
    k = max(4, round((a1 - a0) / s.one(0.05, 0.10)))
    width = s.some(0.5, 1.5, k)
    edges = a0 + (a1 - a0) * np.cumsum(np.concatenate([[0.0], width])) / width.sum()
    left, right = edges[:-1], edges[1:]
    middle = left + (right - left) * s.some(0.3, 0.7, k)
    lit = color * (light + through)
    tone, dark = lit * s.some(0.85, 1.15, k)[:, None], lit * s.some(0.35, 0.7, k + 1)[:, None]
    wall.strips(left, middle, z0, z1, dark[:-1], tone)
    wall.strips(middle, right, z0, z1, tone, dark[1:])


def room(s: Scene) -> None:
    """A wall or a corner with a door, images, a lamp, a curtain or a cupboard."""
    light, left, right, wide, depth, _ = _walls(s, s.one(0.55, 1.15))
    if s.chance(0.5):  # skirting of another color, or a lower cupboard
        high = s.one(-0.55, -0.2) * wide
        color = s.pick("wood" if s.chance(0.6) else "wall") * light * 0.8
        for wall in (left, right)[: 1 + int(s.chance(0.4))]:
            wall.patch((-0.02, 4 * wide, -3, high), color * 1.1, color * 0.6)
            wall.patch((-0.02, 4 * wide, high, high + 0.03), color * 1.5)
    things = [_door, _door, _frames, _frames, _frames, _lamp, _drape, _cupboard, _cupboard, _plant]
    for wall in (left, right):
        for _ in range(1 + int(s.chance(0.5))):
            things[int(s.rng.integers(len(things)))](s, wall, wide, light)
    s.shoot(depth * 0.9)


def _door(s: Scene, wall: Wall, wide: float, light) -> None:
    a = s.one(0.1, 1.1) * wide
    b = a + s.one(0.75, 0.95)
    color = s.pick("wall", 0.2) if s.chance(0.5) else s.pick("wood")
    wall.patch((a - 0.08, b + 0.08, -3, 0.62), color * light * 1.12)
    if s.chance(0.35):  # open: the next room
        inside = s.pick("wall") * light * s.one(0.15, 1.6)
        wall.patch((a, b, -3, 0.55), inside, inside * 0.6)
        return
    wall.patch((a, b, -3, 0.55), color * light * 0.92, color * light * 0.75)
    for z0, z1 in ((-0.25, 0.42), (-1.5, -0.4)):
        wall.patch((a + 0.12, b - 0.12, z0, z1), color * light * 0.7, color * light * 1.0)
        wall.patch((a + 0.15, b - 0.15, z0 + 0.03, z1 - 0.03), color * light * 0.9, color * light * 0.8)
    x, y, z = wall.at(a + 0.07, -0.42)
    s.ball((x, y, z), (0.035, 0.015), np.full(3, 0.8) * light)


def _frames(s: Scene, wall: Wall, wide: float, light) -> None:
    a, z = s.one(0.05, 0.9) * wide, s.one(-0.5, 0.6) * wide
    for _ in range(1 + int(s.rng.integers(3))):
        size = s.one(0.16, 0.55)
        _picture(s, wall, a, z, size * s.one(0.7, 1.2), size, light)
        a += size * 1.3 + 0.05


def _lamp(s: Scene, wall: Wall, wide: float, light) -> None:
    x, y, z = wall.at(s.one(0.15, 1.1) * wide, s.one(-0.5, 0.7) * wide, 0.25)
    glow = LIGHT_WARM * s.one(0.8, 2.2)
    for k in range(5):
        s.ball((x, y, z), (0.5 - 0.08 * k, 0.55 - 0.08 * k), glow * 0.55, alpha=0.09, soft=18.0)
    s.panel((x - 0.012, x + 0.012, -3, z), y, s.pick("dark") * light)
    top, bottom = s.one(0.07, 0.11), s.one(0.12, 0.17)
    s.quad(
        ((x - top, y, z + 0.1), (x + top, y, z + 0.1), (x + bottom, y, z - 0.1), (x - bottom, y, z - 0.1)),
        glow * 1.3,
        glow * 2.2,
    )


def _drape(s: Scene, wall: Wall, wide: float, light) -> None:
    a = s.one(0.3, 1.0) * wide
    _curtain(s, wall, (a, a + s.one(0.4, 0.9), -3, 3), light * 0.9)


def _cupboard(s: Scene, wall: Wall, wide: float, light) -> None:
    a, b, top = s.one(0.1, 0.9) * wide, 0.0, s.one(-0.3, 0.7) * wide
    b = a + s.one(0.5, 1.2)
    color = s.pick("wood" if s.chance(0.6) else "wall") * light
    wall.patch((a, b, -3, top), color * 0.95, color * 0.7, out=0.05)
    wall.patch((a, b, top - 0.025, top), color * 1.35, out=0.05)
    a += 0.04
    while a < b:
        wall.patch((a, a + 0.012, -3, top - 0.04), color * 0.35, out=0.05)
        a += s.one(0.25, 0.45)
    for _ in range(int(s.rng.integers(1, 5))):  # what stands on it
        x, y, z = wall.at(s.one(a - 0.8, b), top + 0.08, 0.2)
        if s.chance(0.5):
            s.ball(
                (x, y, z - 0.02),
                (s.one(0.03, 0.07), s.one(0.06, 0.11)),
                s.pick("print") * light * 1.1,
                s.pick("print") * light * 0.6,
            )
        else:
            w = s.one(0.03, 0.1)
            s.panel((x - w, x + w, top, z + s.one(0, 0.15)), y, s.pick("book") * light, s.pick("book") * light * 0.7)


def _plant(s: Scene, wall: Wall, wide: float, light) -> None:
    x, y, z = wall.at(s.one(0.2, 1.2) * wide, s.one(-0.8, 0.1) * wide, 0.3)
    k, size = int(s.rng.integers(14, 46)), s.one(0.6, 1.6)
    colors = s.picks("leaf", k, 0.5) * light * s.some(0.6, 1.8, k)[:, None]
    s.leaves(x + s.some(-0.2, 0.2, k) * size, y, z + s.some(-0.1, 0.4, k) * size, s.some(0.02, 0.055, k) * size, colors)


def window(s: Scene) -> None:
    """A bright window in a wall, with bars, curtains or a blind; the room around it is darker."""
    far = s.distance + s.one(8, 25)
    bright = s.one(1.4, 3.0) * (0.75 * s.sky + 0.3 * s.key)
    outside(s, far, bright)
    s.shoot(far)
    depth = s.distance + s.one(0.7, 2.4)
    wide = 0.5 * FACE * depth / s.distance
    light = s.one(0.6, 1.1) * (0.6 * s.sky + 0.2 * s.key)
    wall = Wall(s, (0.0, depth), s.one(-0.35, 0.35))
    left = s.one(-2.0, -0.3) * wide
    right = max(left + 0.7, s.one(0.2, 2.0) * wide)
    sill, top = s.one(-1.5, -0.35) * wide, s.one(0.7, 2.0) * wide
    color = s.pick("wall") * light
    wall.patch((-6, left, -3, 3), color, color * 0.8)
    wall.patch((right, 6, -3, 3), color, color * 0.8)
    wall.patch((left, right, -3, sill), color * 0.8, color * 0.6)
    wall.patch((left, right, top, 3), color * 0.7)
    wood = (s.pick("wood") if s.chance(0.3) else np.full(3, 0.62)) * light * 0.9
    wall.patch((left - 0.02, right + 0.02, sill - 0.04, sill + 0.02), wood * 1.6, wood)
    bar = s.one(0.03, 0.06)
    count = max(1, round((right - left) / s.one(0.45, 0.9)))
    for k in range(count + 1):
        a = left + (right - left) * k / count
        wall.patch((a - bar, a + bar, sill, top), wood, wood * 0.8)
    for z in (sill + 0.01, top, s.one(0.2, 0.7) * (top - sill) + sill)[: 2 + int(s.chance(0.5))]:
        wall.patch((left, right, z - 0.7 * bar, z + 0.7 * bar), wood)
    if s.chance(0.65):
        veil = s.chance(0.4)
        span = s.one(0.15, 0.45)
        for a0, a1 in ((left - 0.12, left + span), (right - span, right + 0.12)):
            _curtain(s, wall, (a0, a1, -3, 3), light, 0.45 * bright if veil else 0.06 * bright)
    elif s.chance(0.4):
        z, slat = top, s.one(0.05, 0.07)
        stop = s.one(sill, 0.5 * (sill + top))
        while z > stop:
            wall.patch((left, right, z - 0.55 * slat, z), np.full(3, 0.5) * (light + 0.25 * bright), alpha=0.92)
            z -= slat
    s.shoot(depth)


def shelf(s: Scene) -> None:
    """Shelves with books and a few other things."""
    depth = s.distance + s.one(0.7, 2.2)
    wide = 0.5 * FACE * depth / s.distance
    light = s.one(0.7, 1.3) * (0.75 * s.sky + 0.32 * s.key)
    wall = Wall(s, (0.0, depth), s.one(-0.5, 0.5))
    wood = s.pick("wood" if s.chance(0.65) else "wall") * light
    wall.patch((-6, 6, -3, 3), wood * 0.3)
    rise = s.one(0.24, 0.34)
    z = s.one(0.0, rise) - 5 * rise
    board = s.one(0.012, 0.02)
    reach = 1.35 * wide + 0.05
    while z < 1.5 * wide:
        if z > -1.5 * wide - rise:
            _row(s, wall, z + board, rise - 2 * board, reach, light)
            wall.patch((-reach, reach, z + rise - 0.09, z + rise - board), np.zeros(3), alpha=0.35, soft=2.0)
        wall.patch((-6, 6, z - board, z + board), wood * 1.15, wood * 0.8)
        z += rise
    a = s.one(-1.5, 0.0) * wide
    while a < 2 * wide:
        wall.patch((a - 0.015, a + 0.015, -3, 3), wood * 0.9)
        a += s.one(0.7, 1.1)
    s.shoot(depth)


def _row(s: Scene, wall: Wall, z: float, room: float, reach: float, light) -> None:
    """Books on one board, in groups of a similar height; some gaps hold a box, a vase or nothing."""
    a = -reach
    while a < reach:
        kind = s.rng.random()
        if kind < 0.72:
            k = int(s.rng.integers(4, 11))
            w, h = s.some(0.014, 0.045, k), room * s.one(0.55, 0.9) * s.some(0.88, 1.08, k)
            own = s.picks("book", k, 0.3) if s.chance(0.75) else s.pick("book")  # or a series
            tones = own * light * s.some(0.75, 1.05, k)[:, None]
            left = a + np.cumsum(w) - w
            end = float(left[-1] + w[-1])
            wall.strips(left, left + w, z, z + h, tones * 1.05, tones * 0.6)
            titled = s.rng.random(k) < 0.35
            left, w, h = left[titled], w[titled], h[titled]
            tones = s.picks("book", len(w)) * light
            wall.strips(left, left + w, z + 0.7 * h, z + 0.8 * h, tones, tones)
            a = end
            a += s.one(0.0, 0.03)
        elif kind < 0.84:
            w, h = s.one(0.1, 0.22), room * s.one(0.4, 0.8)
            c = s.pick("cloth" if s.chance(0.5) else "wood") * light
            wall.patch((a, a + w, z, z + h), c * 1.0, c * 0.7)
            a += w + s.one(0.02, 0.1)
        elif kind < 0.93:
            x, y, up = wall.at(a + 0.07, z + 0.07)
            c = s.pick("print") * light
            s.ball((x, y, up), (s.one(0.03, 0.06), 0.075), c * 1.3, c * 0.6)
            a += 0.15
        else:
            a += s.one(0.05, 0.2)
