"""One picture of a person: pose, light, expression, makeup, glasses, background and camera."""

from dataclasses import dataclass

import numpy as np

from masquerade.faces._drawn.person import Person


@dataclass(frozen=True)
class Shot:
    """One picture. Angles are in degrees, expression and makeup in [0, 1], light intensities are linear."""

    yaw: float
    pitch: float
    roll: float
    shift: np.ndarray  # of the crop, (right, up) as fractions of its side
    zoom: float
    smile: float
    shows_teeth: bool
    mouth_open: float
    frown: float
    pout: float
    eye_open: float
    brow_raise: float
    expression: str
    gaze: np.ndarray
    light: np.ndarray  # unit vector towards the key light, camera axes
    key: float
    fill: float
    key_colour: np.ndarray
    fill_colour: np.ndarray
    background: np.ndarray  # two sRGB colours
    background_kind: str
    clothing: np.ndarray
    collar: str
    glasses: str
    frame: np.ndarray
    hat: str
    hat_colour: np.ndarray
    lipstick: float
    lip_colour: np.ndarray
    makeup: float
    hair_shift: float
    fringe: float
    noise: float
    blur: float
    occluder: str
    texture: int


@dataclass(frozen=True)
class Conditions:
    """How strongly the pictures of a dataset vary. Angles are standard deviations in degrees."""

    yaw: float
    pitch: float
    roll: float
    jitter: float  # of the crop, standard deviation as a fraction of its side
    light: float  # 0 soft and frontal .. 1 from anywhere, hard
    noise: float  # largest standard deviation of sensor noise, in [0, 1] of the range
    blur: float  # largest Gaussian blur, as a fraction of the picture's side
    occlusion: float  # probability of a hand, cup or microphone in front of the face


def sample_shot(rng: np.random.Generator, person: Person, conditions: Conditions) -> Shot:
    """Sample one picture of a person. Another order of the random draws gives other pictures for the same seed."""
    c = conditions
    smiling = rng.random() < person.smiles
    smile = float(rng.uniform(0.45, 1.0)) if smiling else float(rng.uniform(0.0, 0.12))
    kind = "happy" if smiling else str(rng.choice(["neutral", "surprised", "sad", "stern"], p=[0.62, 0.14, 0.12, 0.12]))
    mouth_open = {"surprised": rng.uniform(0.45, 0.9), "happy": rng.uniform(-0.5, 0.6)}.get(
        kind, rng.uniform(-0.8, 0.35)
    )
    azimuth = np.radians(np.clip(rng.normal(0, 22 + 26 * c.light), -78, 78))
    elevation = np.radians(np.clip(rng.normal(30, 10 + 12 * c.light), -12, 70))
    light = np.array([np.sin(azimuth) * np.cos(elevation), np.sin(elevation), np.cos(azimuth) * np.cos(elevation)])
    warmth = rng.normal(0, 0.05 + 0.04 * c.light)
    base = rng.uniform(0.12, 0.85)
    tint = 1.0 + rng.uniform(-0.18, 0.18, 3)
    background = np.clip(
        np.stack([base * tint, base * rng.uniform(0.45, 1.3) * (1 + rng.uniform(-0.18, 0.18, 3))]), 0.03, 0.97
    )
    cloth = np.clip(rng.uniform(0.06, 0.72) * (1.0 + rng.uniform(-0.32, 0.32, 3)), 0.04, 0.95)
    wears_glasses = rng.random() < (0.93 if person.glasses > 0.66 else 0.08 if person.glasses > 0.55 else 0.0)
    lipstick = float(person.lipstick > 0.45) * float(rng.random() < 0.75) * rng.uniform(0.5, 1.0)
    wears_hat = rng.random() < 1.2 * person.hat
    occluder = str(rng.choice(["microphone", "hand", "cup"])) if rng.random() < c.occlusion else ""
    return Shot(
        yaw=float(np.clip(rng.normal(0, c.yaw), -38, 38)),
        pitch=float(np.clip(rng.normal(0, c.pitch), -20, 20)),
        roll=float(np.clip(rng.normal(0, c.roll), -20, 20)),
        shift=rng.normal(0, c.jitter, 2),
        zoom=float(np.exp(rng.normal(0, 1.5 * c.jitter))),
        smile=smile,
        shows_teeth=bool(smiling and smile > 0.6 and rng.random() < 0.75),
        mouth_open=float(np.clip(mouth_open, 0, 1)),
        frown=float(rng.uniform(0.5, 1.0)) if kind in ("sad", "stern") else 0.0,
        pout=0.6 if kind == "surprised" else 0.0,
        eye_open=float(1.22 if kind == "surprised" else np.clip(rng.normal(1.0, 0.08), 0.75, 1.2)),
        brow_raise=float(0.9 if kind == "surprised" else np.clip(rng.normal(0, 0.25), -0.4, 0.7)),
        expression=kind,
        gaze=np.clip(rng.normal(0, [0.07, 0.03]), -0.25, 0.25),
        light=light,
        key=float(rng.uniform(0.80, 1.02) + 0.25 * c.light * rng.uniform(-1, 1)),
        fill=float(rng.uniform(0.30, 0.48) - 0.18 * c.light * rng.uniform(0, 1)),
        key_colour=np.array([1 + warmth, 1.0, 1 - 1.3 * warmth]),
        fill_colour=0.88 + 0.12 * background[0] / background[0].mean(),
        background=background,
        background_kind=str(rng.choice(["plain", "gradient", "bokeh", "indoor"])),
        clothing=cloth,
        collar=str(rng.choice(["crew", "vee", "shirt", "turtle"], p=[0.42, 0.22, 0.28, 0.08])),
        glasses=str(rng.choice(["round", "square", "oval"])) if wears_glasses else "",
        frame=np.array([[0.05, 0.05, 0.055], [0.25, 0.13, 0.07], [0.55, 0.50, 0.42], [0.12, 0.14, 0.25]])[
            rng.integers(0, 4)
        ],
        hat="knitted hat" if wears_hat else "",
        hat_colour=np.clip(rng.uniform(0.08, 0.6) * (1.0 + rng.uniform(-0.4, 0.4, 3)), 0.04, 0.9),
        lipstick=lipstick,
        lip_colour=np.array([[0.62, 0.10, 0.13], [0.68, 0.22, 0.28], [0.48, 0.10, 0.18], [0.70, 0.32, 0.28]])[
            rng.integers(0, 4)
        ],
        makeup=float(lipstick > 0) * float(rng.uniform(0.3, 1.0)),
        hair_shift=float(rng.normal(0, 1.0)),
        fringe=person.fringe,
        noise=float(c.noise * rng.uniform(0.2, 1.0)),
        blur=float(c.blur * max(0.0, rng.uniform(-0.6, 1.0))),
        occluder=occluder,
        texture=int(rng.integers(0, 2**31)),
    )
