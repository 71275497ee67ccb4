"""Hair styles: how the guides of each are combed, how long they are, and how their strands spread."""

from dataclasses import dataclass

import numpy as np

from drawnpeople.person import Person
from drawnpeople.roots import CROWN, ramp, unit

Amount = np.ndarray | float
"""A number for each strand, or one for all."""


@dataclass
class Cut:
    """What `growth.fall` needs for each guide, and how children spread around the guides. Lengths in metres."""

    start: np.ndarray
    comb: np.ndarray
    hold: np.ndarray
    gravity: np.ndarray
    cling: np.ndarray
    lift: np.ndarray
    length: np.ndarray
    floor: np.ndarray
    clear: np.ndarray
    tuck: np.ndarray
    aim: np.ndarray
    aimed: np.ndarray
    points: int = 14
    steps: int = 40
    strands: int = 2400
    width: float = 0.0011
    clump: float = 0.7
    volume: float = 0.006  # height of the outermost strands above their guides
    stray: float = 0.006
    ragged: float = 0.15  # share of the length by which strands differ
    wave: tuple[float, float] = (0.0, 0.03)
    shine: float = 1.0
    root_dark: float = 0.35
    split: bool = True
    knot: np.ndarray | None = None


def parting(person: Person) -> float:
    """Metres of the parting to the left of the middle."""
    if person.style == "side":
        return max(0.024, abs(person.part)) * (1 if person.part >= 0 else -1)
    return person.part


def sideways(points: np.ndarray, part: float) -> np.ndarray:
    """+1 to the left of the parting, -1 to its right, and less near it."""
    return np.where(points[:, 0] > part, 1.0, -1.0)


def vectors(count: int, x: Amount = 0.0, y: Amount = 0.0, z: Amount = 0.0) -> np.ndarray:
    """Vectors of these parts, each one number or (count,): float64 (count, 3)."""
    return np.stack([np.broadcast_to(np.asarray(v, np.float64), count) for v in (x, y, z)], 1)


