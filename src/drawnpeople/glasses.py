"""Spectacles: tubes around the lenses, a bridge and temples, which are drawn as smooth lines with a depth."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from drawnpeople.kernels import kernel
from drawnpeople.labels import LABEL
from drawnpeople.light import Light
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, Head, pose
from drawnpeople.shot import Shot
from drawnpeople.template import template
from drawnpeople.things import circle, cosine, sine

F = np.float32
RIMS = {"round": (0.0232, 0.0218, 2.0), "square": (0.0262, 0.0185, 4.5), "oval": (0.0255, 0.0165, 2.3)}
"""Shape -> half width and half height of a lens in metres, and the power of its superellipse."""
_EAR = np.array([[0.0822, -0.0483, 0.7348], [-0.0822, -0.0483, 0.7348]], F)  # top of the ears on the template
_SCALE_EYES = 0.06155  # distance of the template's eyes


@dataclass(frozen=True)
class Frame:
    """Lines on a person without expression, float32 (k, 3) each, and their radii in metres, (k,)."""

    lines: tuple[np.ndarray, ...]  # two rims, the left one of the person first; then the bridge and two temples
    radii: tuple[np.ndarray, ...]
    metal: bool


def frame(shot: Shot, body: Body) -> Frame:
    """The glasses of a shot on a person. Raises ValueError for an unknown shape."""
    if shot.glasses not in RIMS:
        raise ValueError(f"no glasses are named {shot.glasses!r}: choose one of {', '.join(RIMS)}")
    rng = generator(shot.texture, "glasses")
    metal = bool(rng.random() < (0.8 if float(np.mean(shot.frame)) > 0.12 else 0.35))
    thick = rng.uniform(0.00055, 0.0008) if metal else rng.uniform(0.0013, 0.0023)
    eyes = np.stack([_middle(body.neutral[eye]) for eye in (template().left_eye, template().right_eye)])
    center = (eyes[0] + eyes[1]) * 0.5
    size = 0.5 + 0.5 * float(eyes[0, 0] - eyes[1, 0]) / _SCALE_EYES
    wide, high, power = RIMS[shot.glasses]
    wide, high = wide * size * rng.uniform(0.95, 1.06), high * size * rng.uniform(0.92, 1.10)
    middle = max(0.5 * float(eyes[0, 0] - eyes[1, 0]) + 0.0015, wide + 0.0075)
    angles = circle(45, closed=False)
    c, s = cosine(angles), sine(angles)
    grow = np.array([(abs(a) ** power + abs(b) ** power) ** (-1.0 / power) for a, b in zip(c, s, strict=True)])
    x, z = middle + wide * c * grow, high * s * grow - 0.002
    z = z + 0.10 * (x - middle) * (shot.glasses != "round")  # the outer corners are a little higher
    rims = [np.stack([side * x, _curve(x, z), z], 1) for side in (1, -1)]
    inner = middle - wide * 0.985
    along = np.linspace(-1.0, 1.0, 11)
    bridge = np.stack([along * inner, _curve(inner * along, 0) - 0.0015, 0.0030 + 0.0035 * (1.0 - along**2)], 1)
    front = np.concatenate([*rims, bridge]) + center
    forward = float(_measure_push(front.astype(F), body.neutral[_around_eyes()]))
    hinge = np.array([middle + wide * 0.99, _curve(middle + wide, 0.006), 0.0065])
    lines = [*rims, bridge]
    for k, side in enumerate((1.0, -1.0)):
        ear = _EAR[k] + body.shift[_ears()[k]] - center
        ear[1] += forward
        a = np.array([side * hinge[0], hinge[1], hinge[2]])
        b = np.array([ear[0] - side * 0.0055, ear[1] - 0.004, ear[2] + 0.003])
        t = np.linspace(0.0, 1.0, 14)[:, None]
        bow = np.array([side * 0.0035, 0.0, 0.0]) * (4.0 * t * (1.0 - t))
        hook = b + np.array([-side * 0.002, 0.026, -0.016]) * np.linspace(0.2, 1.0, 5)[:, None]
        lines.append(np.concatenate([a + (b - a) * t + bow, hook]))
    lines = [(line + center - np.array([0.0, forward, 0.0])).astype(F) for line in lines]
    heavier = thick * (1.0 if metal else 1.0 + 0.25 * np.clip(s, 0, 1))
    radii = [heavier * np.ones(45), heavier * np.ones(45), np.full(11, thick * 1.1)]
    radii += [np.full(19, thick * (1.25 if metal else 1.35))] * 2
    return Frame(tuple(lines), tuple(r.astype(F) for r in radii), metal)


def _middle(points: np.ndarray) -> np.ndarray:
    return ((points.min(0) + points.max(0)) * F(0.5)).astype(np.float64)


def _curve(x, z):
    """Depth of the lenses before the middle of the eyes: they are bent around the face and lean forward above."""
    return -0.0275 + 4.2 * x * x - 0.10 * z


@cache
def _ears() -> np.ndarray:
    """The template's vertices on top of the left and the right ear."""
    gaps = template().vertices[None] - _EAR[:, None]
    return (gaps * gaps).sum(-1).argmin(1)


