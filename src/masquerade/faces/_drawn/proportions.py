"""Samples the proportions of a face, in millimetres, from the main traits of a person.

Each function returns fields of `Person`. The order of its random draws is fixed, as in sampling.py.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np


@dataclass(frozen=True)
class Traits:
    """The main traits of a person; most other measures depend on them."""

    male: bool
    age: float  # years
    child: float  # 1 up to 6 years, 0 from 16 years
    old: float  # 0 up to 42 years, 1 from 78 years
    man: float  # 1 for a grown man, 0 for a woman or a small child
    tone: float  # place among SKIN_TONES, 0 lightest
    build: float  # -1 slim .. 1 heavy


def spread(rng: np.random.Generator, middle: float, reach: float) -> float:
    """A number around ``middle``: a uniform draw plus a smaller, clipped normal draw."""
    return float(middle + 1.22 * reach * (0.65 * rng.uniform(-1, 1) + 0.35 * np.clip(rng.normal(0, 0.6), -1.4, 1.4)))


def skull(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "skull_half": around(74.0 - 1.0 * t.child, 4.5),
        "skull_top": around(112.0 + 3 * t.child, 7.0),
        "cheek_half": around(68.5 + 2.4 * t.build + 1.5 * t.man + 1.0 * t.child, 4.8),
        "depth": around(93.0, 4.0),
        "chin_drop": around(110.5 + 4.5 * t.man - 15.0 * t.child, 7.5),
        "jaw_square": around(2.1 + 0.33 * t.man + 0.35 * t.build, 0.5),
        "jaw_taper": max(0.0, around(0.13 - 0.04 * t.man, 0.10)),
        "chin_recess": max(0.0, around(0.06, 0.06)),
        "chin_bump": around(4.2 + 1.6 * t.man - 1.5 * t.child, 2.2),
        "chin_cleft": max(0.0, around(-0.4, 1.9)) * (1 - t.child),
        "cheekbone": around(2.4 - 1.8 * t.child, 2.2),
        "cheek_full": around(1.0 + 1.8 * t.build + 2.6 * t.child - 1.4 * t.old, 2.2),
        "fold": float(np.clip(rng.normal(0.15 + 0.75 * t.old + 0.15 * t.man, 0.15), 0, 1.3)) * (1 - t.child),
        "double_chin": float(np.clip(t.build - 0.35 + 0.3 * t.old, 0, 1)),
    }


def eyes(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "eye_x": around(31.5 - 0.5 * t.child, 2.6),
        "eye_half": around(15.2 + 1.5 * t.child, 1.5),
        "lid_upper": around(6.6 + 1.8 * t.child - 0.9 * t.old - 0.3 * t.man, 1.25),
        "lid_lower": around(4.2, 0.9),
        "eye_tilt": around(0.05 - 0.06 * t.old, 0.11),
        "crease": max(0.7, around(2.9 - 0.8 * t.old, 1.9)),
        "iris_radius": around(6.0 + 0.6 * t.child, 0.35),
        "eye_bags": float(np.clip(rng.normal(0.15 + 0.5 * t.old, 0.25), 0, 1)),
        "smile_eyes": float(rng.uniform(0.2, 1.0)),
        "socket": around(6.6 + 1.2 * t.man + 1.2 * t.old - 1.8 * t.child, 2.2),
    }


def brows(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "brow_ridge": max(0.0, around(2.3 + 2.4 * t.man - 1.8 * t.child, 1.9)),
        "brow_inner": max(5.0, around(11.5 - 1.2 * t.man, 3.6)),
        "brow_length": around(36.5, 4.5),
        "brow_y": around(17.5 - 2.2 * t.man + 1.2 * t.child, 3.4),
        "brow_arch": max(0.2, around(3.4 - 1.2 * t.man, 2.4)),
        "brow_tilt": around(0.5, 4.0),
        "brow_thick": max(1.1, around(2.8 + 1.0 * t.man - 0.6 * t.child, 1.25)),
        "brow_dense": float(np.clip(rng.normal(0.95 + 0.05 * t.man - 0.25 * t.old - 0.12 * t.child, 0.15), 0.3, 1)),
    }


def nose(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "nose_tip_y": -around(41.5 - 6.5 * t.child + 2.2 * t.old + 1.5 * t.man, 5.0),
        "nose_half": around(16.4 + 1.3 * t.man - 1.5 * t.child + 2.8 * (t.tone - 0.35), 2.9),
        "nose_bridge": max(1.0, around(5.0 + 1.5 * t.man - 2.5 * t.child - 2.2 * (t.tone - 0.35), 2.4)),
        "nose_height": around(18.0 + 1.8 * t.man - 4.5 * t.child, 3.2),
        "nose_hump": around(0.2 + 0.5 * t.man, 1.5) * (1 - t.child),
        "nose_tip": around(2.6, 1.7),
        "nose_wing": around(5.2, 1.3),
        "nose_bend": around(0.0, 1.5),
        "bridge_half": around(6.4 + 0.6 * t.man, 1.5),
        "nostril": around(1.0, 0.3),
    }


def mouth(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "mouth_y": -around(71.5 - 8.0 * t.child + 1.5 * t.old, 4.0),
        "mouth_half": around(25.8 - 3.4 * t.child + 0.8 * t.man, 3.2),
        "upper_lip": max(2.6, around(5.9 - 1.0 * t.man - 1.7 * t.old + 1.9 * (t.tone - 0.35), 1.9)),
        "lower_lip": max(4.2, around(8.4 - 0.9 * t.man - 1.8 * t.old + 1.9 * (t.tone - 0.35), 2.2)),
        "cupid": float(np.clip(rng.normal(0.26, 0.13), 0, 0.55)),
        "mouth_curve": around(-0.2 - 1.0 * t.old, 1.4),
        "lip_red": float(np.clip(rng.normal(0.62 - 0.12 * t.man - 0.15 * t.old, 0.15), 0.15, 0.95)),
    }


def ears_and_neck(rng: np.random.Generator, t: Traits) -> dict[str, float]:
    around = partial(spread, rng)
    return {
        "ear_height": around(30.0 + 3.0 * t.old - 3.0 * t.child, 3.5),
        "ear_out": around(8.5, 3.6),
        "neck_half": around(46.5 + 7.5 * t.man - 10.0 * t.child + 5.0 * t.build, 4.0),
    }
