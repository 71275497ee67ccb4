"""The color of skin, lips, eyes and teeth at each visible point, and the unevenness of the skin."""

from functools import cache
from typing import NamedTuple

import numpy as np

from drawnpeople import aging
from drawnpeople.aging import CELL, COLUMNS, GROUPS, LEFT, LOW, ROWS, STEEP, STEP
from drawnpeople.kernels import enlarge, exp32, kernel, sin32
from drawnpeople.labels import linear
from drawnpeople.person import Person
from drawnpeople.seeding import generator
from drawnpeople.shot import Shot
from drawnpeople.template import EYE, MOUTH, SKIN, TEETH, Template, template

F = np.float32
TONES = linear(
    np.array(
        [
            [246, 222, 208],
            [236, 202, 182],
            [219, 178, 152],
            [192, 146, 116],
            [155, 110, 83],
            [112, 77, 58],
            [74, 50, 40],
        ]
    )
    / 255.0
)
"""Linear light that skin reflects, from melanin 0 to melanin 1."""
TILE = 1024


class Complexion(NamedTuple):
    """What the skin of one image depends on. Colors are float32 (3,), linear."""

    base: np.ndarray
    lips: np.ndarray
    hair: np.ndarray
    iris: np.ndarray
    teeth: np.ndarray
    melanin: np.float32
    flush: np.float32
    blusher: np.float32
    freckles: np.float32
    bags: np.float32
    wrinkles: np.float32
    squint: np.float32
    liner: np.float32
    shade: np.float32
    makeup: np.float32
    lip_paint: np.float32
    gloss: np.float32
    lip_gloss: np.float32
    creases: np.ndarray  # see `aging.creases`
    depths: np.ndarray  # of the groups of creases


def skin_tone(melanin: float) -> np.ndarray:
    """Linear light that skin with this share of melanin reflects, float32 (3,): 0 the lightest to 1 the darkest."""
    place = min(max(melanin, 0.0), 1.0) * (len(TONES) - 1)
    return np.array([np.interp(place, np.arange(len(TONES)), TONES[:, k]) for k in range(3)], F)


def complexion(person: Person, shot: Shot) -> Complexion:
    """The complexion of ``person`` in ``shot``, with makeup."""
    base = skin_tone(person.melanin)
    makeup, female = float(shot.makeup), float(not person.male)
    # blood shows through the thin skin of the lips; less so on dark skin
    lips = base * np.array([0.80, 0.58, 0.57], F) + np.array([0.045, 0.004, 0.006], F) * F(person.lip_red)
    lips += (base * np.array([0.96, 0.86, 0.86], F) - lips) * F(0.55 * person.wrinkles)  # they pale with age
    paint = F(min(1.0, shot.lipstick))
    lips = lips + (shot.lip_color.astype(F) - lips) * F(0.8) * paint
    return Complexion(
        base=base,
        lips=lips.astype(F),
        hair=person.hair.astype(F),
        iris=person.iris.astype(F),
        teeth=linear(np.array([236, 228, 212]) / 255.0) * F(0.92 - 0.14 * max(0.0, person.age - 30.0) / 55.0),
        melanin=F(person.melanin),
        flush=F(person.rosy),
        blusher=F(0.8 * makeup),
        freckles=F(person.freckles),
        bags=F(person.eye_bags * (1.0 - 0.6 * makeup)),
        wrinkles=F(person.wrinkles),
        squint=F(shot.smile),
        liner=F(0.35 + 0.25 * female + 0.4 * makeup),
        shade=F(makeup),
        makeup=F(makeup),
        lip_paint=paint,
        gloss=F(person.gloss),
        lip_gloss=F(0.06 + 0.16 * paint),
        creases=aging.creases(),
        depths=aging.depths(person.wrinkles, person.eye_bags, float(shot.smile), makeup, person.texture),
    )


MAPS = ("occlusion", "blush", "blusher", "bags", "shade", "lid", "freckles", "forehead", "crow", "pale")


