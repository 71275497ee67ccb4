"""Hats: a knitted hat, a baseball cap and a brimmed hat, fitted to the skull of the template."""

import math
from functools import cache

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.labels import LABEL
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, Head
from drawnpeople.shot import Shot
from drawnpeople.template import template
from drawnpeople.things import Thing, circle, cosine, fit, sheet, sine, surface

F = np.float32
_MIDDLE = -0.055  # y of the middle of the skull on the template
_COLUMNS = 72
_EDGES = {"knitted hat": (0.788, 0.748, 0.712), "cap": (0.793, 0.768, 0.735), "brimmed hat": (0.790, 0.772, 0.742)}
"""Hat -> height of its edge at the forehead, over the ears and at the back of the head."""
HATS = tuple(_EDGES)


def hat_covers(points: np.ndarray, shot: Shot) -> np.ndarray:
    """Whether the hat of a shot hides places (..., 3) on the template, bool (...): hair is not drawn there."""
    points = np.asarray(points, F)
    if not shot.hat:
        return np.zeros(points.shape[:-1], bool)
    x, y = points[..., 0], points[..., 1] - F(_MIDDLE)
    c = -y / np.sqrt(x * x + y * y + F(1e-8))
    front, side, back = (F(height) for height in _EDGES[shot.hat])
    return points[..., 2] > side + np.where(c > 0, front - side, back - side) * c * c + F(0.004)


def hat(shot: Shot, body: Body) -> list[Thing]:
    """The meshes of the hat. Raises ValueError for an unknown one."""
    if not shot.hat:
        return []
    if shot.hat not in HATS:
        raise ValueError(f"no hat is named {shot.hat!r}: choose one of {', '.join(HATS)}")
    color = np.clip(np.asarray(shot.hat_color, F), F(0.012), F(0.75))
    if shot.hat == "brimmed hat":  # felt and straw have muted colors
        color = F(0.55) * color + F(0.45) * color.mean(dtype=F)
    rng = generator(shot.texture, "hat")
    parts = {"knitted hat": _knit, "cap": _cap, "brimmed hat": _build_brim}[shot.hat]()
    second = color * F(rng.uniform(0.35, 0.8)) if rng.random() < 0.5 else color
    made = []
    for points, triangles, tone, share in parts:
        dye = (second + (color - second) * share[..., None]) * tone[..., None]
        made.append(fit(points, body, triangles, dye.reshape(-1, 3).astype(F), 0.03, LABEL["hat"], rigid=True))
    return made


def tuck(strands: np.ndarray, head: Head) -> np.ndarray:
    """Strands (s, k, 3) in the world of an image, cut off where the hat of its shot hides them.

    The points below the hat move to the place where a strand comes out; a strand that does not moves out of sight.
    """
    if not head.shot.hat:
        return strands
    shift = head.body.shift[head_top()].mean(0, dtype=np.float64).astype(F)
    front, side, back = (F(height) for height in _EDGES[head.shot.hat])
    return _tuck(np.ascontiguousarray(strands, F), head.turn, head._pivot, shift, front, side, back)


@cache
def head_top() -> np.ndarray:
    """Vertices of the template around the edge of a hat, int64 (n,)."""
    v = template().vertices
    return np.flatnonzero((v[:, 2] > 0.76) & (v[:, 2] < 0.80) & (np.abs(v[:, 0]) > 0.03))


