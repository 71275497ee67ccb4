"""Clothes: where they cover the body, their fabric, and collars, lapels and ties."""

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from drawnpeople.kernels import kernel, sin32
from drawnpeople.labels import LABEL
from drawnpeople.person import Person
from drawnpeople.seeding import generator
from drawnpeople.shape import Body
from drawnpeople.shot import Shot
from drawnpeople.things import Thing, circle, cosine, fit, sheet, sine, surface

F = np.float32
COLLARS = ("crew", "vee", "shirt", "turtle", "jacket")
PATTERNS = ("plain", "stripes", "check", "melange")
_AXIS = -0.025  # y of the middle of the neck on the template
_SHIRT = np.array([0.70, 0.71, 0.73], F)  # a white shirt below a jacket


class Garment:
    """What a person wears in one image, as functions of the place on the template."""

    def __init__(self, shot: Shot):
        if shot.collar not in COLLARS:
            raise ValueError(f"no collar is named {shot.collar!r}: choose one of {', '.join(COLLARS)}")
        if shot.pattern not in PATTERNS:
            raise ValueError(f"no pattern is named {shot.pattern!r}: choose one of {', '.join(PATTERNS)}")
        rng = generator(shot.texture, "clothes")
        self.collar = shot.collar
        self.colors = np.clip(np.asarray(shot.clothing, F), F(0.012), F(0.80))
        self.loose = float(rng.uniform(-0.006, 0.008))  # metres that the neckline is higher than usual
        self.tie = bool(rng.random() < 0.55)
        self.shirt = _SHIRT if rng.random() < 0.6 else np.clip(self.colors[1] * F(0.4) + F(0.4), 0, F(0.75))
        self.folds = rng.uniform(0.0, 6.28, 6).astype(F)
        self.width = F(rng.uniform(0.007, 0.028))  # of stripes and checks, metres
        self.upright = bool(rng.random() < 0.45)
        self.deep = F(rng.uniform(0.06, 0.13))
        self.pattern = "plain" if shot.collar == "jacket" and shot.pattern == "stripes" else shot.pattern
        self.grain = F(rng.uniform(0.4, 1.0))

    def cover(self, vertices: np.ndarray) -> np.ndarray:
        """Metres (V,) that places (V, 3) on the template are inside the cloth; negative outside."""
        x, y, z = np.abs(vertices[:, 0]), vertices[:, 1], vertices[:, 2]
        edge = F(0.566 + self.loose) + F(0.36) * (y + F(0.07))
        front = np.clip((F(-0.02) - y) / F(0.03), F(0), F(1))
        if self.collar == "vee":
            edge = edge - front * F(1.7) * np.clip(F(0.055) - x, F(0), F(0.06))
        elif self.collar in ("shirt", "jacket"):
            open_ = F(0.4) if self._has_buttons() else F(1.5)
            edge = edge - front * open_ * np.clip(F(0.045) - x, F(0), F(0.05))
        elif self.collar == "turtle":
            edge = F(0.600) + F(0.30) * (y + F(0.07))
        return (edge - z).astype(F)

    def color(self, points: np.ndarray, uv: np.ndarray) -> np.ndarray:
        """Linear light (N, 3) that the cloth reflects at places (N, 3) on the template."""
        points = np.ascontiguousarray(points, F)
        shirt = self.shirt if self.collar == "jacket" else self.colors[0]
        kind = PATTERNS.index(self.pattern)
        both = np.concatenate([self.colors, shirt[None].astype(F)])
        out = np.empty((len(points), 3), F)
        self._dye(points, both, kind, COLLARS.index(self.collar), out)
        return out

    def dye(self, points: np.ndarray, color: np.ndarray) -> np.ndarray:
        """As `color`, for the vertices of a collar of one color."""
        out = np.empty((len(points), 3), F)
        both = np.stack([color, self.colors[1], color]).astype(F)
        kind = PATTERNS.index(self.pattern if self.collar == "shirt" else "plain")
        self._dye(np.ascontiguousarray(points, F), both, kind, 0, out)
        return out

    def _dye(self, points: np.ndarray, colors: np.ndarray, kind: int, collar: int, out: np.ndarray) -> None:
        fabric = Fabric(kind, self.width, self.upright, self.folds, self.grain, self.deep, collar)
        _dye(points, colors, fabric, out)

    def _has_buttons(self) -> bool:
        return self.collar == "jacket" and self.tie


def garment(person: Person, shot: Shot) -> Garment:
    """The garment of an image. Raises ValueError for an unknown collar or pattern."""
    return Garment(shot)


