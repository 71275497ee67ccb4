"""Samples what surrounds a face in an image: the place, its light, clothes and what else is worn or held."""

import math
from dataclasses import dataclass

import numpy as np

from drawnpeople.colors import LIPSTICK
from drawnpeople.labels import linear
from drawnpeople.person import Person


@dataclass(frozen=True)
class Lighting:
    """The usual light of a place. Warmth: 0.1 has a tenth more red and a tenth less blue."""

    odds: float  # in soft light
    hard_odds: float  # in hard light
    key_warmth: float
    sky_warmth: float
    key: float  # factor on the strength of the key light
    sky: float  # factor on the strength of the light from above
    side: float  # degrees from the front at which the key light usually stands


PLACES = {
    "studio": Lighting(0.30, 0.10, 0.00, 0.00, 1.00, 1.00, 22.0),
    "room": Lighting(0.20, 0.16, 0.07, 0.04, 0.90, 0.90, 22.0),
    "window": Lighting(0.12, 0.15, -0.03, 0.03, 1.15, 0.80, 38.0),
    "shelf": Lighting(0.13, 0.11, 0.06, 0.04, 0.95, 0.90, 22.0),
    "street": Lighting(0.08, 0.15, 0.03, -0.06, 1.10, 1.00, 30.0),
    "park": Lighting(0.09, 0.13, 0.05, -0.05, 1.15, 1.00, 30.0),
    "foliage": Lighting(0.08, 0.11, 0.05, -0.02, 1.10, 0.90, 30.0),
    "night": Lighting(0.00, 0.09, 0.12, -0.06, 1.10, 0.45, 40.0),
}
GROUND = {"park": (0.95, 1.06, 0.86), "foliage": (0.94, 1.06, 0.86)}
"""Place -> tint of the light from below; elsewhere it is a little warm."""


def sample_place(rng: np.random.Generator, light: float) -> dict[str, str]:
    """``light``: the condition, 0 soft to 1 hard."""
    odds = np.array([place.odds + (place.hard_odds - place.odds) * light for place in PLACES.values()])
    return {"place": str(rng.choice(list(PLACES), p=odds / odds.sum()))}


def sample_light(rng: np.random.Generator, place: str, light: float) -> dict:
    """Direction and colors of the light that the place allows. ``light``: the condition, 0 soft to 1 hard."""
    usual = PLACES[place]
    side = 1.0 if rng.random() < 0.5 else -1.0
    azimuth = math.radians(float(np.clip(rng.normal(side * usual.side, 6.0 + 34.0 * light), -85.0, 85.0)))
    elevation = math.radians(float(np.clip(rng.normal(32.0, 8.0 + 12.0 * light), -8.0, 68.0)))
    across = math.cos(elevation)
    strength, fill, bounce = rng.uniform(0.0, 1.0, 3)
    warmth = usual.key_warmth + float(np.clip(rng.normal(0.0, 0.03 + 0.05 * light), -0.2, 0.2))
    coolness = usual.sky_warmth + float(np.clip(rng.normal(0.0, 0.02), -0.06, 0.06))
    key = usual.key * (1.15 + 0.45 * strength + light * 1.10 * strength)
    sky = usual.sky * (0.70 + 0.25 * fill - light * 0.38 * (1.0 - fill))
    ground = (0.26 + 0.14 * bounce) * (1.0 - 0.35 * light)
    return {
        "light": np.array([math.sin(azimuth) * across, -math.cos(azimuth) * across, math.sin(elevation)], np.float32),
        "key": _tint(key, warmth),
        "sky": _tint(sky, coolness),
        "ground": np.array(GROUND.get(place, (1.05, 1.0, 0.92)), np.float32) * np.float32(ground),
        "exposure": float(np.clip(1.0 + rng.normal(0.0, 0.05 + 0.10 * light), 0.7, 1.4)),
    }


def _tint(strength: float, warmth: float) -> np.ndarray:
    return np.array([strength * (1.0 + warmth), strength, strength * (1.0 - warmth)], np.float32)


