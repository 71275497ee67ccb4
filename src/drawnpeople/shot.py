"""One image of a person: pose, light, expression, makeup, what is worn, the place and the camera."""

from dataclasses import dataclass

import numpy as np

from drawnpeople.expressions import SMILING, sample_actions
from drawnpeople.person import Person
from drawnpeople.surroundings import sample_clothes, sample_light, sample_place, sample_things


@dataclass(frozen=True)
class Shot:
    """One image. Angles are in degrees, makeup in [0, 1], light in linear units where 1 is white in full light."""

    yaw: float  # positive looks to the image's right
    pitch: float  # positive looks up
    roll: float  # positive leans to the image's right
    shift: np.ndarray  # of the crop, (right, down) as fractions of its side
    zoom: float  # factor on the side of the crop
    distance: float  # of the camera from the face, metres
    expression: str  # happy, neutral, surprised, sad or stern
    actions: dict[str, float]  # name of a facial action of the template -> amount in [0, 1]
    smile: float
    shows_teeth: bool
    mouth_open: float
    eye_open: float
    gaze: np.ndarray  # (right, up), radians
    # light; axes of the camera: x to the image's right, y away from the camera, z up
    light: np.ndarray  # float (3,): unit vector towards the key light
    key: np.ndarray  # (3,)
    sky: np.ndarray  # (3,): light from above
    ground: np.ndarray  # (3,): light from below
    exposure: float  # factor
    # what is worn
    glasses: str  # '', round, square, oval
    frame: np.ndarray  # (3,)
    hat: str  # '' or a name
    hat_color: np.ndarray  # (3,)
    collar: str  # crew, vee, shirt, turtle, jacket
    clothing: np.ndarray  # float (2, 3): main and second color
    pattern: str  # plain, stripes, check, melange
    lipstick: float
    lip_color: np.ndarray  # (3,)
    makeup: float
    # place and camera
    place: str  # studio, room, window, street, park, foliage, shelf, night
    occluder: str  # '', hand, cup, microphone, scarf
    noise: float  # standard deviation as a fraction of the range
    blur: float  # Gaussian deviation as a fraction of the image's side
    texture: int  # seed of everything random in this image


YAW, PITCH, ROLL = 38.0, 20.0, 20.0
"""Degrees at which the pose is clipped."""


@dataclass(frozen=True)
class Conditions:
    """How strongly the images of a dataset vary. Angles are standard deviations in degrees.

    Raises ValueError with the name of a parameter that is outside its range.
    """

    yaw: float
    pitch: float
    roll: float
    jitter: float  # of the crop, standard deviation as a fraction of its side
    light: float  # 0 soft and frontal .. 1 from anywhere, hard
    noise: float  # largest standard deviation of sensor noise, in [0, 1] of the range
    blur: float  # largest Gaussian blur, as a fraction of the image's side
    occlusion: float  # probability that a hand, cup, microphone or scarf is in front of the face

    def __post_init__(self) -> None:
        for name, most in RANGES.items():
            value = getattr(self, name)
            if not 0.0 <= value <= most:
                raise ValueError(f"{name} is {value}; it must be between 0 and {most:g}.")


RANGES = {
    "yaw": 90.0, "pitch": 90.0, "roll": 90.0, "jitter": 0.1, "light": 1.0, "noise": 0.5, "blur": 0.1, "occlusion": 1.0
}  # fmt: skip
"""Largest value of each field of `Conditions`; the least is 0."""

STUDIO = Conditions(yaw=9.0, pitch=5.0, roll=2.0, jitter=0.01, light=0.3, noise=0.01, blur=0.0, occlusion=0.0)
"""Near-frontal images in soft light, those of synthetic_hq."""
WILD = Conditions(yaw=15.0, pitch=8.0, roll=4.0, jitter=0.02, light=0.8, noise=0.04, blur=0.01, occlusion=0.15)
"""Strong pose and light, those of synthetic_wild with more objects before the face."""


def sample_shot(rng: np.random.Generator, person: Person, conditions: Conditions) -> Shot:
    """Sample one image of a person. Another order of the random draws gives other images for the same seed.

    The order: expression, pose, place and light, what is worn, camera; at last the seed of the image's textures.
    """
    c = conditions
    return Shot(
        **_pose(rng, c),
        **_expression(rng, person),
        **(scene := sample_place(rng, c.light)),
        **sample_light(rng, scene["place"], c.light),
        **sample_things(rng, person, c.occlusion),
        **sample_clothes(rng, person.male),
        noise=float(c.noise * rng.uniform(0.2, 1.0)),
        blur=float(c.blur * max(0.0, rng.uniform(-0.6, 1.0))),
        texture=int(rng.integers(0, 2**31)),
    )


def _pose(rng: np.random.Generator, c: Conditions) -> dict:
    return {
        "yaw": float(np.clip(rng.normal(0.0, c.yaw), -YAW, YAW)),
        "pitch": float(np.clip(rng.normal(0.0, c.pitch), -PITCH, PITCH)),
        "roll": float(np.clip(rng.normal(0.0, c.roll), -ROLL, ROLL)),
        "shift": rng.normal(0.0, c.jitter, 2),
        "zoom": float(np.clip(1.0 + rng.normal(0.0, 1.5 * c.jitter), 0.85, 1.18)),
        "distance": float(rng.uniform(1.0, 2.2)),
        "gaze": np.clip(rng.normal(0.0, [0.08, 0.04]), -0.25, 0.25),
    }


def _expression(rng: np.random.Generator, person: Person) -> dict:
    smiling = rng.random() < person.smiles
    smile = str(rng.choice(SMILING, p=[0.40, 0.42, 0.18]))
    other = str(rng.choice(["neutral", "talking", "surprised", "sad", "stern"], p=[0.50, 0.16, 0.12, 0.11, 0.11]))
    face = smile if smiling else other
    strength = float(rng.uniform(0.70, 1.10))
    actions = sample_actions(rng, face, strength)
    amount = {name: (actions[name + "Left"] + actions[name + "Right"]) / 2.0 for name in ("eyeWide", "eyeSquint")}
    return {
        "expression": "happy" if smiling else {"talking": "neutral"}.get(face, face),
        "actions": actions,
        "smile": strength / 1.10 if smiling else 0.0,
        "shows_teeth": face in ("grin", "laugh"),
        "mouth_open": min(actions.get("jawOpen", 0.0) / 0.30, 1.0),
        "eye_open": 1.0 + 0.3 * amount["eyeWide"] - 0.5 * amount["eyeSquint"] - actions["eyeBlinkLeft"],
    }