@cache
def _around_eyes() -> np.ndarray:
    """The template's vertices that a frame may touch."""
    v = template().vertices
    skin = (np.abs(v[:, 0]) < 0.064) & (v[:, 1] < -0.085) & (v[:, 2] > 0.700) & (v[:, 2] < 0.765)
    skin[np.concatenate([template().left_eye, template().right_eye])] = False
    return np.flatnonzero(skin)


@kernel
def _measure_push(front, face):
    """The largest forward step that a point of the frame needs for 1.5 mm of room, at most 2 cm."""
    need = F(-0.004)
    for i in range(len(front)):
        best, y = F(1e9), F(0)
        for j in range(len(face)):
            dx, dz = face[j, 0] - front[i, 0], face[j, 2] - front[i, 2]
            d = dx * dx + dz * dz
            if d < best:
                best, y = d, face[j, 1]
        if best < F(0.000064):
            need = max(need, front[i, 1] - y + F(0.0015))
    return min(need, F(0.02))


def glaze(canvas, head: Head, light: Light) -> None:
    """Draw the glasses of the head's shot, if there are any, on a canvas with image, depth and label.

    The label eye_g covers frame and lenses, as in CelebAMask-HQ.
    """
    shot = head.shot
    if not shot.glasses:
        return
    made = frame(shot, head.body)
    ones = [np.ones(len(line), F) for line in made.lines]
    lines = [pose(line, one, head.turn, head._chest, head._pivot) for line, one in zip(made.lines, ones, strict=True)]
    flat = [head.camera.project(line) for line in lines]
    metres = F(head.camera.metres)
    rng = generator(shot.texture, "lenses")
    strength = F(rng.uniform(0.0, 1.0) ** 2)
    slant, at = F(rng.uniform(-0.6, 0.6)), F(rng.uniform(-0.5, 0.5))
    cover = np.zeros(canvas.depth.shape, F)
    back = light.direction * F(-min(0.013 / max(0.25, -float(light.direction[1])), 0.03))
    for line, radii in zip(lines[:3], made.radii, strict=False):
        _shadow(head.camera.project(line + back), radii / metres, canvas.depth, cover)
    canvas.image *= F(1) - (F(0.35) * cover)[..., None]
    surface, number = (canvas.image, canvas.depth, canvas.label), LABEL["eye_g"]
    for points in flat[:2]:
        _lens(surface, points, light.key, light.sky, (strength, slant, at), number)
    color, rows = np.asarray(shot.frame, F), light.rows
    for points, radii in zip(flat, made.radii, strict=True):
        cover.fill(0)
        _tube(surface, points, radii / metres, (color, made.metal), rows, cover, number)


@kernel
def _lens(surface, rim, key, sky, mirror, number):
    """A lens: it takes a little light away and mirrors a pale stripe of the window or lamp.

    ``surface``: image, depth and label. ``mirror``: strength, slant and place of the stripe.
    """
    image, depth, label = surface
    strength, slant, at = mirror
    height, width = depth.shape
    count = len(rim) - 1
    left, right, upper, lower, z = F(1e9), F(-1e9), F(1e9), F(-1e9), F(0)
    for k in range(count):
        left, right = min(left, rim[k, 0]), max(right, rim[k, 0])
        upper, lower = min(upper, rim[k, 1]), max(lower, rim[k, 1])
        z += rim[k, 2] / F(count)
    for y in range(max(0, int(upper)), min(height - 1, int(lower) + 1) + 1):
        for x in range(max(0, int(left)), min(width - 1, int(right) + 1) + 1):
            inside = False
            for k in range(count):
                ax, ay, bx, by = rim[k, 0], rim[k, 1], rim[k + 1, 0], rim[k + 1, 1]
                if (ay > y) != (by > y) and x < ax + (y - ay) / (by - ay) * (bx - ax):
                    inside = not inside
            if not inside or depth[y, x] < z - F(0.012):
                continue
            u = F(2) * (x - left) / (right - left + F(1e-6)) - F(1)
            v = F(2) * (y - upper) / (lower - upper + F(1e-6)) - F(1)
            stripe = max(F(1) - abs(u + slant * v - at) / F(0.28), F(0))
            stripe = stripe * stripe * (F(3) - F(2) * stripe)
            glow = F(0.012) + F(0.05) * strength * max(-v, F(0))
            for c in range(3):
                mirrored = F(0.055) * strength * stripe * (sky[c] + F(0.3) * key[c])
                image[y, x, c] = F(0.94) * image[y, x, c] + glow * sky[c] + mirrored
            label[y, x] = number