@cache
def maps() -> np.ndarray:
    """float32 (V, len(MAPS)): where on the head each feature of the skin is; ``lid`` is metres from the eyeball."""
    head: Template = template()
    v = head.vertices
    y, z, x = v[:, 1], v[:, 2], np.abs(v[:, 0])
    ears = np.zeros(len(v))
    masks = head.masks_at(head.corner_uv.reshape(-1, 2))
    ears[head.triangles.ravel()] = masks[:, 2]

    def bump(x0, y0, z0, size):
        return np.exp(-((x - x0) ** 2 + (y - y0) ** 2 + (z - z0) ** 2) / size**2)

    lid = np.min([np.sqrt(((v - eye) ** 2).sum(1)) for eye in head.eyes], axis=0) - head.eye_radius
    columns = {
        "occlusion": head.occlusion,
        "blush": 0.8 * bump(0.042, -0.12, 0.688, 0.022)
        + 0.6 * bump(0, -0.155, 0.69, 0.014)
        + 0.7 * ears
        + 0.3 * bump(0, -0.15, 0.625, 0.015),
        "blusher": bump(0.050, -0.11, 0.692, 0.020),
        "bags": bump(0.030, -0.130, 0.7150, 0.009) + 0.7 * bump(0.018, -0.130, 0.7190, 0.007),
        "shade": bump(0.034, -0.13, 0.737, 0.0105),
        "lid": np.clip(lid, 0, 0.02),
        "freckles": np.clip(1.3 - np.abs(z - 0.70) / 0.05, 0, 1),
        "forehead": np.clip((z - 0.756) / 0.010, 0, 1) * np.clip((0.792 - z) / 0.010, 0, 1) * (y < -0.08),
        "crow": bump(0.060, -0.10, 0.7285, 0.014),
        "pale": bump(0, -0.14, 0.775, 0.03),
    }
    return np.stack([columns[name] for name in MAPS], 1).astype(F)


@cache
def noise() -> np.ndarray:
    """float32 (TILE, TILE, 4): blotches, spots and two layers of pores, with mean 0 and deviation about 1."""
    rng = generator(0, "skin")
    return np.concatenate(
        [enlarge(rng.normal(size=(side, side, 1)).astype(F), TILE, TILE) for side in (24, 110, 400, 400)], -1
    )


@kernel
def crease(x, z, creases, depths):
    """Darkness and slopes of the creases in the nearest cell of their map; 0 outside it."""
    j, i = int((x - F(LEFT)) * F(1 / CELL) + F(0.5)), int((z - F(LOW)) * F(1 / CELL) + F(0.5))
    dark, across, up = F(0), F(0), F(0)
    if 0 <= i < ROWS and 0 <= j < COLUMNS:
        for group in range(len(GROUPS)):
            dark += depths[group] * F(creases[i, j, 3 * group])
            across += depths[group] * F(creases[i, j, 3 * group + 1])
            up += depths[group] * F(creases[i, j, 3 * group + 2])
    return min(dark * F(STEP), F(1.2)), across * F(STEEP * STEP), up * F(STEEP * STEP)