def flat(vector: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """The unit part of vectors along the skin."""
    along = vector[:, 0] * normal[:, 0] + vector[:, 1] * normal[:, 1] + vector[:, 2] * normal[:, 2]
    return unit(vector - along[:, None] * normal)


def cut(person: Person, points: np.ndarray, normals: np.ndarray, draw: np.random.Generator) -> Cut:
    """The cut of a person for guides at these roots."""
    count = len(points)
    z = points[:, 2].astype(np.float64)

    def full(value: float) -> np.ndarray:
        return np.full(count, value, np.float64)

    plan = Cut(
        start=normals.astype(np.float64), comb=vectors(count, z=-1.0), hold=full(0.06), gravity=full(0.6),
        cling=full(0.5), lift=full(0.002), length=full(0.03), floor=full(-1.0), clear=full(0.0), tuck=full(0.0),
        aim=vectors(count), aimed=np.zeros(count, bool),
    )  # fmt: skip
    jitter = draw.normal(0, 1, (count, 3))
    u = draw.random(count)
    style = person.style
    if style in ("buzz", "short", "side"):
        crop(person, plan, points, normals, jitter, u, draw)
    elif style == "afro":
        plan.start = plan.comb = normals + 0.45 * flat(unit(points - CROWN).astype(np.float64), normals) + 0.04 * jitter
        plan.gravity, plan.cling = full(0.0), full(0.0)
        plan.length = (0.018 + 0.027 * ramp(z, 0.70, 0.80)) * person.length * (0.94 + 0.06 * u)
        plan.points, plan.strands, plan.width, plan.clump = 12, 4400, 0.0019, 0.0
        plan.volume, plan.stray, plan.ragged, plan.wave = 0.0, 0.004, 0.14, (0.0055, 0.0155)
        plan.shine, plan.root_dark, plan.split = 0.15, 0.6, False
    elif style in ("bun", "ponytail"):
        gather(person, plan, points, normals, jitter, u, draw)
    else:
        flowing(person, plan, points, normals, jitter, u, draw)
    if style not in ("afro", "buzz") and person.curl > 0.15 and plan.wave[0] == 0.0:
        tight = max(0.0, person.curl - 0.15) / 0.85
        short = style in ("short", "side")
        radius, long, tighter = (0.0025, 0.028, 0.012) if short else (0.0045, 0.065, 0.038)
        plan.wave = (radius * (0.35 + 0.65 * tight), long - tighter * tight)
        plan.points = max(plan.points, int(plan.points * (1 + 0.8 * tight)))
        plan.volume *= 1 + 0.6 * tight
        plan.shine *= 1 - 0.4 * tight
    return plan


def crop(person, plan, points, normals, jitter, u, draw) -> None:
    """Short cuts: a crop that stands (buzz), swept forward, up or sideways on top (short), or from a parting (side)."""
    count = len(points)
    x, z = points[:, 0].astype(np.float64), points[:, 2].astype(np.float64)
    top = ramp(z, 0.768, 0.808)
    out = unit(points - CROWN).astype(np.float64)  # away from the whorl
    down = vectors(count, y=0.35, z=-1.0)
    full = np.ones(count)
    plan.split = False
    if person.style == "buzz":
        plan.comb = flat(out, normals) * 0.6 + normals
        plan.start = plan.comb + 0.15 * jitter
        plan.length = (0.0045 + 0.0035 * top) * person.length * (0.8 + 0.2 * u)
        plan.gravity, plan.cling, plan.lift = 0 * full, 0 * full, 0 * full
        plan.points, plan.steps, plan.strands, plan.width = 3, 4, 5200, 0.0008
        plan.clump, plan.volume, plan.stray, plan.ragged, plan.shine, plan.root_dark = 0.0, 0.0, 0.001, 0.4, 0.3, 0.3
        return
    if person.style == "side":
        side = sideways(points, parting(person))
        lean = np.clip(np.abs(x - parting(person)) / 0.02, 0.3, 1)
        comb = flat(vectors(count, side * 0.9 * lean, 0.30 - 0.45 * ramp(-points[:, 1], 0.06, 0.10), 0.1), normals)
        long, rise, plan.split = 0.052, 0.30, True
    else:
        way = draw.integers(4)  # forward, up, across, back
        aim = [(0.10, -1.0, -0.15), (0.15, -0.55, 0.7), (0.85, -0.45, 0.1), (0.1, 0.8, 0.3)][way]
        comb = flat(vectors(count, aim[0] * np.sign(person.part + 1e-6), aim[1]), normals)
        comb = comb + normals * max(aim[2], 0.05)
        long, rise = (0.026, 0.036, 0.038, 0.042)[way], (0.25, 0.7, 0.45, 0.5)[way]
    sides = flat(down, normals)
    plan.comb = comb * top[:, None] + sides * (1 - top)[:, None] + 0.16 * jitter
    plan.start = plan.comb + normals * (0.25 + rise * top)[:, None]
    fade = 0.55 + 0.45 * ramp(z, 0.70, 0.76)
    plan.length = ((0.012 * fade) * (1 - top) + long * top) * person.length * (0.75 + 0.25 * u)
    plan.hold, plan.gravity, plan.cling = 0.05 * full, 0.10 + 0.25 * (1 - top), 0.25 + 0.6 * (1 - top)
    plan.lift = 0.001 + 0.006 * top * rise
    plan.points, plan.steps, plan.strands, plan.width = 7, 14, 3600, 0.00105
    plan.clump, plan.volume, plan.stray, plan.ragged, plan.root_dark = 0.40, 0.0030, 0.005, 0.30, 0.30


def flowing(person, plan, points, normals, jitter, u, draw) -> None:
    """Hair that falls: medium, long, curly, bob, and fringe, which has its front hair over the forehead."""
    count = len(points)
    x, y, z = points.T.astype(np.float64)
    full = np.ones(count)
    side = sideways(points, parting(person))
    back = ramp(y, -0.045, -0.01)
    high = ramp(z, 0.745, 0.79)  # hair of the temples and below hangs down at once
    comb = vectors(count, side * (0.95 - 0.45 * back) * high, 0.30 + 0.25 * back, -0.35 - 0.65 * (1 - high))
    plan.comb = flat(comb, normals) + 0.10 * jitter
    plan.start = plan.comb + normals * (0.12 + 0.18 * high)[:, None]
    plan.hold, plan.gravity, plan.cling = 0.07 * full, 0.80 * full, 0.55 * full
    lowest = {"medium": 0.630, "long": 0.545, "fringe": 0.575, "curly": 0.600, "bob": 0.652}[person.style]
    if person.style != "long":
        lowest -= 0.05 * (person.length - 1)
    plan.floor = lowest + 0.006 * jitter[:, 0]
    plan.length = (z - lowest + 0.12) * (1.05 if person.style == "curly" else 1.0)
    plan.length = np.clip(plan.length, 0.05, 0.40)
    plan.lift = 0.0025 + 0.0020 * u + 0.004 * ramp(z, 0.80, 0.84)
    plan.clear = full.copy()
    if person.style in ("medium", "long") and draw.random() < 0.45:
        plan.tuck = (np.abs(x) > 0.0) * (0.7 + 0.3 * u)
    plan.strands, plan.width, plan.points, plan.steps = 2200, 0.0013, 16, 48
    plan.volume, plan.stray, plan.ragged, plan.clump = 0.0080, 0.007, 0.12, 0.60
    if person.style == "curly":
        plan.wave = (0.0055 * (0.7 + 0.6 * person.curl), 0.034 - 0.012 * person.curl)
        plan.points, plan.volume, plan.clump, plan.shine, plan.cling = 30, 0.012, 0.55, 0.6, 0.25 * full
        plan.lift = plan.lift + 0.004
    elif person.style == "bob":
        plan.cling, plan.clump, plan.volume = 0.75 * full, 0.5, 0.008
    elif person.style == "fringe":
        front = (y < -0.062) & (np.abs(x) < 0.050) & (z > 0.780)
        plan.comb[front] = flat(vectors(front.sum(), x[front] * 5.0, -1.0, -0.2), normals[front]) + 0.07 * jitter[front]
        plan.start[front] = plan.comb[front] + 0.35 * normals[front]
        plan.clear[front] = 0.0
        plan.tuck[front] = 0.0
        plan.floor[front] = 0.7605 + 0.0022 * jitter[front, 1] - 0.25 * np.clip(np.abs(x[front]) - 0.03, 0, 1)
        plan.gravity[front] = 0.75
        plan.lift[front] = 0.0030


def gather(person, plan, points, normals, jitter, u, draw) -> None:
    """Hair drawn back over the head to a knot: a bun, or a ponytail that falls from it."""
    count = len(points)
    full = np.ones(count)
    high = draw.random() < (0.5 if person.style == "bun" else 0.35)
    plan.knot = np.array([0.0, 0.040, 0.842] if high else [0.0, 0.052, 0.765])
    toward = unit(plan.knot - points).astype(np.float64)
    plan.comb = flat(toward, normals) + 0.04 * jitter
    plan.start = plan.comb + 0.22 * normals
    plan.aim, plan.aimed = np.broadcast_to(plan.knot, (count, 3)).copy(), np.ones(count, bool)
    gap = plan.knot - points
    far = np.sqrt(gap[:, 0] ** 2 + gap[:, 1] ** 2 + gap[:, 2] ** 2)
    plan.length = far * 1.35
    plan.lift = 0.0022 + 0.002 * u
    plan.gravity, plan.cling = 0 * full, 0.9 * full
    plan.strands, plan.width, plan.points, plan.steps = 2200, 0.0012, 12, 36
    plan.volume, plan.stray, plan.ragged, plan.clump, plan.root_dark = 0.0035, 0.002, 0.03, 0.3, 0.25
    plan.split = False
