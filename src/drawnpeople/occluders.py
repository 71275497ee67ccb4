"""Objects before the face: a hand, a cup, a microphone and a scarf, modeled from round limbs with a height."""

import math

import numpy as np

from drawnpeople.kernels import blur, enlarge
from drawnpeople.labels import LABEL, linear
from drawnpeople.occluder_kernels import light_up, shape
from drawnpeople.seeding import generator
from drawnpeople.shot import Shot
from drawnpeople.skin import complexion

F = np.float32
SMOOTH, MESH, KNIT = 0.0, 1.0, 2.0
"""Textures of a material."""
_CUPS = ((232, 230, 224), (60, 66, 74), (150, 60, 50), (52, 78, 104), (196, 178, 150), (34, 34, 36))
_CORNERS = (48, 54)  # landmarks of the corners of the mouth


class Model:
    """Limbs in a plane before the mouth: metres to the right, up, and towards the camera."""

    def __init__(self, rng: np.random.Generator, skin: np.ndarray, shot: Shot):
        self.rng, self.shot = rng, shot
        self.limbs: list[tuple] = []
        self.materials: list[tuple] = []
        self.skin = self.material(skin, 0.05)
        self.nail = self.material(skin * F(0.8) + np.array([0.14, 0.10, 0.095], F), 0.25)
        self.sleeve = self.material(np.clip(shot.clothing[1], F(0.02), F(0.7)), 0.0)

    def one(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    def material(self, color, gloss: float, texture: float = SMOOTH) -> int:
        self.materials.append((*(float(c) for c in color), gloss, texture))
        return len(self.materials) - 1

    def limb(self, start, end, radii, material: int, flat: bool = False, squash: float = 1.0) -> None:
        """A tapered tube from ``start`` to ``end`` (right, up, height); ``flat``: its ends are cut off.

        ``squash``: its height over its radius.
        """
        self.limbs.append((*start, radii[0], *end, radii[1], float(material), float(flat), squash))

    def chain(self, points, radii, material: int, squash: float = 1.0) -> None:
        """Limbs that join ``points``."""
        for k in range(len(points) - 1):
            self.limb(points[k], points[k + 1], (radii[k], radii[k + 1]), material, squash=squash)


def _arm(m: Model, wrist, away, height: float) -> None:
    """Forearm and sleeve from the ``wrist`` (right, up) in the direction ``away``."""
    x, z = wrist
    dx, dz = away
    m.limb((x, z, height - 0.010), (x + 0.10 * dx, z + 0.10 * dz, height - 0.014), (0.024, 0.027), m.skin, squash=0.8)
    m.limb(
        (x + 0.065 * dx, z + 0.065 * dz, height - 0.012),
        (x + 0.4 * dx, z + 0.4 * dz, height - 0.02),
        (0.034, 0.046),
        m.sleeve,
        squash=0.8,
    )


def _hand(m: Model) -> None:
    """The back of a hand over the mouth, or at a cheek."""
    side = 1.0 if m.rng.random() < 0.5 else -1.0
    cheek = m.rng.random() < 0.45
    tilt = side * (m.one(0.1, 0.5) if cheek else m.one(0.75, 1.25))
    ox = side * (m.one(0.050, 0.068) if cheek else m.one(0.012, 0.03))
    oz = m.one(-0.03, 0.005) if cheek else m.one(-0.026, -0.006)
    cos, sin = math.cos(tilt), math.sin(tilt)
    size, spread, curl = m.one(0.88, 1.0), m.one(-0.3, 0.7), m.one(0.0, 0.5)

    def point(x, z, h):
        x, z = x * side * size, z * size
        return ox + x * cos + z * sin, oz - x * sin + z * cos, h

    fingers = ((-0.031, 0.072, 0.0078), (-0.0105, 0.082, 0.0083), (0.0105, 0.077, 0.0082), (0.031, 0.060, 0.0072))
    for x, long_, r in fingers:
        lean = spread * 0.10 * x / 0.031
        joints = [
            (x, -0.005, 0.002),
            (x + lean * 0.03, long_ * 0.45, 0.010 - 0.004 * curl),
            (x + lean * 0.05, long_ * 0.75, 0.008 - 0.010 * curl),
            (x + lean * 0.06, long_, 0.003 - 0.018 * curl),
        ]
        m.chain([point(*j) for j in joints], [r * 1.16, r * 1.06, r * 0.98, r * 0.86], m.skin)
        a, b = joints[2], joints[3]
        m.limb(
            point(0.45 * a[0] + 0.55 * b[0], 0.4 * a[1] + 0.6 * b[1], 0.4 * a[2] + 0.6 * b[2] + 0.0042),
            point(b[0], b[1] + 0.001, b[2] + 0.0036),
            (0.0044, 0.0040),
            m.nail,
        )
        m.limb(point(x, -0.005, 0.002), point(x * 0.62, -0.075, -0.001), (r * 1.25, 0.0145), m.skin, squash=0.9)
        m.limb(point(x * 0.80, -0.020, -0.001), point(x * 0.5, -0.085, -0.003), (0.0185, 0.0220), m.skin, squash=0.5)
    m.limb(point(0.022, -0.020, -0.002), point(-0.022, -0.022, -0.002), (0.0180, 0.0180), m.skin, squash=0.5)
    m.limb(point(0.008, -0.050, -0.002), point(-0.010, -0.055, -0.002), (0.0300, 0.0300), m.skin, squash=0.35)
    thumb = [(-0.030, -0.070, -0.006), (-0.052, -0.040, -0.004), (-0.063, -0.012, -0.003), (-0.064, 0.012, -0.003)]
    m.chain([point(*j) for j in thumb], [0.0150, 0.0115, 0.0098, 0.0084], m.skin)
    m.limb(point(0, -0.08, -0.008), point(0, -0.115, -0.010), (0.030, 0.026), m.skin, squash=0.75)
    w, v = point(0, -0.115, 0)[:2], point(0, -0.215, 0)[:2]
    _arm(m, w, ((v[0] - w[0]) / 0.1, (v[1] - w[1]) / 0.1), 0.0)


def _grip(m: Model, x: float, z: float, width: float, height: float, side: float, gap: float = 0.0180) -> None:
    """Four fingers around an upright object of half ``width`` at (x, z), the hand at ``side``, and the arm."""
    for k in range(4):
        y = z - gap * k
        r = (0.0088, 0.0092, 0.0090, 0.0080)[k]
        inner = x - side * width * (0.55, 0.66, 0.60, 0.42)[k]
        points = [
            (x + side * (width + 0.012), y + 0.004, 0.2 * height),
            (x + side * width * 0.75, y + 0.002, 0.75 * height),
            (x + side * width * 0.1, y, height + 0.002),
            (inner, y - 0.001, 0.86 * height),
        ]
        m.chain(points, [r * 1.15, r * 1.1, r, r * 0.9], m.skin)
        m.limb(
            (inner + side * 0.002, y, 0.86 * height + 0.0055),
            (inner - side * 0.003, y, 0.84 * height + 0.005),
            (0.0046, 0.0042),
            m.nail,
        )
    back = x + side * (width + 0.018)
    m.limb((back, z + 0.006, -0.004), (back + side * 0.008, z - 3 * gap, -0.006), (0.021, 0.024), m.skin)
    m.limb(
        (back, z - 1.2 * gap, -0.008), (back + side * 0.022, z - 4.6 * gap, -0.012), (0.027, 0.024), m.skin, squash=0.8
    )
    _arm(m, (back + side * 0.022, z - 4.6 * gap), (side * 0.42, -0.91), -0.004)


def _cup(m: Model) -> None:
    """A mug that a hand holds below the lips."""
    side = 1.0 if m.rng.random() < 0.5 else -1.0
    color = linear(np.array(_CUPS[int(m.rng.integers(len(_CUPS)))]) / 255.0)
    glaze = m.material(color, 0.16)
    inside = m.material(color * F(0.35), 0.02)
    x, z = m.one(-0.012, 0.012), m.one(-0.016, 0.008)
    high, r = m.one(0.085, 0.105), m.one(0.038, 0.043)
    m.limb((x, z, 0.0), (x, z - high, 0.0), (r, r * m.one(0.80, 1.0)), glaze, flat=True)
    m.limb((x - r * 0.93, z + 0.0005, 0.002), (x + r * 0.93, z + 0.0005, 0.002), (0.0024, 0.0024), glaze)
    m.limb((x - r * 0.80, z + 0.0045, -0.01), (x + r * 0.80, z + 0.0045, -0.01), (0.0040, 0.0040), inside)
    m.chain(
        [
            (x - side * r, z - 0.02, 0.0),
            (x - side * (r + 0.022), z - 0.026, 0.0),
            (x - side * (r + 0.024), z - 0.052, 0.0),
            (x - side * r, z - 0.066, 0.0),
        ],
        [0.0052] * 4,
        glaze,
    )
    _grip(m, x, z - 0.028, r, r * 0.98, side)


def _microphone(m: Model) -> None:
    """A microphone in a fist below the mouth."""
    side = 1.0 if m.rng.random() < 0.5 else -1.0
    gray = F(m.one(0.02, 0.22))
    ball = m.material(np.array([1, 1, 1.03], F) * gray, 0.10, MESH)
    ring = m.material(np.array([0.30, 0.30, 0.31], F) * F(m.one(0.3, 1.2)), 0.5)
    body = m.material(np.array([0.022, 0.022, 0.024], F), 0.10)
    x, z, lean = m.one(-0.022, 0.022), m.one(-0.030, -0.008), side * m.one(0.05, 0.35)
    down = (lean * 0.18, -0.18)
    m.limb((x, z, 0.012), (x + 0.02 * lean, z - 0.008, 0.010), (0.0225, 0.0215), ball)
    m.limb(
        (x + 0.024 * lean, z - 0.020, 0.008), (x + 0.032 * lean, z - 0.028, 0.006), (0.0205, 0.0185), ring, flat=True
    )
    m.limb((x + 0.03 * lean, z - 0.027, 0.004), (x + down[0], z + down[1], -0.01), (0.0160, 0.0115), body)
    _grip(m, x + 0.075 * lean, z - 0.068, 0.0145, 0.020, side, gap=0.0172)


def _scarf(m: Model) -> None:
    """A scarf that is wound around neck, chin and mouth."""
    main = np.clip(np.asarray(m.shot.hat_color, F), F(0.03), F(0.6))
    second = np.clip(np.asarray(m.shot.clothing[1], F), F(0.03), F(0.6))
    wool = [m.material(main, 0.0, KNIT), m.material(main * F(0.82) if m.rng.random() < 0.6 else second, 0.0, KNIT)]
    top = m.one(-0.006, 0.012)
    count, tilt = 6, m.one(-0.16, 0.16)
    for k in reversed(range(count)):
        sag, wide, r = m.one(0.8, 2.2), 0.080 + 0.010 * k, m.one(0.017, 0.023)
        z = top - 0.012 - 0.027 * k
        t = np.linspace(-1.0, 1.0, 9)
        points = [
            (
                float(a) * wide,
                float(z + tilt * a * wide + sag * (a * wide) ** 2 + 0.0015 * m.one(-1, 1)),
                float(0.008 + 0.030 - 0.045 * a * a - 0.006 * k),
            )
            for a in t
        ]
        m.chain(points, [r * m.one(0.96, 1.04) for _ in t], wool[k % 2], squash=0.8)


MODELS = {"hand": _hand, "cup": _cup, "microphone": _microphone, "scarf": _scarf}
"""Name of an occluder -> what adds its limbs to a model."""


def occlude(image: np.ndarray, label: np.ndarray, shot: Shot, camera, head) -> None:
    """Draw the occluder of ``shot`` over image (n, n, 3) and label (n, n), with its shadow on the face.

    Its label is background. Raises ValueError for an unknown one.
    """
    if not shot.occluder:
        return
    if shot.occluder not in MODELS:
        raise ValueError(f"no occluder is named {shot.occluder!r}: choose one of {', '.join(MODELS)}")
    n = len(label)
    model = Model(generator(shot.texture, "occluder"), complexion(head.body.person, shot).base, shot)
    MODELS[shot.occluder](model)
    limbs = np.array(model.limbs, F)
    corners = head.landmarks()[list(_CORNERS)]
    middle = ((corners[0] + corners[1]) * F(0.5)).astype(F)
    scale = F(1.0 / camera.metres)
    for first in (0, 4):  # metres to samples
        limbs[:, first] = middle[0] + limbs[:, first] * scale
        limbs[:, first + 1] = middle[1] - limbs[:, first + 1] * scale
        limbs[:, first + 2 : first + 4] *= scale
    cover, fields = np.zeros((n, n), F), np.zeros((n, n, 6), F)
    fields[..., 0] = F(-1e9)
    shape(limbs, cover, fields)
    aim = np.asarray(shot.light, F)
    reach = 0.016 / max(0.3, -float(aim[1])) * float(scale)
    dx, dy = round(-float(aim[0]) * reach), round(float(aim[2]) * reach)
    shade = _soft(_shift(cover, dx, dy), 0.007 * float(scale))
    image *= F(1) - F(0.55) * (shade * np.where(label > 0, F(1), F(0)))[..., None]
    four = np.stack([aim, np.asarray(shot.key, F), np.asarray(shot.sky, F), np.asarray(shot.ground, F)])
    light_up(image, cover, fields, np.array(model.materials, F), four, scale)
    label[cover > 0.5] = LABEL["background"]


def _soft(field: np.ndarray, sigma: float) -> np.ndarray:
    """The field (n, n), blurred by ``sigma`` samples: large ones as means of blocks, then enlarged."""
    n = len(field)
    block = next(k for k in (4, 3, 2, 1) if n % k == 0 and (k == 1 or sigma > 2.0 * k))
    if block == 1:
        return blur(field, sigma)
    small = field.reshape(n // block, block, n // block, block).mean((1, 3), dtype=F)
    return np.clip(enlarge(blur(small, sigma / block)[..., None], n, n)[..., 0], 0, 1)


def _shift(field: np.ndarray, dx: int, dy: int) -> np.ndarray:
    """The field (n, n), moved to the right and down; what comes in is 0."""
    n = len(field)
    out = np.zeros_like(field)
    out[max(dy, 0) : n + min(dy, 0), max(dx, 0) : n + min(dx, 0)] = field[
        max(-dy, 0) : n + min(-dy, 0), max(-dx, 0) : n + min(-dx, 0)
    ]
    return out