@kernel
def _shadow(points, radii, depth, cover):
    """Fill cover (n, n) with the shadow of a tube on a surface that is near to its points."""
    height, width = depth.shape
    for k in range(len(points) - 1):
        (ax, ay, az), (bx, by, bz) = points[k], points[k + 1]
        r = F(1.3) * max(radii[k], radii[k + 1])
        reach = r + F(1.5)
        length = (bx - ax) * (bx - ax) + (by - ay) * (by - ay) + F(1e-9)
        for y in range(max(0, int(min(ay, by) - reach)), min(height - 1, int(max(ay, by) + reach) + 1) + 1):
            for x in range(max(0, int(min(ax, bx) - reach)), min(width - 1, int(max(ax, bx) + reach) + 1) + 1):
                t = min(max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, F(0)), F(1))
                dx, dy = x - ax - t * (bx - ax), y - ay - t * (by - ay)
                d = F(np.sqrt(dx * dx + dy * dy))
                a = min(max((reach - d) / (reach - F(0.4) * r + F(0.5)), F(0)), F(1)) * min(F(1), r + F(0.3))
                if abs(depth[y, x] - az - t * (bz - az)) < F(0.03):
                    cover[y, x] = max(cover[y, x], a)


@kernel
def _tube(surface, points, radii, material, light, cover, number):
    """A tube along points (k, 3) with radii in samples, in front of what is further away.

    ``surface``: image, depth and label. ``material``: its color, and whether it is metal.
    """
    image, depth, label = surface
    color, metal = material
    height, width = depth.shape
    for k in range(len(points) - 1):
        (ax, ay, az), (bx, by, bz) = points[k], points[k + 1]
        r = max(radii[k], radii[k + 1])
        thin = min(F(1), r / F(0.5))
        r = max(r, F(0.5))
        reach = r + F(0.5)
        length = (bx - ax) * (bx - ax) + (by - ay) * (by - ay) + F(1e-9)
        root = F(np.sqrt(length))
        px, py = -(by - ay) / root, (bx - ax) / root
        for y in range(max(0, int(min(ay, by) - reach)), min(height - 1, int(max(ay, by) + reach) + 1) + 1):
            for x in range(max(0, int(min(ax, bx) - reach)), min(width - 1, int(max(ax, bx) + reach) + 1) + 1):
                t = min(max(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, F(0)), F(1))
                dx, dy = x - ax - t * (bx - ax), y - ay - t * (by - ay)
                d = F(np.sqrt(dx * dx + dy * dy))
                a = thin * min(max(reach - d, F(0)), F(1))
                if a <= cover[y, x] or az + t * (bz - az) - F(0.002) > depth[y, x]:
                    continue
                s = min(max((dx * px + dy * py) / r, F(-1)), F(1))
                nx, ny, nz = s * px, -F(np.sqrt(F(1) - s * s)), -s * py
                facing = max(nx * light[0, 0] + ny * light[0, 1] + nz * light[0, 2], F(0))
                up = F(0.5) + F(0.5) * nz
                hx, hy, hz = light[0, 0], light[0, 1] - F(1), light[0, 2]
                half = max((nx * hx + ny * hy + nz * hz) / F(np.sqrt(hx * hx + hy * hy + hz * hz + F(1e-9))), F(0))
                half = half * half
                half = half * half * half
                gloss = F(0.35) if metal else F(0.08)
                before, share = cover[y, x], F(0)
                share = (a - before) / (F(1) - before + F(1e-6))
                for c in range(3):
                    around = light[2, c] * up + light[3, c] * (F(1) - up)
                    lit = color[c] * (F(0.8) * around + facing * light[1, c])
                    lit += gloss * half * light[1, c] * (color[c] + F(0.1))
                    lit += (F(0.25) * color[c] if metal else F(0.015)) * around
                    image[y, x, c] += min(share, F(1)) * (lit - image[y, x, c])
                cover[y, x] = a
                if a > F(0.4):
                    label[y, x] = number