@kernel
def paint(visible, maps, masks, speckle, scalp, beard, tone):
    """Fill albedo, tilt and gloss of the `Visible` points; eyes and clothes are left alone.

    ``maps`` (N, len(MAPS)), ``masks`` (N, 3) of lips, lids and ears, ``speckle`` (N, 4) of `noise`, ``scalp`` and
    ``beard`` (N,) shares that have the color of hair, ``tone`` a `Complexion`.
    """
    place, material = visible.place, visible.material
    albedo, tilt, gloss = visible.albedo, visible.tilt, visible.gloss
    base, lips, hair, teeth = tone.base, tone.lips, tone.hair, tone.teeth  # once: each access counts references
    creases, depths = tone.creases, tone.depths
    for i in range(place.shape[0]):
        kind = material[i]
        x, z = abs(place[i, 0]), place[i, 2]
        if kind == TEETH:
            gap = abs((x / F(0.0075)) % F(1) - F(0.5)) > F(0.46)
            side = min(max(F(1.15) - (x / F(0.027)) * (x / F(0.027)), F(0.2)), F(1))
            for c in range(3):
                albedo[i, c] = teeth[c] * side * (F(0.72) if gap else F(1))
            gloss[i] = F(0.3)
            continue
        if kind == MOUTH:
            albedo[i, 0], albedo[i, 1], albedo[i, 2] = F(0.10), F(0.022), F(0.022)
            gloss[i] = F(0.05)
            continue
        if kind != SKIN:
            continue
        soft, mottle, fine, fine2 = speckle[i, 0], speckle[i, 1], speckle[i, 2], speckle[i, 3]
        covered = F(1) - F(0.65) * tone.makeup  # foundation evens the skin
        blood = (
            tone.flush * (F(0.75) * maps[i, 1] + (F(0.14) * soft + F(0.06) * mottle) * covered)
            + tone.blusher * maps[i, 2]
        )
        spots = max(mottle - F(0.75), F(0)) * maps[i, 6] * tone.freckles * F(0.5)
        pigment = -(F(0.030) * soft + F(0.022) * mottle + F(0.030) * fine) * covered - spots
        pigment -= max(F(0.9) * soft + F(0.4) * mottle - F(1.3), F(0)) * F(0.22) * tone.wrinkles  # age spots
        dark_crease, tilt_x, tilt_z = F(0), F(0), F(0)
        if place[i, 1] < F(-0.03):
            bent = F(0.0008) * soft
            dark_crease, tilt_x, tilt_z = crease(place[i, 0] + bent, z + bent, creases, depths)
        below = maps[i, 3] * tone.bags
        lip = min(max(masks[i, 0] * F(1.1) - F(0.05), F(0)), F(1))
        for c in range(3):
            dark = F(0.55) if c == 0 else F(1.0) if c == 1 else F(1.2)
            red = F(0.05) if c == 0 else F(-0.24) if c == 1 else F(-0.20)
            shade_of_bag = F(0.20) if c == 0 else F(0.24) if c == 1 else F(0.17)
            hollow = F(0.42) if c == 0 else F(0.60) if c == 1 else F(0.66)
            value = base[c] * exp32(dark * pigment + red * blood - shade_of_bag * below - hollow * dark_crease)
            # stubble is hair below the skin: it is bluish
            stubble = min(beard[i] * (F(1) + F(0.25) * fine), F(0.9))
            value += (hair[c] * F(0.6) + (F(0.012) if c == 2 else F(0)) - value) * stubble
            value += (hair[c] * F(0.55) - value) * scalp[i]
            # lips: soft border, fine vertical lines
            value += (lips[c] * (F(1) + F(0.07) * fine) - value) * (F(0.88) * lip)
            # eye shadow, the dark line of the lashes
            value *= F(1) - maps[i, 4] * tone.shade * (F(0.30) if c == 0 else F(0.45) if c == 1 else F(0.35))
            line = max(F(1) - maps[i, 5] / F(0.0028), F(0))
            value *= F(1) - min(line * (tone.liner if z > F(0.7245) else F(0.32)), F(0.85))
            albedo[i, c] = value
        gloss[i] = tone.gloss + lip * tone.lip_gloss
        # pores, then wrinkles: the lines of the forehead, and the feet of a crow
        rough = (F(0.045) + F(0.05) * tone.wrinkles) * (F(1) - F(0.7) * lip) * covered
        tilt[i, 0], tilt[i, 1], tilt[i, 2] = rough * fine, rough * F(0.5) * mottle, rough * fine2
        tilt[i, 0] += tilt_x
        tilt[i, 2] += tilt_z
        if maps[i, 8] > F(0.01):
            ray = (z - F(0.7285)) / (abs(x - F(0.048)) + F(0.004))
            feet = (F(0.12) * tone.wrinkles + F(0.10) * tone.squint) * maps[i, 8]
            tilt[i, 2] += feet * sin32(F(7) * ray + F(0.8) * soft)


@kernel
def paint_eyes(visible, eyes, aim, iris):
    """Fill albedo, normal and gloss of the eyeballs. ``eyes`` (2, 3): centers, the left one first; ``aim`` (2, 3)."""
    points, place, material = visible.points, visible.place, visible.material
    albedo, normal, gloss = visible.albedo, visible.normal, visible.gloss
    for i in range(points.shape[0]):
        if material[i] != EYE:
            continue
        k = 0 if place[i, 0] > 0 else 1
        dx, dy, dz = points[i, 0] - eyes[k, 0], points[i, 1] - eyes[k, 1], points[i, 2] - eyes[k, 2]
        r = F(1) / (F(np.sqrt(dx * dx + dy * dy + dz * dz)) + F(1e-9))
        dx, dy, dz = dx * r, dy * r, dz * r
        along = dx * aim[k, 0] + dy * aim[k, 1] + dz * aim[k, 2]
        angle = F(np.sqrt(max(F(2) - F(2) * along, F(0))))  # chord, close to the angle in radians
        white = min(max((angle - F(0.395)) / F(0.045), F(0)), F(1))
        pupil = min(max((angle - F(0.13)) / F(0.035), F(0.02)), F(1))
        ring = F(1) - F(0.65) * min(max((angle - F(0.33)) / F(0.08), F(0)), F(1))
        depth = F(1.0) + F(1.0) * min(max((angle - F(0.16)) / F(0.26), F(0)), F(1))
        lid = F(1) - F(0.45) * min(max(dz * F(1.6) - F(0.15), F(0)), F(1))  # the shadow of the upper lid
        for c in range(3):
            sclera = F(0.62) if c == 0 else F(0.575) if c == 1 else F(0.55)
            albedo[i, c] = (iris[c] * depth * ring * pupil * (F(1) - white) + sclera * white) * lid
        normal[i, 0], normal[i, 1], normal[i, 2] = dx, dy, dz
        gloss[i] = F(0.12)