def things(person: Person, shot: Shot, body: Body) -> list[Thing]:
    """Collars, lapels and ties of the garment."""
    worn = Garment(shot)
    main, second = worn.colors
    buttoned = worn._has_buttons()
    if worn.collar == "turtle":
        return [_thing(body, worn, *_roll(), main)]
    if worn.collar in ("crew", "vee"):
        return [_thing(body, worn, *_band(worn.collar, round(worn.loose, 3)), main * F(0.93))]
    color = main if worn.collar == "shirt" else worn.shirt
    parts = [_thing(body, worn, *_fold(buttoned), color)]
    if worn.collar == "jacket":
        parts.append(_thing(body, worn, *_jacket(), main * F(0.95)))
        if worn.tie:
            parts.append(_tie(body, worn, second))
    return parts


def _thing(body: Body, worn: Garment, points: np.ndarray, triangles: np.ndarray, color: np.ndarray) -> Thing:
    flat = points.reshape(-1, 3)
    return fit(flat, body, triangles, worn.dye(flat, color), 0.02, LABEL["cloth"], rigid=False)


def _around(angles: np.ndarray, heights: np.ndarray, offsets: np.ndarray, most: float = 0.13) -> np.ndarray:
    """Points (..., 3) around the neck: angle from the front, height, and metres off the skin."""
    angles, heights, offsets = np.broadcast_arrays(angles, heights, offsets)
    sin, cos = sine(angles), cosine(angles)
    direction = np.stack([sin, -cos, np.zeros_like(sin)], -1).reshape(-1, 3)
    origin = np.stack([np.zeros_like(sin), np.full_like(sin, _AXIS), heights], -1).reshape(-1, 3)
    radius = np.minimum(surface(origin, direction, 0.2), F(most)) + offsets.reshape(-1)
    return (origin + direction * radius[:, None]).reshape(*sin.shape, 3).astype(F)


def _edge(angles: np.ndarray, front: float, side: float, back: float) -> np.ndarray:
    """A height that runs smoothly from the front over the sides to the back."""
    c = cosine(angles)
    return side + np.where(c > 0, front - side, back - side) * c * c


@cache
def _fold(buttoned: bool) -> tuple[np.ndarray, np.ndarray]:
    """The collar of a shirt: it stands around the neck and folds over."""
    gap = 0.07 if buttoned else 0.42
    angles = circle(56, gap, 2 * math.pi - gap, closed=False)
    away = np.minimum(angles, 2 * math.pi - angles)
    near = np.clip(1.0 - (away - gap) / 0.55, 0.0, 1.0)  # 1 at the front ends
    top = _edge(away, 0.592, 0.613, 0.630) - (0.0 if buttoned else 0.010) * near
    low = _edge(away, 0.566, 0.584, 0.602) - 0.022 * near * near
    ease = 0.001 if buttoned else 0.005
    rows = [
        (top - 0.030, 0.001 + ease),
        (top - 0.010, 0.002 + ease),
        (top - 0.001, 0.0035 + ease),
        (top, 0.0055 + ease),
        (top - 0.003, 0.0085 + ease),
        (0.6 * top + 0.4 * low, 0.0115 + ease),
        (0.2 * top + 0.8 * low, 0.0130 + ease),
        (low, 0.0125 + ease),
        (low + 0.001, 0.0095 + ease),
    ]
    points = np.stack([_around(angles, z, off + 0 * angles, 0.105) for z, off in rows])
    return points, sheet(len(rows), len(angles), closed=False)[:, ::-1].copy()


@cache
def _roll() -> tuple[np.ndarray, np.ndarray]:
    """The collar of a turtleneck: a soft tube around the neck."""
    angles = circle(64)
    top = _edge(np.minimum(angles, 2 * math.pi - angles), 0.604, 0.622, 0.634)
    rows = [(top - 0.012, 0.003), (top - 0.002, 0.005), (top, 0.008), (top - 0.004, 0.0125), (top - 0.016, 0.0145),
            (top - 0.028, 0.0135), (top - 0.034, 0.010), (top - 0.037, 0.006)]  # fmt: skip
    points = np.stack([_around(angles, z, off + 0 * angles, 0.075) for z, off in rows])
    return points, sheet(len(rows), len(angles), closed=True)[:, ::-1].copy()


@cache
def _band(collar: str, loose: float) -> tuple[np.ndarray, np.ndarray]:
    """The knitted band of a neckline."""
    angles = circle(64)
    away = np.minimum(angles, 2 * math.pi - angles)
    x, y = 0.05 * sine(away), _AXIS - 0.05 * cosine(away)
    edge = 0.566 + loose + 0.36 * (y + 0.07)
    if collar == "vee":
        edge = edge - np.clip((-0.02 - y) / 0.03, 0, 1) * 1.7 * np.clip(0.055 - x, 0, 0.06)
    rows = [
        (edge, 0.001),
        (edge + 0.0025, 0.005),
        (edge + 0.001, 0.0085),
        (edge - 0.008, 0.0095),
        (edge - 0.015, 0.0075),
    ]
    points = np.stack([_around(angles, z, off + 0 * angles, 0.16) for z, off in rows])
    return points, sheet(len(rows), len(angles), closed=True)[:, ::-1].copy()