FRAMES = ((0.10, 0.10, 0.105), (0.28, 0.17, 0.11), (0.58, 0.53, 0.45), (0.16, 0.18, 0.28), (0.42, 0.13, 0.13))
HATS = ("knitted hat", "cap", "brimmed hat")
OCCLUDERS = ("microphone", "cup", "hand", "scarf")


def sample_things(rng: np.random.Generator, person: Person, occlusion: float) -> dict:
    """Glasses, hat, makeup and occluder. ``occlusion``: probability of an occluder."""
    glasses = rng.random() < (0.93 if person.glasses > 0.66 else 0.10 if person.glasses > 0.50 else 0.0)
    shape = str(rng.choice(["round", "square", "oval"], p=[0.3, 0.4, 0.3]))
    frame = linear(FRAMES[int(rng.integers(len(FRAMES)))])
    hatted = rng.random() < 1.3 * person.hat
    hat = str(rng.choice(HATS, p=[0.45, 0.35, 0.20]))
    hat_color = linear(sample_dye(rng))
    painted = person.lipstick > 0.34 and rng.random() < 0.84
    lipstick = float(rng.uniform(0.50, 1.0))
    makeup = float(rng.uniform(0.70, 1.0) if rng.random() < 0.60 else rng.uniform(0.25, 0.50))
    lip_color = linear(LIPSTICK[int(rng.integers(len(LIPSTICK)))]) * np.float32(1.0 - 0.5 * person.melanin)
    occluder = str(rng.choice(OCCLUDERS)) if rng.random() < occlusion else ""
    return {
        "glasses": shape if glasses else "",
        "frame": frame,
        "hat": hat if hatted else "",
        "hat_color": hat_color,
        "lipstick": lipstick if painted else 0.0,
        "lip_color": lip_color,
        "makeup": makeup if painted else 0.0,
        "occluder": occluder,
    }


DYES = (
    (0.93, 0.92, 0.90), (0.78, 0.76, 0.72), (0.52, 0.52, 0.53), (0.30, 0.31, 0.33), (0.13, 0.13, 0.14),
    (0.15, 0.19, 0.32), (0.28, 0.40, 0.58), (0.60, 0.70, 0.80), (0.47, 0.14, 0.16), (0.68, 0.24, 0.22),
    (0.36, 0.40, 0.28), (0.18, 0.33, 0.28), (0.72, 0.62, 0.47), (0.44, 0.33, 0.25), (0.80, 0.66, 0.32),
    (0.78, 0.60, 0.62), (0.42, 0.32, 0.47),
)  # fmt: skip
"""sRGB of usual dyes: white, beige, grays, black, navy, denim, pale blue, wine, red, olive, pine, sand, brown, ..."""
DYE_ODDS = (9, 6, 6, 6, 10, 9, 7, 6, 4, 3, 4, 3, 5, 4, 2, 3, 2)


def sample_dye(rng: np.random.Generator) -> np.ndarray:
    """sRGB of a piece of cloth."""
    odds = np.array(DYE_ODDS, float)
    color = np.array(DYES[int(rng.choice(len(DYES), p=odds / odds.sum()))])
    return np.clip(color * rng.uniform(0.85, 1.12) + rng.uniform(-0.02, 0.02, 3), 0.05, 0.96)


def sample_clothes(rng: np.random.Generator, male: bool) -> dict:
    """Collar, pattern and two colors."""
    collar = str(
        rng.choice(
            ["crew", "vee", "shirt", "turtle", "jacket"],
            p=[0.34, 0.12, 0.28, 0.06, 0.20] if male else [0.36, 0.26, 0.16, 0.10, 0.12],
        )
    )
    pattern = str(rng.choice(["plain", "stripes", "check", "melange"], p=[0.56, 0.14, 0.12, 0.18]))
    return {
        "collar": collar,
        "pattern": pattern,
        "clothing": np.stack([linear(sample_dye(rng)), linear(sample_dye(rng))]),
    }