@kernel
def _tuck(strands, turn, pivot, shift, front, side, back):
    out = strands.copy()
    for s in range(strands.shape[0]):
        last = strands.shape[1]  # the first point of the part that is seen, from the tip on
        for k in range(strands.shape[1] - 1, -1, -1):
            a, b, c = strands[s, k, 0] - pivot[0], strands[s, k, 1] - pivot[1], strands[s, k, 2] - pivot[2]
            x = turn[0, 0] * a + turn[1, 0] * b + turn[2, 0] * c + pivot[0] - shift[0]
            y = turn[0, 1] * a + turn[1, 1] * b + turn[2, 1] * c + pivot[1] - shift[1] - F(_MIDDLE)
            z = turn[0, 2] * a + turn[1, 2] * b + turn[2, 2] * c + pivot[2] - shift[2]
            cos = -y / F(np.sqrt(x * x + y * y + F(1e-8)))
            edge = side + (front - side if cos > 0 else back - side) * cos * cos
            if z < edge + F(0.004):
                last = k
            elif last < strands.shape[1]:
                out[s, k] = out[s, k + 1]
            else:
                out[s, k, 1] += F(10)
                out[s, k, 2] -= F(10)
        if last == strands.shape[1]:
            continue
        for k in range(last + 1, strands.shape[1]):
            if out[s, k, 2] < strands[s, k, 2] - F(5):  # the tip went back below the hat
                out[s, k] = out[s, k - 1]
    return out


def _edge(angles: np.ndarray, kind: str) -> np.ndarray:
    front, side, back = _EDGES[kind]
    c = cosine(angles)
    return side + np.where(c > 0, front - side, back - side) * c * c