@cache
def _jacket() -> tuple[np.ndarray, np.ndarray]:
    """The collar of a jacket and its lapels: a sheet around the back of the neck that runs down the chest."""
    angles = circle(56, 0.30, 2 * math.pi - 0.30, closed=False)
    away = np.minimum(angles, 2 * math.pi - angles)
    near = np.clip((1.45 - away) / 1.15, 0.0, 1.0)
    top = _edge(away, 0.585, 0.596, 0.614) - 0.105 * near * near
    low = top - 0.030 - 0.020 * near
    rows = [
        (top - 0.012, 0.012),
        (top, 0.0155),
        (top - 0.002, 0.0195),
        (0.5 * (top + low), 0.0200),
        (low, 0.0170),
        (low, 0.010),
    ]
    points = np.stack([_around(angles, z, off + 0 * angles, 0.16) for z, off in rows])
    return points, sheet(len(rows), len(angles), closed=False)[:, ::-1].copy()


def _tie(body: Body, worn: Garment, color: np.ndarray) -> Thing:
    """A knot below the collar and the blade on the chest."""
    across = np.linspace(-1.0, 1.0, 9)
    down = np.concatenate([np.linspace(0.590, 0.560, 7), np.linspace(0.556, 0.455, 14)])
    half = np.where(down > 0.558, 0.0135 + (down - 0.560) * 0.22, 0.0115 + (0.556 - down) * 0.22)
    bulge = np.where(down > 0.558, 0.016, 0.010)
    x = half[:, None] * across
    angles = np.array([math.atan2(value, 0.055) for value in x.ravel()]).reshape(x.shape)
    off = bulge[:, None] * (1.0 - 0.55 * across**2) + 0.004
    points = _around(angles, down[:, None] + 0 * x, off)
    main = np.clip(color, F(0.015), F(0.5))
    stripe = (np.floor((points[..., 2] * F(70) + points[..., 0] * F(45)).astype(F)) % 2)[..., None]
    dye = main * (F(1.0) - F(0.35) * stripe * worn.grain)
    triangles = sheet(len(down), len(across), closed=False)
    return fit(points, body, triangles, dye.reshape(-1, 3), 0.06, LABEL["cloth"], rigid=False)


class Fabric(NamedTuple):
    """What a kernel needs of a cloth: its pattern (of PATTERNS, of this width), folds, weave, collar (of COLLARS)."""

    kind: int
    width: F
    upright: bool
    folds: np.ndarray
    grain: F
    deep: F
    collar: int


@kernel
def _dye(points, colors, fabric, out):
    """Fill out (N, 3): fabric with a pattern, folds and seams.

    ``colors`` (3, 3): main, second, and of the shirt below a jacket.
    """
    kind, width, upright, folds, grain, deep, collar = fabric
    for i in range(points.shape[0]):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        side = abs(x)
        # folds run from the neck outwards and down
        a = sin32(F(52) * x + F(30) * z + folds[0] + F(1.3) * sin32(F(23) * z + folds[1]))
        b = sin32(F(95) * side - F(58) * z + folds[2] + F(1.1) * sin32(F(31) * x + folds[3]))
        shade = F(1) + deep * (F(0.7) * a + F(0.55) * b * min(F(1), side * F(12)))
        weave = sin32(F(2900) * x + F(3) * a) * sin32(F(2900) * z)
        shade += F(0.03) * grain * weave
        below = collar == 4 and y < F(-0.02) and side < F(0.012) + F(0.42) * max(z - F(0.47), F(0))
        mix = F(0)
        if not below:
            if kind == 1:
                place = (x if upright else z) / (F(2) * width) + F(0.02) * a
                mix = F(1) if place - np.floor(place) < F(0.5) else F(0)
            elif kind == 2:
                p, q = x / (F(2) * width), z / (F(2) * width)
                mix = (F(0.42) if p - np.floor(p) < F(0.5) else F(0)) + (F(0.42) if q - np.floor(q) < F(0.5) else F(0))
            elif kind == 3:
                speck = sin32(F(1310) * x + F(5) * sin32(F(870) * z))
                speck *= sin32(F(1130) * z + F(4) * sin32(F(990) * x) + F(700) * y)
                mix = F(0.22) + F(0.22) * speck
        # the placket and its buttons
        if collar == 2 and y < F(-0.02):
            if abs(side - F(0.014)) < F(0.0009):
                shade *= F(0.75)
            place = (z - F(0.535)) / F(0.075)
            dz = (place - np.floor(place + F(0.5))) * F(0.075)
            if x * x + dz * dz < F(0.000025):
                shade *= F(0.55) if colors[0, 1] > F(0.3) else F(2.2)
        for c in range(3):
            base = colors[2, c] if below else colors[0, c]
            out[i, c] = max((base + (colors[1, c] - base) * mix) * shade, F(0.004))