@cache
def _shell(kind: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (rows, columns, 3) of the skull from the edge of a hat to the crown, and directions away from it."""
    angles = circle(_COLUMNS)
    edge = _edge(angles, kind)
    middle = np.array([0.0, _MIDDLE, 0.765])
    rim = surface(
        np.stack([0 * edge, 0 * edge + _MIDDLE, edge], 1), np.stack([sine(angles), -cosine(angles), 0 * edge], 1), 0.13
    )
    start = np.array([math.atan2(z - middle[2], r) for z, r in zip(edge, rim, strict=True)])
    t = (np.arange(rows) / (rows - 1.0))[:, None]
    rise = start + (0.5 * math.pi - 0.02 - start) * t
    sin, cos = sine(rise), cosine(rise)
    out = np.stack([cos * sine(angles), -cos * cosine(angles), sin], -1)
    radius = surface(np.broadcast_to(middle, out.shape).reshape(-1, 3), out.reshape(-1, 3), 0.14).reshape(rise.shape)
    return middle + out * radius[..., None], out


@cache
def _knit():
    """Ribs, and a cuff that is turned up."""
    rows = 20
    skull, out = _shell("knitted hat", rows)
    t = np.arange(rows) / (rows - 1.0)
    rib = np.where(np.arange(_COLUMNS) % 2 == 0, 1.0, -1.0)
    cuff = t < 0.27
    thick = np.where(cuff, 0.0155, 0.0105) + 0.020 * t * t  # slack at the crown
    thick = np.where(t == 0, 0.004, thick)[:, None] + 0.0011 * rib * np.where(t > 0.9, 0.2, 1.0)[:, None]
    points = skull + out * thick[..., None]
    tone = np.where(rib > 0, 1.06, 0.80) * np.ones((rows, 1))
    tone = tone * np.where(np.abs(t - 0.29) < 0.03, 0.62, 1.0)[:, None] * np.where(t == 0, 0.6, 1.0)[:, None]
    return ((points, _outwards(rows), tone, np.ones_like(tone)),)


@cache
def _cap():
    """Six panels with a button, and a peak."""
    rows = 16
    skull, out = _shell("cap", rows)
    t = (np.arange(rows) / (rows - 1.0))[:, None]
    angles = circle(_COLUMNS)
    front = np.clip(cosine(angles), 0, 1)
    thick = 0.009 + 0.006 * t + 0.016 * front * t * (1.0 - t) * 2.2 + 0.006 * t**6
    thick = np.where(t == 0, 0.005, thick)
    points = skull + out * thick[..., None]
    seam = (np.arange(_COLUMNS) + 6) % 12 == 0
    tone = np.where(seam, 0.72, 1.0) * np.ones((rows, 1)) * np.where((t < 0.02) | (np.abs(t - 0.09) < 0.02), 0.8, 1.0)
    crown = (points, _outwards(rows), tone, np.ones_like(tone))
    across = np.linspace(-1.0, 1.0, 19)
    reach = np.linspace(0.0, 1.0, 8)[:, None]
    a = across * 1.02  # radians from the front along the edge
    rim = (
        surface(np.stack([0 * a, 0 * a + _MIDDLE, _edge(a, "cap")], 1), np.stack([sine(a), -cosine(a), 0 * a], 1), 0.13)
        + 0.009
    )
    rim = rim - 0.006  # it begins inside of the crown
    x0, y0, z0 = rim * sine(a), _MIDDLE - rim * cosine(a), _edge(a, "cap") + 0.004
    long_ = 0.080 * np.sqrt(np.clip(1.0 - np.abs(across) ** 2.6, 0, 1))
    bend = 0.016 * across**2
    x = x0 + 0.10 * x0 * reach
    y = y0 - long_ * reach
    z = z0 - (0.018 * reach + bend * reach)
    top = np.stack([x, y, z], -1)
    bottom = top - np.array([0.0, 0.0, 0.0028])
    tone_top = np.where(np.abs(reach - 0.95) < 0.07, 0.8, 1.0) * np.ones_like(x)
    triangles = sheet(len(reach), len(across), closed=False)
    return (
        crown,
        (top, triangles[:, ::-1].copy(), tone_top, np.zeros_like(x)),
        (bottom, triangles, np.full_like(x, 0.55), np.zeros_like(x)),
    )


@cache
def _build_brim():
    """A crown with a ribbon, and a brim around it."""
    angles = circle(_COLUMNS)
    edge = _edge(angles, "brimmed hat")
    sin, cos = sine(angles), cosine(angles)
    rim = surface(np.stack([0 * edge, 0 * edge + _MIDDLE, edge], 1), np.stack([sin, -cos, 0 * edge], 1), 0.13) + 0.010
    profile = [
        (0.0, 1.0),
        (0.010, 1.01),
        (0.024, 1.0),
        (0.026, 0.99),
        (0.055, 0.95),
        (0.085, 0.90),
        (0.098, 0.80),
        (0.101, 0.62),
        (0.095, 0.40),
        (0.090, 0.20),
        (0.089, 0.02),
    ]
    points, tone, share = [], [], []
    for k, (high, wide) in enumerate(profile):
        z = 0.788 + (edge - 0.788) * (1.0 - high / 0.11) + high
        points.append(np.stack([rim * wide * sin, _MIDDLE - rim * wide * cos, z], -1))
        tone.append(np.full(_COLUMNS, 0.5 if k <= 2 else 1.0))
        share.append(np.full(_COLUMNS, 0.0 if k <= 2 else 1.0))
    crown = (np.stack(points), _outwards(len(profile)), np.stack(tone), np.stack(share))
    rows = 7
    reach = np.linspace(0.0, 1.0, rows)[:, None]
    wide = rim + 0.058 * reach
    z = edge + 0.002 - 0.010 * reach + 0.016 * reach * reach * sin * sin
    top = np.stack([wide * sin, _MIDDLE - wide * cos, z], -1)
    bottom = top - np.array([0.0, 0.0, 0.003])
    outer = np.stack([top[-1], bottom[-1]])
    ones = np.ones((rows, _COLUMNS))
    return (
        crown,
        (top, _outwards(rows)[:, ::-1].copy(), ones, ones),
        (bottom, _outwards(rows), 0.7 * ones, ones),
        (outer, _outwards(2)[:, ::-1].copy(), 0.85 * ones[:2], ones[:2]),
    )


def _outwards(rows: int) -> np.ndarray:
    """Triangles of a closed shell whose first row is its lower edge."""
    return sheet(rows, _COLUMNS, closed=True)
